//! A connection on which lines are exchanged: what was read and not yet used, time limits in both directions, and the
//! ways to part. Which lines they are is not known here.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Stream, Tls};

/// How much room for replies an idle connection keeps.
const REPLY_BUFFER: usize = 1024;
/// How long a peer has to close when we have.
const LINGER: Duration = Duration::from_millis(500);
/// How many more reads of what it sends meanwhile are thrown away.
const LINGER_READS: usize = 256;

/// See the file's documentation.
pub struct Wire {
    stream: Stream,
    /// What was read and not yet used.
    pub input: BytesMut,
    /// How long the peer may take for what is written to it.
    timeout: Duration,
}

/// What a wait for input ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// There is more input.
    Something,
    /// The peer has closed.
    End,
    /// Nothing came in time.
    Silence,
}

impl Wire {
    /// A connection whose peer takes what is written within the time.
    pub fn new(stream: Stream, timeout: Duration) -> Self {
        Self { stream, input: BytesMut::new(), timeout }
    }

    /// Whether the connection is encrypted.
    pub fn is_tls(&self) -> bool {
        self.stream.is_tls()
    }

    /// Makes sure that so many bytes can be read at once. A buffer that has become larger than that is given back as soon as
    /// it is empty, so that an idle connection holds a small one only.
    pub fn make_room(&mut self, bytes: usize) {
        if self.input.is_empty() && self.input.capacity() > bytes {
            self.input = BytesMut::new();
        }
        self.input.reserve(bytes);
    }

    /// Waits for more input until the deadline.
    pub async fn read(&mut self, deadline: Instant) -> io::Result<Heard> {
        match timeout_at(deadline, self.stream.read_buf(&mut self.input)).await {
            Err(_) => Ok(Heard::Silence),
            Ok(Ok(0)) => Ok(Heard::End),
            Ok(Ok(_)) => Ok(Heard::Something),
            Ok(Err(error)) => Err(error),
        }
    }

    /// Writes the replies and clears them. A peer that sends and never reads would block us here for ever, so it has a time
    /// limit.
    pub async fn write(&mut self, replies: &mut Vec<u8>) -> io::Result<()> {
        self.write_until(Instant::now() + self.timeout, replies).await
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
        replies.shrink_to(REPLY_BUFFER);
        Ok(())
    }

    /// Does the handshake as server. Whatever came in the clear before it is thrown away, not obeyed (RFC 3207 section 4.2,
    /// RFC 2595 section 4).
    pub async fn start_tls(self, tls: &Tls) -> io::Result<Self> {
        Ok(Self::new(tls.accept(self.stream).await?, self.timeout))
    }

    /// Parts with a peer that has said goodbye first.
    pub async fn quit(&mut self) -> io::Result<()> {
        if self.stream.is_tls() {
            // Without TLS the end of the connection says it all.
            timeout(LINGER, self.stream.shutdown()).await??;
        }
        Ok(())
    }

    /// Parts with a peer that may still be sending, and waits a moment until it has closed too. Closing with input unread
    /// would make the system reset the connection, and the peer could miss our last words.
    pub async fn close(&mut self) -> io::Result<()> {
        let lingering = async {
            self.stream.shutdown().await?;
            for _ in 0..LINGER_READS {
                self.input.clear();
                if self.stream.read_buf(&mut self.input).await? == 0 {
                    break;
                }
            }
            Ok(())
        };
        timeout(LINGER, lingering).await.unwrap_or(Ok(()))
    }
}
