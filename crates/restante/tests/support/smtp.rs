//! One who sends mail over SMTP and does not take it amiss when the server is gone.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};

use super::LONG;

/// A connection that mail is sent over. Errors are those of connections that break because the server was killed.
pub(crate) struct Sender(BufReader<TcpStream>);

impl Sender {
    /// Connects, and has greeted.
    pub(crate) fn connect(smtp: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&smtp, LONG)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LONG))?;
        let mut sender = Self(BufReader::new(stream));
        sender.answer()?;
        sender.command("EHLO client.test")?;
        Ok(sender)
    }

    /// Sends a mail that ends in a line break and has no dots at the start of lines, and returns the code that answers it, or that
    /// refuses it before. As long as its end is not sent it cannot be stored; just before, this is called.
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
        self.answer()
    }

    fn answer(&mut self) -> io::Result<u16> {
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
