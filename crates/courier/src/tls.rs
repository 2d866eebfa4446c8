//! TLS for https, by rustls with aws-lc-rs. The roots that are trusted are read when they are needed first, because a
//! program that never sends such a request should not pay for them at its start.

use std::sync::{Arc, OnceLock};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use ureq::Error;
use ureq::config::Config;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::transport::{ConnectionDetails, Connector, RustlsConnector, Transport};

use crate::Failure;

/// Which servers are believed for https.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    also: Vec<CertificateDer<'static>>,
    anybody: bool,
}

impl Trust {
    /// Those with a certificate that the system trusts, or one of these, or one that is signed by one of these. The text
    /// is in PEM.
    pub fn also(pem: &[u8]) -> Result<Self, Failure> {
        match CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>() {
            Ok(also) if !also.is_empty() => Ok(Self { also, anybody: false }),
            _ => Err(Failure::Malformed("there is no certificate in PEM in it".to_owned())),
        }
    }

    /// Whoever answers. Nobody knows then who reads what is sent.
    pub fn anybody() -> Self {
        Self { also: Vec::new(), anybody: true }
    }
}

/// Makes TLS connections of plain ones where the URL asks for it.
#[derive(Debug, Default)]
pub(crate) struct Tls {
    rustls: RustlsConnector,
    trust: Trust,
    /// What the connector looks at: the roots are a part of it.
    config: OnceLock<Config>,
}

impl Tls {
    pub(crate) fn new(trust: Trust) -> Self {
        Self { trust, ..Self::default() }
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
            config: self.config.get_or_init(|| config(&self.trust)),
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

fn config(trust: &Trust) -> Config {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let tls = TlsConfig::builder()
        .root_certs(roots(&trust.also))
        .disable_verification(trust.anybody)
        .unversioned_rustls_crypto_provider(provider)
        .build();
    Config::builder().proxy(None).tls_config(tls).build()
}

/// What the system trusts, and these; where there is nothing, as in a bare container, what Mozilla trusts.
fn roots(also: &[CertificateDer<'static>]) -> RootCerts {
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() && also.is_empty() {
        return RootCerts::WebPki;
    }
    found.iter().chain(also).map(|root| Certificate::from_der(root).to_owned()).collect::<Vec<_>>().into()
}
