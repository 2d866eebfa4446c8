//! A small SMTP client (RFC 5321) over a plain TCP connection: greeting, EHLO, sequential or pipelined transactions
//! (RFC 2920), QUIT.

use std::net::SocketAddr;

use crate::connection::{Connection, with_timeout};
use crate::error::Error;
use crate::message::{END_OF_DATA, Envelope};

/// The maximum length of a reply with all its lines.
const MAX_REPLY_BYTES: usize = 16 * 1024;
/// The size of a read.
const READ_BYTES: usize = 1024;

/// Whether the commands of a transaction are pipelined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandMode {
    /// Every command waits for the reply to the one before it.
    Sequential,
    /// MAIL, RCPT and DATA are sent at once.
    Pipelined,
}

/// Sessions with a server. One is opened when it is needed, and replaced after an error.
pub(crate) struct Sender {
    addresses: Vec<SocketAddr>,
    client: Option<Client>,
}

impl Sender {
    /// Creates a sender without a session.
    pub(crate) fn new(addresses: &[SocketAddr]) -> Self {
        Self { addresses: addresses.to_vec(), client: None }
    }

    /// Opens a session unless there is one.
    pub(crate) async fn open(&mut self) -> Result<&mut Client, Error> {
        match &mut self.client {
            Some(client) => Ok(client),
            slot => Ok(slot.insert(Client::connect(&self.addresses).await?)),
        }
    }

    /// Sends one message. `message` ends with its end-of-data line. After a refusal the session continues; after another
    /// error the next message opens a new one.
    pub(crate) async fn send(&mut self, envelope: &Envelope, message: &[u8], mode: CommandMode) -> Result<(), Error> {
        let client = self.open().await?;
        let result = client.send(envelope, message, mode).await;
        let is_usable = match &result {
            Ok(()) => true,
            Err(Error::Refused(_)) => client.reset().await.is_ok(),
            Err(_) => false,
        };
        if !is_usable {
            self.client = None;
        }
        result
    }

    /// Ends the session.
    pub(crate) async fn quit(&mut self) -> Result<(), Error> {
        match self.client.take() {
            Some(mut client) => with_timeout(client.command(b"QUIT\r\n", 2)).await,
            None => Ok(()),
        }
    }
}

/// An open session for transactions.
pub(crate) struct Client(Connection);

impl Client {
    /// Connects, reads the greeting and sends EHLO.
    async fn connect(addresses: &[SocketAddr]) -> Result<Self, Error> {
        with_timeout(async {
            let mut client = Self(Connection::open(addresses, READ_BYTES).await?);
            check(client.read_reply().await?, 2)?;
            client.command(b"EHLO bench.example\r\n", 2).await?;
            Ok(client)
        })
        .await
    }

    /// Sends one message. After [`Error::Refused`] the session can continue with [`Client::reset`]; after any other error it
    /// must not be used again.
    async fn send(&mut self, envelope: &Envelope, message: &[u8], mode: CommandMode) -> Result<(), Error> {
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
    async fn reset(&mut self) -> Result<(), Error> {
        with_timeout(self.command(b"RSET\r\n", 2)).await
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
        self.0.write(envelope.as_bytes()).await?;
        let mut refusal = None;
        for _ in 1..envelope.len() {
            refusal = refusal.or(check(self.read_reply().await?, 2).err());
        }
        let data_reply = check(self.read_reply().await?, 3);
        match (refusal, data_reply) {
            (None, data_reply) => data_reply,
            (Some(refusal), Err(_)) => Err(refusal),
            (Some(refusal), Ok(())) => {
                self.0.write(END_OF_DATA).await?;
                self.read_reply().await?;
                Err(refusal)
            }
        }
    }

    async fn command(&mut self, line: &[u8], class: u16) -> Result<(), Error> {
        self.0.write(line).await?;
        check(self.read_reply().await?, class)
    }

    /// Returns the code and the text of a reply with all its lines.
    async fn read_reply(&mut self) -> Result<(u16, &[u8]), Error> {
        self.0.read(MAX_REPLY_BYTES, parse_reply).await
    }
}

/// Accepts only codes of the given class: 2 for done, 3 for go ahead.
fn check((code, text): (u16, &[u8]), class: u16) -> Result<(), Error> {
    if code / 100 == class { Ok(()) } else { Err(Error::refused(text)) }
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
