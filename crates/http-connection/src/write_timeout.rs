//! A stream whose writes fail if the peer reads too slowly. Without it, a client that sends a request and does not read
//! the response would hold the connection and the response forever.
//!
//! The stream starts with an amount of time. Waiting for the peer uses it up, and every byte that the peer reads
//! restores a part, up to the initial amount. So a single pause is tolerated and a slow link is served to the end, but
//! a peer that reads a few bytes now and then is disconnected.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// The limits for a peer that reads slowly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteTimeout {
    /// How long the peer may read nothing at all.
    pub(crate) max_stall: Duration,
    /// The minimum average rate at which the peer must read.
    pub(crate) min_bytes_per_second: u32,
}

/// A stream with a write timeout. See the module documentation.
pub(crate) struct TimeoutStream<S> {
    stream: S,
    timeout: WriteTimeout,
    remaining: Duration,
    /// Runs while the peer reads nothing. Expires when no time remains.
    stall_timer: Option<Pin<Box<Sleep>>>,
}

impl<S> TimeoutStream<S> {
    /// Wraps a stream.
    pub(crate) fn new(stream: S, timeout: WriteTimeout) -> Self {
        Self { stream, timeout, remaining: timeout.max_stall, stall_timer: None }
    }

    /// Returns the result of a write attempt, or an error if no time remains.
    fn check_stall<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            if let Some(stalled) = self.stall_timer.take() {
                self.remaining = stalled.deadline().saturating_duration_since(Instant::now());
            }
            return outcome;
        }
        let left = self.remaining;
        let stalled = self.stall_timer.get_or_insert_with(|| Box::pin(sleep(left)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(ErrorKind::TimedOut.into()))
    }

    /// Like `check_stall`, for attempts that report the number of bytes written.
    fn check_progress(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let outcome = self.check_stall(cx, outcome);
        if let Poll::Ready(Ok(written)) = outcome
            && self.remaining < self.timeout.max_stall
        {
            let written = u32::try_from(written).unwrap_or(u32::MAX);
            let regained = Duration::from_secs(1) * written / self.timeout.min_bytes_per_second;
            self.remaining = (self.remaining + regained).min(self.timeout.max_stall);
        }
        outcome
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.check_progress(cx, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.check_progress(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(cx);
        self.check_stall(cx, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.check_stall(cx, outcome)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const TIMEOUT: WriteTimeout = WriteTimeout { max_stall: Duration::from_mins(1), min_bytes_per_second: 1000 };

    /// Writes to a peer that reads `read_size` bytes and then pauses, repeatedly. Returns the time after which the
    /// write was complete or failed.
    async fn write_to_slow_peer(length: usize, read_size: usize, pause: Duration) -> Result<Duration, Duration> {
        let (mut peer, server) = duplex(100);
        let mut server = TimeoutStream::new(server, TIMEOUT);
        let start = Instant::now();
        let reader = tokio::spawn(async move {
            let mut buffer = vec![0; read_size];
            while peer.read_exact(&mut buffer).await.is_ok() {
                tokio::time::sleep(pause).await;
            }
        });
        let written = server.write_all(&vec![b'x'; length]).await;
        let elapsed = start.elapsed();
        drop(server);
        reader.await.unwrap();
        written.map(|()| elapsed).map_err(|_| elapsed)
    }

    #[tokio::test(start_paused = true)]
    async fn slow_peers_time_out() {
        let seconds = Duration::from_secs;
        // The total bytes, the bytes per read, the pause in seconds, and whether all bytes are written.
        let table = [
            ("nothing for too long", 10_000, 5000, 61, false),
            ("a pause", 10_000, 5000, 50, true),
            ("a trickle", 1_000_000, 6000, 20, false),
            ("a slow link", 1_000_000, 1100, 1, true),
            ("a link that is slightly too slow", 1_000_000, 900, 1, false),
        ];
        for (name, length, read_size, pause, in_time) in table {
            let outcome = write_to_slow_peer(length, read_size, seconds(pause)).await;
            assert_eq!(outcome.is_ok(), in_time, "{name}: {outcome:?}");
        }
        let trickle = write_to_slow_peer(1_000_000, 6000, seconds(20)).await;
        assert!(trickle.is_err_and(|end| end < seconds(120)), "{trickle:?}");
    }
}
