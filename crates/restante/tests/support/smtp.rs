//! An SMTP client that reports a killed server as an error.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};

use super::TEST_TIMEOUT;

/// A connection for sending messages. Errors are broken connections because the server was killed.
pub(crate) struct Sender(BufReader<TcpStream>);

impl Sender {
    /// Connects, reads the greeting and sends EHLO.
    pub(crate) fn connect(smtp: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&smtp, TEST_TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TEST_TIMEOUT))?;
        let mut sender = Self(BufReader::new(stream));
        sender.read_reply()?;
        sender.command("EHLO client.test")?;
        Ok(sender)
    }

    /// Sends a message that ends with a line break and has no dots at the start of lines. Returns the code of the final reply, or of
    /// an earlier refusal. Calls `before_the_end` just before the end of the message is sent: until then it cannot be stored.
    pub(crate) fn send(&mut self, mailboxes: &[&str], mail: &[u8], before_the_end: impl FnOnce()) -> io::Result<u16> {
        let recipients = mailboxes.iter().map(|mailbox| format!("RCPT TO:<{mailbox}@y.org>"));
        for line in ["MAIL FROM:<ann@x.org>".to_owned()].into_iter().chain(recipients).chain(["DATA".to_owned()]) {
            let code = self.command(&line)?;
            if code >= 400 {
                return Ok(code);
            }
        }
        self.0.get_mut().write_all(mail)?;
        before_the_end();
        self.command(".")
    }

    fn command(&mut self, line: &str) -> io::Result<u16> {
        self.0.get_mut().write_all(format!("{line}\r\n").as_bytes())?;
        self.read_reply()
    }

    fn read_reply(&mut self) -> io::Result<u16> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line)? == 0 || !line.ends_with('\n') {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if line.as_bytes()[3] == b' ' {
                return line[..3].parse().map_err(io::Error::other);
            }
        }
    }
}
