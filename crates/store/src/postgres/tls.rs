//! TLS for connections to the database, and the verification of the server's certificate. The options of the URL have
//! the names and meanings of libpq.
//!
//! Differences from libpq: files that are not named are not searched in the home directory. If no roots are named,
//! those of the system are used. If TLS fails, the connection is never retried without it.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A function that reads a file.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<Vec<u8>>;

/// The ALPN protocol name of PostgreSQL, for servers that require one.
const ALPN_PROTOCOL: &[u8] = b"postgresql";
/// The value of `sslrootcert` that selects the roots of the system.
const SYSTEM_ROOTS: &str = "system";

/// The TLS options of a URL.
#[derive(Clone, Debug, Default)]
pub(super) struct TlsOptions {
    mode: Option<Mode>,
    roots: Option<Roots>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// `sslmode`, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Disable,
    /// In libpq, unencrypted if the server accepts that. Here it is the same as `Prefer`.
    Allow,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// `sslrootcert`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Roots {
    System,
    File(PathBuf),
}

impl TlsOptions {
    /// Sets an option of the URL. Returns false if it is not a TLS option. The error says which values are allowed.
    pub(super) fn parse_option(&mut self, name: &str, value: &str) -> Result<bool, String> {
        match name {
            "sslmode" => self.mode = Some(parse_mode(value)?),
            // The syntax of JDBC.
            "ssl" if value == "true" => self.mode = Some(Mode::Require),
            "sslrootcert" if value == SYSTEM_ROOTS => self.roots = Some(Roots::System),
            "sslrootcert" => self.roots = Some(Roots::File(value.into())),
            "sslcert" => self.certificate = Some(value.into()),
            "sslkey" => self.key = Some(value.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Validates the combination of options. Returns whether connections are encrypted.
    pub(super) fn resolve(&mut self, negotiation: SslNegotiation) -> Result<SslMode, String> {
        let is_system = self.roots == Some(Roots::System);
        let mode = *self.mode.get_or_insert(if is_system { Mode::VerifyFull } else { Mode::Prefer });
        if is_system && mode < Mode::VerifyFull {
            return Err("sslrootcert=system needs sslmode=verify-full: a certificate of a public authority proves nothing without the name".to_owned());
        }
        if negotiation == SslNegotiation::Direct && mode < Mode::Require {
            return Err("sslnegotiation=direct needs sslmode=require, verify-ca or verify-full".to_owned());
        }
        if self.certificate.is_some() != self.key.is_some() {
            return Err("sslcert and sslkey belong together".to_owned());
        }
        Ok(match mode {
            Mode::Disable => SslMode::Disable,
            Mode::Allow | Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        })
    }

    /// Reads the files and creates the TLS configuration. The error is a sentence for the operator.
    pub(super) fn connector(&self, read_file: ReadFile<'_>) -> Result<MakeRustlsConnect, String> {
        let provider = Arc::new(ring::default_provider());
        let verifier =
            Arc::new(ServerVerifier { verification: self.verification(read_file)?, provider: provider.clone() });
        let failed = |error: &dyn fmt::Display| format!("TLS cannot be configured: {error}");
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                let chain = read_certificates("sslcert", certificate, read_file)?;
                let private = read_private_key(key, read_file)?;
                let unusable = |error| {
                    format!("sslcert {} cannot be used with sslkey {}: {error}", certificate.display(), key.display())
                };
                builder.with_client_auth_cert(chain, private).map_err(unusable)?
            }
            _ => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![ALPN_PROTOCOL.to_vec()];
        Ok(MakeRustlsConnect::new(config))
    }

    fn verification(&self, read_file: ReadFile<'_>) -> Result<Verification, String> {
        let mode = self.mode.unwrap_or(Mode::Prefer);
        let trusted = match (&self.roots, mode) {
            (_, Mode::Disable) | (None, Mode::Allow | Mode::Prefer | Mode::Require) => {
                return Ok(Verification::Disabled);
            }
            (Some(Roots::File(path)), _) => TrustedCertificates::from_file(path, read_file)?,
            (Some(Roots::System), _) | (None, Mode::VerifyCa | Mode::VerifyFull) => TrustedCertificates::from_system(),
        };
        Ok(if mode == Mode::VerifyFull { Verification::ChainAndName(trusted) } else { Verification::Chain(trusted) })
    }
}

fn parse_mode(text: &str) -> Result<Mode, String> {
    Ok(match text {
        "disable" => Mode::Disable,
        "allow" => Mode::Allow,
        "prefer" => Mode::Prefer,
        "require" => Mode::Require,
        "verify-ca" => Mode::VerifyCa,
        "verify-full" => Mode::VerifyFull,
        _ => {
            return Err(format!(
                "sslmode must be disable, allow, prefer, require, verify-ca or verify-full, not {text:?}"
            ));
        }
    })
}

/// Reads the certificates in the file of an option.
fn read_certificates(
    option: &str,
    path: &Path,
    read_file: ReadFile<'_>,
) -> Result<Vec<CertificateDer<'static>>, String> {
    let named = |error: &dyn fmt::Display| format!("{option} {} {error}", path.display());
    let pem = read_file(path).map_err(|error| named(&format!("cannot be read: {error}")))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err(named(&"contains no certificate")),
        Ok(found) => Ok(found),
        Err(error) => Err(named(&format!("is not PEM: {error}"))),
    }
}

fn read_private_key(path: &Path, read_file: ReadFile<'_>) -> Result<PrivateKeyDer<'static>, String> {
    let named = |error: &dyn fmt::Display| format!("sslkey {} {error}", path.display());
    let pem = read_file(path).map_err(|error| named(&format!("cannot be read: {error}")))?;
    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| match error {
        pem::Error::NoItemsFound => named(&"contains no private key"),
        error => named(&format!("is not PEM: {error}")),
    })
}

/// The certificates that are trusted.
#[derive(Debug)]
struct TrustedCertificates {
    roots: RootCertStore,
    /// Trusted even if they are not of an authority: the file can contain the server's own self-signed certificate.
    pinned: Vec<CertificateDer<'static>>,
}

impl TrustedCertificates {
    fn from_file(path: &Path, read_file: ReadFile<'_>) -> Result<Self, String> {
        let pinned = read_certificates("sslrootcert", path, read_file)?;
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(pinned.iter().cloned());
        Ok(Self { roots, pinned })
    }

    /// Returns the roots of the system, or those of Mozilla if there are none, as in a minimal container.
    fn from_system() -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        Self { roots, pinned: Vec::new() }
    }
}

/// The certificate of the server is not signed by a trusted authority.
#[derive(Debug, thiserror::Error)]
#[error(
    "the certificate of the database is not signed by a trusted authority: sslrootcert must name a file with the \
     certificate of its authority or, if it is self-signed, with its own"
)]
struct UntrustedCertificate;

impl From<UntrustedCertificate> for rustls::Error {
    fn from(error: UntrustedCertificate) -> Self {
        Self::Other(OtherError(Arc::new(error)))
    }
}

/// Returns whether an error means that the issuer is not trusted. A self-signed certificate is often marked as an
/// authority, and is rejected for that before its issuer is checked.
fn is_unknown_issuer(error: &rustls::Error) -> bool {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
        rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(cause))) => {
            cause.to_string() == "CaUsedAsEndEntity"
        }
        _ => false,
    }
}

/// The checks of a server's certificate.
#[derive(Debug)]
enum Verification {
    /// Nothing. Connections are encrypted, but the identity of the server is not known.
    Disabled,
    Chain(TrustedCertificates),
    ChainAndName(TrustedCertificates),
}

/// Verifies the certificate of the server. The handshake signature, which proves that the server has the key of the
/// certificate, is verified in any case.
#[derive(Debug)]
struct ServerVerifier {
    verification: Verification,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let (TrustedCertificates { roots, pinned }, with_name) = match &self.verification {
            Verification::Disabled => return Ok(ServerCertVerified::assertion()),
            Verification::Chain(trusted) => (trusted, false),
            Verification::ChainAndName(trusted) => (trusted, true),
        };
        let parsed = ParsedCertificate::try_from(certificate)?;
        if !pinned.contains(certificate) {
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, roots, intermediates, now, algorithms)
                .map_err(|error| if is_unknown_issuer(&error) { UntrustedCertificate.into() } else { error })?;
        }
        if with_name {
            verify_server_name(&parsed, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
