//! A client's end of a connection that can be encrypted, by whatever certificate the server shows.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use restante_http_client::insecure_client_config;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

/// The client's end of a connection.
pub(crate) enum Wire {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Wire {
    pub(crate) fn start_tls(&mut self) {
        self.start_tls_for(&[]);
    }

    /// Starts TLS to speak one of these protocols inside.
    pub(crate) fn start_tls_for(&mut self, protocols: &[&str]) {
        let Self::Plain(stream) = self else { panic!("TLS is on already") };
        let mut config = insecure_client_config().unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let client = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").unwrap()).unwrap();
        *self = Self::Tls(Box::new(StreamOwned::new(client, stream.try_clone().unwrap())));
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Wire {
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
