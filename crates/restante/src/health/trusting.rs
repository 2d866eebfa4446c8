//! TLS with whoever is at the other end. The question is whether our own server on this machine does its work, and nothing
//! secret is said: who else might answer does not matter. A certificate made at start is known to nobody, and one that is
//! for the server's name is not for `127.0.0.1`; whether clients trust it is for them to say.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

/// Puts TLS on a stream. The handshake is done when something is said. The error is a sentence for the operator.
pub(super) fn encrypt<S: Read + Write>(stream: S) -> Result<StreamOwned<ClientConnection, S>, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map(|builder| builder.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider))))
        .map(|builder| Arc::new(builder.with_no_client_auth()));
    let name = ServerName::try_from("localhost").map_err(|error| error.to_string())?;
    let client = config.and_then(|config| ClientConnection::new(config, name));
    Ok(StreamOwned::new(client.map_err(|error| format!("cannot be asked by TLS: {error}"))?, stream))
}

/// Trusts every certificate. Whoever shows it must have its key, as always.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
