//! A client connection that can start TLS and accepts any certificate.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use restante_http_client::insecure_client_config;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

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
