//! TLS for https, by rustls with aws-lc-rs. The roots that are trusted are read when they are needed first, because a
//! program that never sends such a request should not pay for them at its start.

use std::sync::{Arc, OnceLock};

use rustls::crypto::aws_lc_rs;
use ureq::Error;
use ureq::config::Config;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::transport::{ConnectionDetails, Connector, RustlsConnector, Transport};

/// Makes TLS connections of plain ones where the URL asks for it.
#[derive(Debug, Default)]
pub(crate) struct Tls {
    rustls: RustlsConnector,
    /// What the connector looks at: the roots are a part of it.
    config: OnceLock<Config>,
}

#[cfg(test)]
impl Tls {
    /// Trusts this certificate only.
    pub(crate) fn trusting(certificate: &[u8]) -> Self {
        let roots = vec![Certificate::from_der(certificate).to_owned()];
        Self { config: OnceLock::from(config(roots.into())), ..Self::default() }
    }
}

impl<In: Transport> Connector<In> for Tls {
    type Out = <RustlsConnector as Connector<In>>::Out;

    fn connect(&self, details: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        if !details.needs_tls() {
            return self.rustls.connect(details, chained);
        }
        let details = ConnectionDetails {
            uri: details.uri,
            addrs: details.addrs.clone(),
            config: self.config.get_or_init(|| config(system_roots())),
            // The connector remembers only what it has built for all requests.
            request_level: false,
            resolver: details.resolver,
            now: details.now,
            timeout: details.timeout,
            current_time: Arc::clone(&details.current_time),
            run_connector: Arc::clone(&details.run_connector),
            register_shutdown: Arc::clone(&details.register_shutdown),
        };
        self.rustls.connect(&details, chained)
    }
}

fn config(roots: RootCerts) -> Config {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let tls = TlsConfig::builder().root_certs(roots).unversioned_rustls_crypto_provider(provider).build();
    Config::builder().proxy(None).tls_config(tls).build()
}

/// What the system trusts; where it has nothing, as in a bare container, what Mozilla does.
fn system_roots() -> RootCerts {
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() {
        return RootCerts::WebPki;
    }
    found.iter().map(|root| Certificate::from_der(root).to_owned()).collect::<Vec<_>>().into()
}
