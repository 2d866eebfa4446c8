//! A stream that shows when its peer has closed, although nobody reads from it at the moment. Hyper does not read while
//! it sends an answer, so an answer that waits for something to tell would not learn that there is nobody to tell it
//! to.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much is read ahead while the end is looked for. A peer that sends more is not looked after any further: it is
/// there, and whether it still is shows when it is written to.
const MAX_AHEAD: usize = 4 * 1024;

/// See the module's documentation.
pub(crate) struct Observed<S>(Arc<Mutex<Line<S>>>);

/// The way to learn that the peer has closed. Cheap to clone.
#[derive(Clone)]
pub struct Departure(Arc<dyn Ends>);

/// A stream, and what was read of it before anybody asked.
struct Line<S> {
    stream: S,
    ahead: Vec<u8>,
    has_ended: bool,
    /// Who wants to read and found nothing yet. What is read ahead does not wake it by itself.
    reader: Option<Waker>,
}

impl<S: AsyncRead + Unpin + Send + 'static> Observed<S> {
    /// The stream, and the way to learn of its end.
    pub(crate) fn new(stream: S) -> (Self, Departure) {
        let line = Arc::new(Mutex::new(Line { stream, ahead: Vec::new(), has_ended: false, reader: None }));
        (Self(line.clone()), Departure(line))
    }
}

impl Departure {
    /// Waits until the peer has closed its side of the connection, or broken it off. Any number may wait, but all of them
    /// in the task that also serves the connection: a stream wakes up only one.
    pub async fn happened(&self) {
        poll_fn(|cx| self.0.poll_end(cx)).await;
    }
}

/// What comes to an end, whatever kind of stream it is.
trait Ends: Send + Sync {
    fn poll_end(&self, cx: &mut Context<'_>) -> Poll<()>;
}

impl<S: AsyncRead + Unpin + Send> Ends for Mutex<Line<S>> {
    fn poll_end(&self, cx: &mut Context<'_>) -> Poll<()> {
        lock(self).poll_end(cx)
    }
}

impl<S: AsyncRead + Unpin> Line<S> {
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.has_ended && self.ahead.len() < MAX_AHEAD {
            let mut piece = [0; 512];
            let mut piece = ReadBuf::new(&mut piece);
            let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, &mut piece) else { break };
            // Whatever is wrong with the stream, the next one to use it will learn it.
            self.has_ended = read.is_err() || piece.filled().is_empty();
            self.ahead.extend_from_slice(piece.filled());
            if let Some(reader) = self.reader.take() {
                reader.wake();
            }
        }
        if self.has_ended { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Observed<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let line = &mut *lock(&self.0);
        if !line.ahead.is_empty() {
            let length = line.ahead.len().min(buf.remaining());
            buf.put_slice(&line.ahead[..length]);
            line.ahead.drain(..length);
            return Poll::Ready(Ok(()));
        }
        if line.has_ended {
            return Poll::Ready(Ok(()));
        }
        let read = Pin::new(&mut line.stream).poll_read(cx, buf);
        line.reader = read.is_pending().then(|| cx.waker().clone());
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Observed<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut lock(&self.0).stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut lock(&self.0).stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        lock(&self.0).stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut lock(&self.0).stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut lock(&self.0).stream).poll_shutdown(cx)
    }
}

fn lock<S>(line: &Mutex<Line<S>>) -> MutexGuard<'_, Line<S>> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn looking_for_the_end_loses_nothing() {
        for length in [0, 1, 511, 512, 513, MAX_AHEAD, MAX_AHEAD + 1, 3 * MAX_AHEAD] {
            let (mut peer, server) = duplex(1 << 16);
            let (mut server, departure) = Observed::new(server);
            let sent: Vec<u8> = (0..length).map(|number| number.to_le_bytes()[0]).collect();
            peer.write_all(&sent).await.unwrap();
            let looking = timeout(Duration::from_secs(1), departure.happened());
            assert!(looking.await.is_err(), "{length}: it is still there");
            drop(peer);
            let looking = timeout(Duration::from_secs(1), departure.happened());
            // Who has sent so much that it waits to be read is not waited for to the end.
            assert_eq!(looking.await.is_ok(), length < MAX_AHEAD, "{length}");
            let mut read = Vec::new();
            server.read_to_end(&mut read).await.unwrap();
            assert_eq!(read, sent, "{length}");
        }
    }

    /// As one who reads the body of a request while somebody else looks for the end of it.
    #[tokio::test(start_paused = true)]
    async fn who_reads_learns_of_what_others_have_found() {
        let (mut peer, server) = duplex(1 << 16);
        let (mut server, departure) = Observed::new(server);
        let reading = tokio::spawn(async move {
            let mut read = Vec::new();
            server.read_to_end(&mut read).await.unwrap();
            read
        });
        tokio::task::yield_now().await;
        // None of those who look wakes up anybody by itself.
        let mut cx = Context::from_waker(Waker::noop());
        let mut looking = [Box::pin(departure.happened()), Box::pin(departure.happened())];
        assert!(looking.iter_mut().all(|one| one.as_mut().poll(&mut cx).is_pending()));
        peer.write_all(b"some").await.unwrap();
        assert!(looking.iter_mut().all(|one| one.as_mut().poll(&mut cx).is_pending()));
        drop(peer);
        assert!(looking.iter_mut().all(|one| one.as_mut().poll(&mut cx).is_ready()));
        assert_eq!(reading.await.unwrap(), b"some");
    }
}
