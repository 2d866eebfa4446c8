//! Connectors of the HTTP client. [`LazyTlsConnector`] encrypts https connections with rustls and ring. The
//! trusted roots are loaded on first use, so that they cost nothing without https requests. [`ConnectionObserver`]
//! detects new connections.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use ureq::Error;
use ureq::config::Config;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::transport::{ConnectionDetails, Connector, RustlsConnector, Transport};

use crate::HttpError;

/// The certificates that are trusted for https.
#[derive(Clone, Debug, Default)]
pub struct TlsTrust {
    extra_roots: Vec<CertificateDer<'static>>,
    accept_any: bool,
}

impl TlsTrust {
    /// Trusts the roots of the system and these certificates, as well as certificates signed by one of these. `pem` is
    /// text in PEM format.
    pub fn with_extra_roots(pem: &[u8]) -> Result<Self, HttpError> {
        match CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>() {
            Ok(extra_roots) if extra_roots.is_empty() => {
                Err(HttpError::InvalidRequest("it contains no certificate".to_owned()))
            }
            Ok(extra_roots) => Ok(Self { extra_roots, accept_any: false }),
            Err(error) => Err(HttpError::InvalidRequest(format!("it is not PEM: {error}"))),
        }
    }

    /// Accepts every certificate. The identity of the server is then unknown: send no secrets.
    pub fn accept_any() -> Self {
        Self { extra_roots: Vec::new(), accept_any: true }
    }
}

/// Adds TLS to a connection if the URL requires it.
#[derive(Debug, Default)]
pub(crate) struct LazyTlsConnector {
    rustls: RustlsConnector,
    trust: TlsTrust,
    /// The configuration of the connector, which includes the roots.
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
            // The connector caches only the configuration for all requests.
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
    let provider = Arc::new(ring::default_provider());
    let tls = TlsConfig::builder()
        .root_certs(load_roots(&trust.extra_roots))
        .disable_verification(trust.accept_any)
        .unversioned_rustls_crypto_provider(provider)
        .build();
    Config::builder().proxy(None).tls_config(tls).build()
}

/// Returns the roots of the system and the extra roots. Uses the roots of Mozilla if there are none, as in a minimal
/// container.
fn load_roots(extra_roots: &[CertificateDer<'static>]) -> RootCerts {
    let system_roots = rustls_native_certs::load_native_certs().certs;
    if system_roots.is_empty() && extra_roots.is_empty() {
        return RootCerts::WebPki;
    }
    system_roots.iter().chain(extra_roots).map(|root| Certificate::from_der(root).to_owned()).collect::<Vec<_>>().into()
}

thread_local! {
    /// Set when a connection is made. The thread that sends a request also makes its connection.
    static CONNECTED: Cell<bool> = const { Cell::new(false) };
}

/// The end of the connector chain. It only records that a connection was made. A server may close a kept connection at
/// the moment when it is reused. This is not an error of the server, so the request can be sent again.
#[derive(Debug)]
pub(crate) struct ConnectionObserver;

impl<In: Transport> Connector<In> for ConnectionObserver {
    type Out = In;

    fn connect(&self, _: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<In>, Error> {
        CONNECTED.set(true);
        Ok(chained)
    }
}

/// Runs `work`. Also returns whether this thread made a new connection during it.
pub(crate) fn detect_new_connection<T>(work: impl FnOnce() -> T) -> (T, bool) {
    CONNECTED.set(false);
    let result = work();
    (result, CONNECTED.get())
}
