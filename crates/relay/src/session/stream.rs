//! The stream of a session: a TCP connection with or without TLS that records lines and limits replies.

use std::future::poll_fn;
use std::io::{Error, ErrorKind, Result};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncBufRead as _, AsyncRead, AsyncWrite, BufReader, BufWriter, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::recorder::Recorder;

/// The size of the write buffer.
const WRITE_BUFFER_BYTES: usize = 16 * 1024;

/// A connection.
pub(super) enum Connection {
    /// No connection: before it is open, and after a failure.
    Closed,
    /// Without TLS.
    Plain(TcpStream),
    /// With TLS.
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection that is recorded. Every read returns at most one line, so that bytes after a reply stay in the buffer.
pub(super) struct RecordedStream {
    io: BufReader<BufWriter<Connection>>,
    pub(super) recorder: Recorder,
}

impl RecordedStream {
    pub(super) fn new() -> Self {
        Self { io: buffered(Connection::Closed), recorder: Recorder::new() }
    }

    /// Sets the connection.
    pub(super) fn set_connection(&mut self, connection: Connection) {
        self.io = buffered(connection);
    }

    /// Takes the connection, with the bytes that were received and not yet read.
    pub(super) fn take_connection(&mut self) -> (Connection, Vec<u8>) {
        let io = mem::replace(&mut self.io, buffered(Connection::Closed));
        let unread = io.buffer().to_vec();
        (io.into_inner().into_inner(), unread)
    }

    /// Returns whether the connection uses TLS.
    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self.io.get_ref().get_ref(), Connection::Tls(_))
    }

    /// Returns whether the server has sent something that was not yet read, or has closed the connection.
    pub(super) async fn has_input(&mut self) -> bool {
        poll_fn(|cx| Poll::Ready(Pin::new(&mut self.io).poll_fill_buf(cx).is_ready())).await
    }
}

fn buffered(connection: Connection) -> BufReader<BufWriter<Connection>> {
    BufReader::new(BufWriter::with_capacity(WRITE_BUFFER_BYTES, connection))
}

impl AsyncRead for RecordedStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let Self { io, recorder } = self.get_mut();
        let available = ready!(Pin::new(&mut *io).poll_fill_buf(cx))?;
        if available.is_empty() {
            return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
        }
        let line_end = memchr::memchr(b'\n', available).map_or(available.len(), |end| end + 1);
        let bytes = &available[..line_end.min(buf.remaining())];
        if !recorder.record_read(bytes) {
            return Poll::Ready(Err(Error::new(ErrorKind::InvalidData, "the reply of the server is too long")));
        }
        buf.put_slice(bytes);
        let count = bytes.len();
        Pin::new(io).consume(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for RecordedStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<Result<usize>> {
        let Self { io, recorder } = self.get_mut();
        let count = ready!(Pin::new(io).poll_write(cx, buf))?;
        recorder.record_written(&buf[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        match self.get_mut() {
            Self::Closed => Poll::Ready(Err(ErrorKind::NotConnected.into())),
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<Result<usize>> {
        match self.get_mut() {
            Self::Closed => Poll::Ready(Err(ErrorKind::NotConnected.into())),
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match self.get_mut() {
            Self::Closed => Poll::Ready(Err(ErrorKind::NotConnected.into())),
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match self.get_mut() {
            Self::Closed => Poll::Ready(Ok(())),
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
