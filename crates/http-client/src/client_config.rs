//! TLS configurations of clients that verify the certificate of the server.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::HttpError;

/// Returns a client configuration that trusts the roots of the system, or those of Mozilla if there are none, as in a
/// minimal container. Reads files.
pub fn system_client_config() -> Result<ClientConfig, HttpError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    client_config(roots)
}

/// Returns a client configuration that trusts only these certificates and those signed by one of them. `pem` is text in
/// PEM format. The error is a clause such as `it contains no certificate`.
pub fn client_config_with_roots(pem: &[u8]) -> Result<ClientConfig, HttpError> {
    let invalid = |error: &dyn std::fmt::Display| HttpError::InvalidRequest(format!("it is not valid: {error}"));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(|error| invalid(&error))?).map_err(|error| invalid(&error))?;
    }
    if roots.is_empty() {
        return Err(HttpError::InvalidRequest("it contains no certificate".to_owned()));
    }
    client_config(roots)
}

fn client_config(roots: RootCertStore) -> Result<ClientConfig, HttpError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| HttpError::Network(format!("TLS cannot be configured: {error}")))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
