//! Connectors of the HTTP client. [`Tls`] encrypts connections for https, by rustls with aws-lc-rs. The trusted roots are read on
//! first use, so that a program that sends no such request does not pay for them. [`Witness`] notices new connections.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use ureq::Error;
use ureq::config::Config;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::transport::{ConnectionDetails, Connector, RustlsConnector, Transport};

use crate::HttpError;

/// Which servers are believed for https.
#[derive(Clone, Debug, Default)]
pub struct TlsTrust {
    extra_roots: Vec<CertificateDer<'static>>,
    accept_any: bool,
}

impl TlsTrust {
    /// Those with a certificate that the system trusts, or one of these, or one that is signed by one of these. The text
    /// is in PEM.
    pub fn with_extra_roots(pem: &[u8]) -> Result<Self, HttpError> {
        match CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>() {
            Ok(extra_roots) if !extra_roots.is_empty() => Ok(Self { extra_roots, accept_any: false }),
            _ => Err(HttpError::InvalidRequest("there is no certificate in PEM in it".to_owned())),
        }
    }

    /// Whoever answers. Nobody knows then who reads what is sent.
    pub fn accept_any() -> Self {
        Self { extra_roots: Vec::new(), accept_any: true }
    }
}

/// Makes TLS connections of plain ones where the URL asks for it.
#[derive(Debug, Default)]
pub(crate) struct LazyTlsConnector {
    rustls: RustlsConnector,
    trust: TlsTrust,
    /// What the connector looks at: the roots are a part of it.
    config: OnceLock<Config>,
}

impl LazyTlsConnector {
    pub(crate) fn new(trust: TlsTrust) -> Self {
        Self { trust, ..Self::default() }
    }
}

impl<In: Transport> Connector<In> for LazyTlsConnector {
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

fn config(trust: &TlsTrust) -> Config {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let tls = TlsConfig::builder()
        .root_certs(load_roots(&trust.extra_roots))
        .disable_verification(trust.accept_any)
        .unversioned_rustls_crypto_provider(provider)
        .build();
    Config::builder().proxy(None).tls_config(tls).build()
}

/// What the system trusts, and these; where there is nothing, as in a bare container, what Mozilla trusts.
fn load_roots(extra_roots: &[CertificateDer<'static>]) -> RootCerts {
    let system_roots = rustls_native_certs::load_native_certs().certs;
    if system_roots.is_empty() && extra_roots.is_empty() {
        return RootCerts::WebPki;
    }
    system_roots.iter().chain(extra_roots).map(|root| Certificate::from_der(root).to_owned()).collect::<Vec<_>>().into()
}

thread_local! {
    /// Connections are made by the thread that sends the request.
    static CONNECTED: Cell<bool> = const { Cell::new(false) };
}

/// The end of the chain that makes connections. It changes nothing, and remembers that a connection was made. A kept connection
/// may have been closed by the other side in the moment it is used again, which says nothing about the other side.
#[derive(Debug)]
pub(crate) struct ConnectionObserver;

impl<In: Transport> Connector<In> for ConnectionObserver {
    type Out = In;

    fn connect(&self, _: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<In>, Error> {
        CONNECTED.set(true);
        Ok(chained)
    }
}

/// Does something, and says whether a connection was made for it by this thread.
pub(crate) fn detect_new_connection<T>(work: impl FnOnce() -> T) -> (T, bool) {
    CONNECTED.set(false);
    let result = work();
    (result, CONNECTED.get())
}
