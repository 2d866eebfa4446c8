//! The stream of a session: a TCP connection with or without TLS that records lines and limits replies.

use std::future::poll_fn;
use std::io::{Error, ErrorKind, Result};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncBufRead as _, AsyncRead, AsyncWrite, BufReader, BufWriter, ReadBuf, empty};

use super::recorder::Recorder;

/// The size of the write buffer.
const WRITE_BUFFER_BYTES: usize = 16 * 1024;

/// A TCP connection, with or without TLS.
pub(super) trait Connection: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Connection for T {}

/// A connection that is recorded. Every read returns at most one line, so that bytes after a reply stay in the buffer.
pub(super) struct RecordedStream {
    io: BufReader<BufWriter<Box<dyn Connection>>>,
    is_encrypted: bool,
    pub(super) recorder: Recorder,
}

impl RecordedStream {
    /// Creates a stream without a connection.
    pub(super) fn new() -> Self {
        Self { io: buffered(Box::new(empty())), is_encrypted: false, recorder: Recorder::new() }
    }

    /// Sets the connection.
    pub(super) fn set_connection(&mut self, connection: impl Connection + 'static, is_encrypted: bool) {
        (self.io, self.is_encrypted) = (buffered(Box::new(connection)), is_encrypted);
    }

    /// Takes the connection, with the bytes that were received and not yet read.
    pub(super) fn take_connection(&mut self) -> (Box<dyn Connection>, Vec<u8>) {
        self.is_encrypted = false;
        let io = mem::replace(&mut self.io, buffered(Box::new(empty())));
        let unread = io.buffer().to_vec();
        (io.into_inner().into_inner(), unread)
    }

    /// Returns whether the connection uses TLS.
    pub(super) fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// Returns whether the server has sent something that was not yet read, or has closed the connection.
    pub(super) async fn has_input(&mut self) -> bool {
        poll_fn(|cx| Poll::Ready(Pin::new(&mut self.io).poll_fill_buf(cx).is_ready())).await
    }
}

fn buffered(connection: Box<dyn Connection>) -> BufReader<BufWriter<Box<dyn Connection>>> {
    BufReader::new(BufWriter::with_capacity(WRITE_BUFFER_BYTES, connection))
}

impl AsyncRead for RecordedStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let Self { io, recorder, .. } = self.get_mut();
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
        let Self { io, recorder, .. } = self.get_mut();
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
