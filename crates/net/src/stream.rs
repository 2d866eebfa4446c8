//! A connection over TCP, a Unix socket, or TLS on either.

use std::borrow::Cow;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use restante_platform::unix_socket::{self, UnixStream};
use rustls::ProtocolVersion;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A connection to a peer.
pub enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
    /// TLS over one of the others.
    Tls(Box<TlsStream<Stream>>),
}

/// The result of a TLS handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsInfo {
    /// The version, such as `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite by its registered name.
    pub cipher: Cow<'static, str>,
}

impl Stream {
    /// Returns the TLS version and cipher suite if the connection is encrypted.
    pub fn tls_info(&self) -> Option<TlsInfo> {
        let Self::Tls(stream) = self else { return None };
        let (_, connection) = stream.get_ref();
        let version = match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "TLS",
        };
        let suite = connection.negotiated_cipher_suite();
        let cipher = suite.and_then(|suite| suite.suite().as_str()).unwrap_or_default();
        // rustls uses its own prefix for the cipher suites of TLS 1.3.
        let cipher = match cipher.strip_prefix("TLS13_") {
            Some(name) => Cow::Owned(format!("TLS_{name}")),
            None => Cow::Borrowed(cipher),
        };
        Some(TlsInfo { version, cipher })
    }

    /// Returns whether the connection is encrypted.
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Returns the address of the peer, which may be a proxy. `None` on a Unix socket, and if the peer has
    /// disconnected.
    pub fn peer_ip(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp(stream) => stream.peer_addr().ok().map(|peer| peer.ip().to_canonical()),
            Self::Unix(_) => None,
            Self::Tls(stream) => stream.get_ref().0.peer_ip(),
        }
    }

    /// Returns the ALPN protocol of the TLS handshake, if any (RFC 7301).
    pub fn alpn_protocol(&self) -> Option<&[u8]> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => None,
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol(),
        }
    }

    /// Waits for the first byte from the peer without consuming it. Fails on a TLS stream.
    pub(super) async fn peek(&self) -> io::Result<u8> {
        let mut byte = [0];
        let peeked = match self {
            Self::Tcp(stream) => stream.peek(&mut byte).await?,
            Self::Unix(stream) => unix_socket::peek(stream, &mut byte).await?,
            Self::Tls(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        if peeked == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(byte[0]) }
    }
}

/// Calls the same method on whichever kind of stream this is.
macro_rules! on_inner {
    ($self:ident, $method:ident ( $($argument:expr),* )) => {
        match $self.get_mut() {
            Stream::Tcp(stream) => Pin::new(stream).$method($($argument),*),
            Stream::Unix(stream) => Pin::new(stream).$method($($argument),*),
            Stream::Tls(stream) => Pin::new(stream.as_mut()).$method($($argument),*),
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        on_inner!(self, poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        on_inner!(self, poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_inner!(self, poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_inner!(self, poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on_inner!(self, poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }
}
