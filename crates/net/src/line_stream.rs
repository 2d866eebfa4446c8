//! A connection of a line-based protocol: the input buffer, timeouts in both directions, and the ways to close. The
//! protocol itself is not part of it.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Stream, Tls, TlsInfo};

/// The reply capacity that an idle connection keeps.
const IDLE_REPLY_CAPACITY: usize = 1024;
/// How long to wait until the peer closes the connection, after the server has closed its side.
const LINGER_TIMEOUT: Duration = Duration::from_millis(500);
/// The maximum number of reads during this time. Their data is discarded.
const MAX_LINGER_READS: usize = 256;

/// A stream with an input buffer and timeouts.
pub struct LineStream {
    stream: Stream,
    /// Data that was read and not yet consumed.
    pub input: BytesMut,
    /// How long a write may take.
    timeout: Duration,
}

/// The outcome of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// Data was read.
    Data,
    /// The peer has closed the connection.
    Closed,
    /// The deadline has passed.
    TimedOut,
}

impl LineStream {
    /// Wraps a stream. `timeout` limits each write.
    pub fn new(stream: Stream, timeout: Duration) -> Self {
        Self { stream, input: BytesMut::new(), timeout }
    }

    /// Returns whether the connection is encrypted.
    pub fn is_tls(&self) -> bool {
        self.stream.is_tls()
    }

    /// Returns the TLS version and cipher suite if the connection is encrypted.
    pub fn tls_info(&self) -> Option<TlsInfo> {
        self.stream.tls_info()
    }

    /// Reserves space for a connection that may now be idle. An empty buffer that is larger than `bytes` is replaced.
    pub fn reserve_idle_input(&mut self, bytes: usize) {
        // The capacity shows the real size of the buffer only after the reservation.
        self.input.reserve(bytes);
        if self.input.is_empty() && self.input.capacity() > bytes {
            self.input = BytesMut::with_capacity(bytes);
        }
    }

    /// Reads more input, until the deadline.
    pub async fn read(&mut self, deadline: Instant) -> io::Result<ReadOutcome> {
        match timeout_at(deadline, self.stream.read_buf(&mut self.input)).await {
            Err(_) => Ok(ReadOutcome::TimedOut),
            Ok(Ok(0)) => Ok(ReadOutcome::Closed),
            Ok(Ok(_)) => Ok(ReadOutcome::Data),
            Ok(Err(error)) => Err(error),
        }
    }

    /// Waits until the peer disconnects. Data that arrives meanwhile is buffered. Once `max_bytes` bytes are buffered,
    /// nothing more is read and a disconnect is not noticed.
    pub async fn peer_disconnected(&mut self, max_bytes: usize) {
        while self.input.len() < max_bytes {
            self.input.reserve(max_bytes - self.input.len());
            if self.stream.read_buf(&mut self.input).await.unwrap_or(0) == 0 {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Writes the replies and clears them. The timeout is necessary: a peer that sends and never reads would block the
    /// write forever.
    pub async fn write(&mut self, now: Instant, replies: &mut Vec<u8>) -> io::Result<()> {
        self.write_until(now + self.timeout, replies).await
    }

    /// Writes the replies and clears them, with this deadline.
    pub async fn write_until(&mut self, deadline: Instant, replies: &mut Vec<u8>) -> io::Result<()> {
        if replies.is_empty() {
            return Ok(());
        }
        let write = async {
            self.stream.write_all(replies).await?;
            self.stream.flush().await
        };
        timeout_at(deadline, write).await??;
        replies.clear();
        replies.shrink_to(IDLE_REPLY_CAPACITY);
        Ok(())
    }

    /// Performs the TLS handshake as server. Input from before it is discarded (RFC 3207 section 4.2, RFC 2595 section
    /// 4).
    pub async fn start_tls(self, tls: &Tls) -> io::Result<Self> {
        Ok(Self::new(tls.accept(self.stream).await?, self.timeout))
    }

    /// Closes the connection after the peer has ended the session.
    pub async fn close_after_quit(&mut self) -> io::Result<()> {
        if self.stream.is_tls() {
            // Without TLS there is nothing to send.
            timeout(LINGER_TIMEOUT, self.stream.shutdown()).await??;
        }
        Ok(())
    }

    /// Closes the connection to a peer that may still be sending, and waits briefly until the peer closes too. Closing
    /// with unread input makes the system reset the connection, and the peer could miss the last reply.
    pub async fn close(&mut self) -> io::Result<()> {
        let closing = async {
            self.stream.shutdown().await?;
            for _ in 0..MAX_LINGER_READS {
                self.input.clear();
                if self.stream.read_buf(&mut self.input).await? == 0 {
                    break;
                }
            }
            Ok(())
        };
        timeout(LINGER_TIMEOUT, closing).await.unwrap_or(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixStream;

    use super::*;

    const SOON: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_mins(1);

    fn pair() -> (UnixStream, LineStream) {
        let (client_end, server_end) = UnixStream::pair().unwrap();
        (client_end, LineStream::new(Stream::Unix(server_end), LONG))
    }

    #[tokio::test]
    async fn disconnect_is_noticed_and_input_is_kept() {
        let (mut peer, mut stream) = pair();
        peer.write_all(b"NOOP\r\n").await.unwrap();
        assert!(timeout(SOON, stream.peer_disconnected(100)).await.is_err(), "the peer is still connected");
        assert_eq!(&stream.input[..], b"NOOP\r\n");
        peer.write_all(b"QUIT\r\n").await.unwrap();
        drop(peer);
        timeout(LONG, stream.peer_disconnected(100)).await.unwrap();
        assert_eq!(&stream.input[..], b"NOOP\r\nQUIT\r\n");
    }

    #[tokio::test]
    async fn input_buffered_while_waiting_is_limited() {
        let (mut peer, mut stream) = pair();
        peer.write_all(&[b'x'; 10_000]).await.unwrap();
        drop(peer);
        assert!(timeout(SOON, stream.peer_disconnected(100)).await.is_err());
        assert!(stream.input.len() < 1000, "{}", stream.input.len());
    }

    #[tokio::test]
    async fn buffer_is_kept_within_a_message_and_released_after_it() {
        let (_peer, mut stream) = pair();
        stream.input = BytesMut::with_capacity(1000);
        let buffer = stream.input.as_ptr();
        stream.input.reserve(500);
        assert_eq!((stream.input.as_ptr(), stream.input.capacity()), (buffer, 1000));
        // Almost all of it has been used.
        stream.input.extend_from_slice(&[0; 990]);
        stream.input.clear();
        stream.reserve_idle_input(100);
        assert_eq!(stream.input.capacity(), 100);
    }
}
