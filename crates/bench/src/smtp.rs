//! A small SMTP client (RFC 5321) over a plain TCP connection: greeting, EHLO, sequential or pipelined transactions
//! (RFC 2920), QUIT.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::error::Error;
use crate::message::{END_OF_DATA, Envelope};

/// The timeout of a transaction, or of opening a session.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum length of a reply with all its lines.
const MAX_REPLY_BYTES: usize = 16 * 1024;

/// Whether the commands of a transaction are pipelined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandMode {
    /// Every command waits for the reply to the one before it.
    Sequential,
    /// MAIL, RCPT and DATA are sent at once.
    Pipelined,
}

/// Resolves `HOST:PORT` once, so that connecting needs no lookup later.
pub(crate) async fn resolve(host_and_port: &str) -> Result<Vec<SocketAddr>, Error> {
    let found = lookup_host(host_and_port).await;
    Ok(found.map_err(|_| Error::Usage(format!("cannot find the address of {host_and_port:?}")))?.collect())
}

/// An open session for transactions.
pub(crate) struct Client {
    stream: TcpStream,
    /// Received bytes; everything before `consumed` has been returned as a reply.
    buffer: Vec<u8>,
    consumed: usize,
}

impl Client {
    /// Connects, reads the greeting and sends EHLO.
    pub(crate) async fn connect(addresses: &[SocketAddr]) -> Result<Self, Error> {
        with_timeout(async {
            let mut client = Self { stream: connect(addresses).await?, buffer: Vec::with_capacity(1024), consumed: 0 };
            client.read_reply().await?.expect(2)?;
            client.command(b"EHLO bench.example\r\n", 2).await?;
            Ok(client)
        })
        .await
    }

    /// Sends one message. `message` ends with its end-of-data line. After [`Error::Refused`] the session can continue
    /// with [`Client::reset`]; after any other error it must not be used again.
    pub(crate) async fn send(&mut self, envelope: &Envelope, message: &[u8], mode: CommandMode) -> Result<(), Error> {
        with_timeout(async {
            match mode {
                CommandMode::Sequential => self.send_envelope_sequential(envelope).await?,
                CommandMode::Pipelined => self.send_envelope_pipelined(envelope).await?,
            }
            self.command(message, 2).await
        })
        .await
    }

    /// Resets a refused transaction.
    pub(crate) async fn reset(&mut self) -> Result<(), Error> {
        with_timeout(self.command(b"RSET\r\n", 2)).await
    }

    /// Ends the session with QUIT.
    pub(crate) async fn quit(mut self) -> Result<(), Error> {
        with_timeout(self.command(b"QUIT\r\n", 2)).await
    }

    async fn send_envelope_sequential(&mut self, envelope: &Envelope) -> Result<(), Error> {
        let data = envelope.len() - 1;
        for (n, line) in envelope.lines().enumerate() {
            self.command(line, if n == data { 3 } else { 2 }).await?;
        }
        Ok(())
    }

    /// Sends the envelope at once and reads all replies, also after a refusal. RFC 2920 section 3.1: a client that
    /// pipelines DATA must expect a 354 although no recipient was accepted, and then send an empty message.
    async fn send_envelope_pipelined(&mut self, envelope: &Envelope) -> Result<(), Error> {
        self.write(envelope.as_bytes()).await?;
        let mut refusal = None;
        for _ in 1..envelope.len() {
            refusal = refusal.or(self.read_reply().await?.expect(2).err());
        }
        let data_reply = self.read_reply().await?.expect(3);
        match (refusal, data_reply) {
            (None, data_reply) => data_reply,
            (Some(refusal), Err(_)) => Err(refusal),
            (Some(refusal), Ok(())) => {
                self.write(END_OF_DATA).await?;
                self.read_reply().await?;
                Err(refusal)
            }
        }
    }

    async fn command(&mut self, line: &[u8], class: u16) -> Result<(), Error> {
        self.write(line).await?;
        self.read_reply().await?.expect(class)
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.stream.write_all(bytes).await.map_err(|error| Error::io("sending", error))
    }

    async fn read_reply(&mut self) -> Result<Reply<'_>, Error> {
        if self.consumed == self.buffer.len() {
            self.buffer.clear();
            self.consumed = 0;
        }
        let start = self.consumed;
        let (code, length) = loop {
            if let Some(found) = parse_reply(&self.buffer[start..])? {
                break found;
            }
            if self.buffer.len() - start > MAX_REPLY_BYTES {
                return Err(Error::Protocol("reply too long"));
            }
            let read = self.stream.read_buf(&mut self.buffer).await;
            if read.map_err(|error| Error::io("receiving", error))? == 0 {
                return Err(Error::Protocol("connection closed before the reply"));
            }
        };
        self.consumed = start + length;
        Ok(Reply { code, text: &self.buffer[start..self.consumed] })
    }
}

/// One reply of the server with all its lines.
struct Reply<'a> {
    code: u16,
    text: &'a [u8],
}

impl Reply<'_> {
    /// Accepts only codes of the given class: 2 for done, 3 for go ahead.
    fn expect(&self, class: u16) -> Result<(), Error> {
        if self.code / 100 == class {
            return Ok(());
        }
        Err(Error::refused(self.text))
    }
}

/// Parses the first reply and returns its code and length. Returns `None` if it is incomplete. RFC 5321 section 4.2: a
/// hyphen after the code means that more lines with the same code follow.
fn parse_reply(bytes: &[u8]) -> Result<Option<(u16, usize)>, Error> {
    let mut length = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        if !line.ends_with(b"\n") {
            return Ok(None);
        }
        length += line.len();
        let (code, has_more) = match line {
            [a @ b'2'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9', next @ (b' ' | b'-' | b'\r' | b'\n'), ..] => {
                let digit = |byte: &u8| u16::from(byte - b'0');
                (digit(a) * 100 + digit(b) * 10 + digit(c), *next == b'-')
            }
            _ => return Err(Error::Protocol("invalid SMTP reply")),
        };
        if !has_more {
            return Ok(Some((code, length)));
        }
    }
    Ok(None)
}

/// Connects to the first address that accepts it.
pub(crate) async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, Error> {
    let stream = TcpStream::connect(addresses).await.map_err(|error| Error::io("connecting", error))?;
    stream.set_nodelay(true).map_err(|error| Error::io("connecting", error))?;
    Ok(stream)
}

/// Runs `work` with a timeout.
pub(crate) async fn with_timeout<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    timeout(TIMEOUT, work).await.unwrap_or(Err(Error::Timeout))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_replies() {
        let cases = [
            (&b""[..], None),
            (b"250 O", None),
            (b"250 OK\r\n", Some((250, 8))),
            (b"354\r\n", Some((354, 5))),
            (b"250 one\r\n451 two\r\n", Some((250, 9))),
            (b"250-a\r\n250-b\r\n", None),
            (b"250-a\r\n250 b\r\n", Some((250, 14))),
            (b"220 bare newline\n", Some((220, 17))),
        ];
        for (bytes, expected) in cases {
            let found = parse_reply(bytes).expect("these are replies");
            assert_eq!(found, expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn rejects_invalid_replies() {
        for bytes in [&b"HTTP/1.1 200 OK\r\n"[..], b"\r\n", b"25 OK\r\n", b"2500\r\n", b"950 OK\r\n"] {
            assert!(parse_reply(bytes).is_err(), "{}", bytes.escape_ascii());
        }
    }
}
