//! A stream that detects that its peer has closed the connection while no task reads from it. Hyper does not read while
//! it sends a response. Without this stream, a response that waits for events would not notice that its client has
//! disconnected.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The maximum number of bytes that are read ahead to detect the end of the stream. If the peer sends more, detection
/// stops: a disconnect is then noticed only by the next write.
const MAX_READ_AHEAD_BYTES: usize = 4 * 1024;

/// A stream whose [`Disconnect`] reports when the peer closes it. See the module documentation.
pub(crate) struct MonitoredStream<S>(Arc<Mutex<StreamState<S>>>);

/// Reports that the peer has closed the connection. Cheap to clone.
#[derive(Clone)]
pub struct Disconnect(Arc<Mutex<StreamState<dyn AsyncRead + Unpin + Send>>>);

/// A stream, and the bytes that were read ahead from it.
struct StreamState<S: ?Sized> {
    read_ahead: Vec<u8>,
    is_closed: bool,
    /// The waker of a task whose read is pending. Reading ahead must wake it explicitly.
    reader_waker: Option<Waker>,
    stream: S,
}

impl<S: AsyncRead + Unpin + Send + 'static> MonitoredStream<S> {
    /// Wraps a stream and returns the handle that reports its end.
    pub(crate) fn new(stream: S) -> (Self, Disconnect) {
        let state = StreamState { read_ahead: Vec::new(), is_closed: false, reader_waker: None, stream };
        let state = Arc::new(Mutex::new(state));
        (Self(state.clone()), Disconnect(state))
    }
}

impl Disconnect {
    /// Waits until the peer has closed its side of the connection, or the connection fails. Any number of futures can
    /// wait, but all of them in the task that serves the connection: a stream wakes only one task.
    pub async fn wait(&self) {
        poll_fn(|cx| self.0.lock().poll_disconnect(cx)).await;
    }
}

impl<S: AsyncRead + Unpin + ?Sized> StreamState<S> {
    fn poll_disconnect(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.is_closed && self.read_ahead.len() < MAX_READ_AHEAD_BYTES {
            let mut chunk = [0; 512];
            let mut chunk = ReadBuf::new(&mut chunk);
            let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, &mut chunk) else { break };
            // An error shows up again at the next use of the stream.
            self.is_closed = read.is_err() || chunk.filled().is_empty();
            self.read_ahead.extend_from_slice(chunk.filled());
            if let Some(reader) = self.reader_waker.take() {
                reader.wake();
            }
        }
        if self.is_closed { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MonitoredStream<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let state = &mut *self.0.lock();
        if !state.read_ahead.is_empty() {
            let length = state.read_ahead.len().min(buf.remaining());
            buf.put_slice(&state.read_ahead[..length]);
            state.read_ahead.drain(..length);
            return Poll::Ready(Ok(()));
        }
        if state.is_closed {
            return Poll::Ready(Ok(()));
        }
        let read = Pin::new(&mut state.stream).poll_read(cx, buf);
        state.reader_waker = read.is_pending().then(|| cx.waker().clone());
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MonitoredStream<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0.lock().stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0.lock().stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.lock().stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiting_for_disconnect_loses_no_data() {
        for length in [0, 1, 511, 512, 513, MAX_READ_AHEAD_BYTES, MAX_READ_AHEAD_BYTES + 1, 3 * MAX_READ_AHEAD_BYTES] {
            let (mut peer, server) = duplex(1 << 16);
            let (mut server, disconnect) = MonitoredStream::new(server);
            let sent: Vec<u8> = (0..length).map(|number| number.to_le_bytes()[0]).collect();
            peer.write_all(&sent).await.unwrap();
            let waiting = timeout(Duration::from_secs(1), disconnect.wait());
            assert!(waiting.await.is_err(), "{length}: the peer is still connected");
            drop(peer);
            let waiting = timeout(Duration::from_secs(1), disconnect.wait());
            // A peer that has sent more than the limit is not monitored to the end.
            assert_eq!(waiting.await.is_ok(), length < MAX_READ_AHEAD_BYTES, "{length}");
            let mut read = Vec::new();
            server.read_to_end(&mut read).await.unwrap();
            assert_eq!(read, sent, "{length}");
        }
    }

    /// Like a task that reads a request body while another task waits for the disconnect.
    #[tokio::test(start_paused = true)]
    async fn read_ahead_wakes_pending_reader() {
        let (mut peer, server) = duplex(1 << 16);
        let (mut server, disconnect) = MonitoredStream::new(server);
        let reading = tokio::spawn(async move {
            let mut read = Vec::new();
            server.read_to_end(&mut read).await.unwrap();
            read
        });
        tokio::task::yield_now().await;
        // The futures are polled with a waker that does nothing, so only the stream itself can wake the reader.
        let mut cx = Context::from_waker(Waker::noop());
        let mut waiting = [Box::pin(disconnect.wait()), Box::pin(disconnect.wait())];
        assert!(waiting.iter_mut().all(|future| future.as_mut().poll(&mut cx).is_pending()));
        peer.write_all(b"some").await.unwrap();
        assert!(waiting.iter_mut().all(|future| future.as_mut().poll(&mut cx).is_pending()));
        drop(peer);
        assert!(waiting.iter_mut().all(|future| future.as_mut().poll(&mut cx).is_ready()));
        assert_eq!(reading.await.unwrap(), b"some");
    }
}
