//! A connection on which lines are exchanged: what was read and not yet used, time limits in both directions, and the
//! ways to part. Which lines they are is not known here.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Stream, Tls, TlsInfo};

/// How much room for replies an idle connection keeps.
const IDLE_REPLY_CAPACITY: usize = 1024;
/// How long a peer has to close when we have.
const LINGER_TIMEOUT: Duration = Duration::from_millis(500);
/// How many more reads of what it sends meanwhile are thrown away.
const MAX_LINGER_READS: usize = 256;

/// See the file's documentation.
pub struct LineStream {
    stream: Stream,
    /// What was read and not yet used.
    pub input: BytesMut,
    /// How long the peer may take for what is written to it.
    timeout: Duration,
}

/// What a wait for input ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// There is more input.
    Data,
    /// The peer has closed.
    Closed,
    /// Nothing came in time.
    TimedOut,
}

impl LineStream {
    /// A connection whose peer takes what is written within the time.
    pub fn new(stream: Stream, timeout: Duration) -> Self {
        Self { stream, input: BytesMut::new(), timeout }
    }

    /// Whether the connection is encrypted.
    pub fn is_tls(&self) -> bool {
        self.stream.is_tls()
    }

    /// How it is encrypted, where it is.
    pub fn tls_info(&self) -> Option<TlsInfo> {
        self.stream.tls_info()
    }

    /// Makes sure that so many bytes can be read at once.
    pub fn reserve_input(&mut self, bytes: usize) {
        self.input.reserve(bytes);
    }

    /// The same for a connection that may be idle from now on: a buffer that has become larger than that is given back when
    /// it is empty.
    pub fn reserve_idle_input(&mut self, bytes: usize) {
        // Only the reservation shows how large the buffer is: what was used of it does not count to its capacity before.
        self.input.reserve(bytes);
        if self.input.is_empty() && self.input.capacity() > bytes {
            self.input = BytesMut::with_capacity(bytes);
        }
    }

    /// Waits for more input until the deadline.
    pub async fn read(&mut self, deadline: Instant) -> io::Result<ReadOutcome> {
        match timeout_at(deadline, self.stream.read_buf(&mut self.input)).await {
            Err(_) => Ok(ReadOutcome::TimedOut),
            Ok(Ok(0)) => Ok(ReadOutcome::Closed),
            Ok(Ok(_)) => Ok(ReadOutcome::Data),
            Ok(Err(error)) => Err(error),
        }
    }

    /// Waits until the peer has closed, or the connection breaks. What comes meanwhile is kept as input. When that is so many
    /// bytes, no more is read, so that the end behind it is not noticed.
    pub async fn peer_disconnected(&mut self, bytes: usize) {
        while self.input.len() < bytes {
            self.input.reserve(bytes - self.input.len());
            if self.stream.read_buf(&mut self.input).await.unwrap_or(0) == 0 {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Writes the replies and clears them. A peer that sends and never reads would block us here for ever, so it has a time
    /// limit.
    pub async fn write(&mut self, now: Instant, replies: &mut Vec<u8>) -> io::Result<()> {
        self.write_until(now + self.timeout, replies).await
    }

    /// The same, for a peer that has until the deadline.
    pub async fn write_until(&mut self, deadline: Instant, replies: &mut Vec<u8>) -> io::Result<()> {
        if replies.is_empty() {
            return Ok(());
        }
        let written = async {
            self.stream.write_all(replies).await?;
            self.stream.flush().await
        };
        timeout_at(deadline, written).await??;
        replies.clear();
        replies.shrink_to(IDLE_REPLY_CAPACITY);
        Ok(())
    }

    /// Does the handshake as server. Whatever came in the clear before it is thrown away, not obeyed (RFC 3207 section 4.2,
    /// RFC 2595 section 4).
    pub async fn start_tls(self, tls: &Tls) -> io::Result<Self> {
        Ok(Self::new(tls.accept(self.stream).await?, self.timeout))
    }

    /// Parts with a peer that has said goodbye first.
    pub async fn close_after_quit(&mut self) -> io::Result<()> {
        if self.stream.is_tls() {
            // Without TLS the end of the connection says it all.
            timeout(LINGER_TIMEOUT, self.stream.shutdown()).await??;
        }
        Ok(())
    }

    /// Parts with a peer that may still be sending, and waits a moment until it has closed too. Closing with input unread
    /// would make the system reset the connection, and the peer could miss our last words.
    pub async fn close(&mut self) -> io::Result<()> {
        let lingering = async {
            self.stream.shutdown().await?;
            for _ in 0..MAX_LINGER_READS {
                self.input.clear();
                if self.stream.read_buf(&mut self.input).await? == 0 {
                    break;
                }
            }
            Ok(())
        };
        timeout(LINGER_TIMEOUT, lingering).await.unwrap_or(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixStream;

    use super::*;

    const SOON: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_mins(1);

    fn pair() -> (UnixStream, LineStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (ours, LineStream::new(Stream::Unix(theirs), LONG))
    }

    #[tokio::test]
    async fn a_peer_that_leaves_is_noticed_and_what_it_said_is_kept() {
        let (mut peer, mut wire) = pair();
        peer.write_all(b"NOOP\r\n").await.unwrap();
        assert!(timeout(SOON, wire.peer_disconnected(100)).await.is_err(), "it is still there");
        assert_eq!(&wire.input[..], b"NOOP\r\n");
        peer.write_all(b"QUIT\r\n").await.unwrap();
        drop(peer);
        timeout(LONG, wire.peer_disconnected(100)).await.unwrap();
        assert_eq!(&wire.input[..], b"NOOP\r\nQUIT\r\n");
    }

    #[tokio::test]
    async fn what_is_kept_of_a_peer_that_is_not_heard_is_bounded() {
        let (mut peer, mut wire) = pair();
        peer.write_all(&[b'x'; 10_000]).await.unwrap();
        drop(peer);
        assert!(timeout(SOON, wire.peer_disconnected(100)).await.is_err());
        assert!(wire.input.len() < 1000, "{}", wire.input.len());
    }

    #[tokio::test]
    async fn a_buffer_is_kept_within_a_message_and_given_back_behind_it() {
        let (_peer, mut wire) = pair();
        wire.input = BytesMut::with_capacity(1000);
        let buffer = wire.input.as_ptr();
        wire.reserve_input(500);
        assert_eq!((wire.input.as_ptr(), wire.input.capacity()), (buffer, 1000));
        // All of it but a little has been used.
        wire.input.extend_from_slice(&[0; 990]);
        wire.input.clear();
        wire.reserve_idle_input(100);
        assert_eq!(wire.input.capacity(), 100);
    }
}
