//! A client connection that can start TLS and accepts any certificate, or those of one CA.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use restante_http_client::insecure_client_config;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A client connection with or without TLS.
pub(crate) enum ClientStream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl ClientStream {
    pub(crate) fn start_tls(&mut self) {
        self.start_tls_for(&[]);
    }

    /// Starts TLS and offers these protocols by ALPN.
    pub(crate) fn start_tls_for(&mut self, protocols: &[&str]) {
        let Self::Plain(stream) = self else { panic!("TLS is already on") };
        let mut config = insecure_client_config().unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let client = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
        *self = Self::Tls(Box::new(StreamOwned::new(client, stream.try_clone().unwrap())));
    }

    /// Starts TLS with a server of this name that has a certificate of this CA, in PEM.
    pub(crate) fn start_trusting_tls(&mut self, ca: &[u8], name: &str) -> io::Result<()> {
        let Self::Plain(stream) = self else { panic!("TLS is already on") };
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = versions.with_root_certificates(roots).with_no_client_auth();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        client.complete_io(stream)?;
        *self = Self::Tls(Box::new(StreamOwned::new(client, stream.try_clone().unwrap())));
        Ok(())
    }
}

impl Read for ClientStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for ClientStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
