//! TLS: certificates from PEM files or made for development, and the handshake. Reloading swaps the certificate for new
//! connections; open ones keep theirs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

use super::Stream;
use crate::config::Certificate;

/// How long a peer may take for its handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// A server's certificate and the way to use it.
pub struct Tls {
    files: Option<(PathBuf, PathBuf)>,
    current: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads the certificate, or makes one for this domain. The error is a sentence for the operator.
    pub fn new(certificate: Certificate<'_>, domain: &str) -> Result<Self, String> {
        let (config, files) = match certificate {
            Certificate::SelfSigned => (self_signed(domain)?, None),
            Certificate::Files { cert, key } => (from_files(cert, key)?, Some((cert.clone(), key.clone()))),
        };
        Ok(Self { files, current: RwLock::new(config) })
    }

    /// Reads the files again. When they are no good, the old certificate stays.
    pub fn reload(&self) -> Result<(), String> {
        if let Some((cert, key)) = &self.files {
            let fresh = from_files(cert, key)?;
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        }
        Ok(())
    }

    /// Does the server's part of a handshake.
    pub async fn accept(&self, stream: Stream) -> io::Result<Stream> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner).clone();
        let handshake = TlsAcceptor::from(current).accept(stream);
        let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await??;
        Ok(Stream::Tls(Box::new(stream)))
    }

    /// The certificates in a PEM file. The error says what is wrong with the file.
    pub(crate) fn chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<_, _>>()
            .map_err(|error| format!("is no PEM: {error}"))?;
        if chain.is_empty() {
            return Err("holds no certificate".to_owned());
        }
        Ok(chain)
    }

    /// The private key in a PEM file. The error says what is wrong with the file.
    pub(crate) fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
        PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
            pem::Error::NoItemsFound => "holds no private key".to_owned(),
            error => format!("is no PEM: {error}"),
        })
    }

    /// What a server needs to use a certificate. Fails when the key is not the certificate's, or either cannot be used.
    pub(crate) fn server_config(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Arc<ServerConfig>, rustls::Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(Arc::new(config))
    }
}

fn from_files(cert: &Path, key: &Path) -> Result<Arc<ServerConfig>, String> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()));
    let chain = Tls::chain(&read(cert)?).map_err(|error| format!("{} {error}", cert.display()))?;
    let private = Tls::private_key(&read(key)?).map_err(|error| format!("{} {error}", key.display()))?;
    let unusable = |error| format!("cannot use {} with {}: {error}", cert.display(), key.display());
    Tls::server_config(chain, private).map_err(unusable)
}

/// A certificate that nobody trusts, for a domain and this machine: enough to try out how a client does TLS.
fn self_signed(domain: &str) -> Result<Arc<ServerConfig>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot make a self-signed certificate: {error}");
    let names = [domain, "localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(names).map_err(|error| failed(&error))?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    Tls::server_config(vec![made.cert.der().clone()], key.into()).map_err(|error| failed(&error))
}
