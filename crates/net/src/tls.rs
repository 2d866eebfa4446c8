//! TLS: certificates from PEM files or self-signed, and the handshake. A reload changes the certificate for new
//! connections; open ones keep theirs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::Stream;

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The first byte of a record with a handshake message (RFC 8446 section 5.1).
const HANDSHAKE_RECORD: u8 = 0x16;

/// The certificate to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificate<'a> {
    /// Create one at start, for development.
    SelfSigned,
    /// Read it from PEM files.
    Files {
        /// The certificate chain, the server's own certificate first.
        cert: &'a PathBuf,
        /// The private key.
        key: &'a PathBuf,
    },
}

/// The TLS configuration of a server.
pub struct Tls {
    files: Option<(PathBuf, PathBuf)>,
    /// The offered ALPN protocols, preferred first. Empty if there is nothing to negotiate.
    protocols: &'static [&'static str],
    current: RwLock<Arc<ServerConfig>>,
}

/// A stream that was accepted on a listener with implicit TLS.
pub enum AcceptedStream {
    /// A TLS stream after the handshake.
    Tls(Stream),
    /// A client that does not speak TLS. Nothing was read from it.
    Plain(Stream),
}

impl Tls {
    /// Reads the certificate, or creates one for these names. `protocols` are offered to clients (ALPN, RFC 7301). The
    /// error is a message for the operator.
    pub fn new(
        certificate: Certificate<'_>,
        names: &[String],
        protocols: &'static [&'static str],
    ) -> Result<Self, String> {
        let (config, files) = match certificate {
            Certificate::SelfSigned => (self_signed(names)?, None),
            Certificate::Files { cert, key } => (load_files(cert, key)?, Some((cert.clone(), key.clone()))),
        };
        Ok(Self { files, protocols, current: RwLock::new(with_alpn(config, protocols)) })
    }

    /// Reads the files again. If they are invalid, the old certificate stays in use.
    pub fn reload(&self) -> Result<(), String> {
        if let Some((cert, key)) = &self.files {
            let config = with_alpn(load_files(cert, key)?, self.protocols);
            *self.current.write() = config;
        }
        Ok(())
    }

    /// Performs the handshake as server.
    pub async fn accept(&self, stream: Stream) -> io::Result<Stream> {
        timeout(HANDSHAKE_TIMEOUT, self.handshake(stream)).await?
    }

    /// Performs the handshake as server if the client starts one. Otherwise returns the stream unread.
    pub async fn accept_or_plain(&self, stream: Stream) -> io::Result<AcceptedStream> {
        let accepted = async {
            match stream.peek().await? {
                HANDSHAKE_RECORD => self.handshake(stream).await.map(AcceptedStream::Tls),
                _ => Ok(AcceptedStream::Plain(stream)),
            }
        };
        timeout(HANDSHAKE_TIMEOUT, accepted).await?
    }

    async fn handshake(&self, stream: Stream) -> io::Result<Stream> {
        let current = self.current.read().clone();
        Ok(Stream::Tls(Box::new(TlsAcceptor::from(current).accept(stream).await?)))
    }

    /// Parses the certificates of a PEM file. The error says what is wrong with the file.
    pub fn parse_chain(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<_, _>>()
            .map_err(|error| format!("is not PEM: {error}"))?;
        if chain.is_empty() {
            return Err("contains no certificate".to_owned());
        }
        Ok(chain)
    }

    /// Parses the private key of a PEM file. The error says what is wrong with the file.
    pub fn parse_private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
        PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
            pem::Error::NoItemsFound => "contains no private key".to_owned(),
            error => format!("is not PEM: {error}"),
        })
    }

    /// Creates a server configuration. Fails if the key does not match the certificate, or if either is unsupported.
    pub fn server_config(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<ServerConfig, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)
    }
}

fn with_alpn(mut config: ServerConfig, protocols: &[&str]) -> Arc<ServerConfig> {
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

fn load_files(cert: &Path, key: &Path) -> Result<ServerConfig, String> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()));
    let chain = Tls::parse_chain(&read(cert)?).map_err(|error| format!("{} {error}", cert.display()))?;
    let private_key = Tls::parse_private_key(&read(key)?).map_err(|error| format!("{} {error}", key.display()))?;
    let unusable = |error| format!("cannot use {} with {}: {error}", cert.display(), key.display());
    Tls::server_config(chain, private_key).map_err(unusable)
}

/// Creates a self-signed certificate for these names and for localhost, to test TLS clients with.
fn self_signed(names: &[String]) -> Result<ServerConfig, String> {
    let creation_error = |error: &dyn std::fmt::Display| format!("cannot create a self-signed certificate: {error}");
    let local_names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    let generated =
        rcgen::generate_simple_self_signed([names, &local_names].concat()).map_err(|error| creation_error(&error))?;
    let key = PrivatePkcs8KeyDer::from(generated.signing_key.serialize_der());
    Tls::server_config(vec![generated.cert.der().clone()], key.into()).map_err(|error| creation_error(&error))
}
