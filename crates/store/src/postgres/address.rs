//! Where the database is: a URL, as an operator writes it.

use std::fmt;
use std::str::FromStr;

use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// The address of a database, and how it is talked to.
#[derive(Clone)]
pub struct Address {
    pub(crate) config: Config,
    pub(crate) tls: MakeRustlsConnect,
}

impl FromStr for Address {
    /// A sentence for the operator, without the password.
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| error.to_string())?;
        config.ssl_mode(SslMode::Disable);
        let tls = ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        Ok(Self { config, tls: MakeRustlsConnect::new(tls) })
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.config.get_hosts()).finish_non_exhaustive()
    }
}
