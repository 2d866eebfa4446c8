//! A small POP3 client (RFC 1939) over a plain TCP connection: greeting, commands with single-line and multi-line
//! responses, QUIT.

use std::net::SocketAddr;

use memchr::{memchr, memmem};

use crate::connection::{Connection, with_timeout};
use crate::error::Error;
use crate::message::END_OF_DATA;

/// The maximum length of a status line.
const MAX_LINE_BYTES: usize = 4 * 1024;
/// The maximum length of a list or message.
const MAX_CONTENT_BYTES: usize = 1 << 28;
/// The size of a read.
const READ_BYTES: usize = 64 * 1024;

/// The number and total size of the messages in a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// The number of messages. They are numbered from 1.
    pub(crate) messages: usize,
    /// Their total size in octets.
    pub(crate) octets: u64,
}

/// An open session. After an error other than [`Error::Refused`] it must not be used again.
pub(crate) struct Client(Connection);

impl Client {
    /// Connects and reads the greeting.
    pub(crate) async fn connect(addresses: &[SocketAddr]) -> Result<Self, Error> {
        with_timeout(async {
            let mut client = Self(Connection::open(addresses, READ_BYTES).await?);
            client.read_status().await?;
            Ok(client)
        })
        .await
    }

    /// Opens a mailbox.
    pub(crate) async fn login(&mut self, user: &str, password: &str) -> Result<(), Error> {
        self.command(&format!("USER {user}\r\n")).await?;
        self.command(&format!("PASS {password}\r\n")).await?;
        Ok(())
    }

    /// Returns the number and size of the messages.
    pub(crate) async fn stat(&mut self) -> Result<Stat, Error> {
        let line = self.command("STAT\r\n").await?;
        parse_stat(line).ok_or(Error::Protocol("response to STAT without two numbers"))
    }

    /// Marks a message as deleted.
    pub(crate) async fn delete(&mut self, number: usize) -> Result<(), Error> {
        self.command(&format!("DELE {number}\r\n")).await.map(|_| ())
    }

    /// Ends the session. The server deletes the marked messages now.
    pub(crate) async fn quit(&mut self) -> Result<(), Error> {
        self.command("QUIT\r\n").await.map(|_| ())
    }

    /// Sends a command with a multi-line response. Returns the lines as received, without removing stuffed dots, and
    /// without the last line.
    pub(crate) async fn fetch(&mut self, command: &str) -> Result<&[u8], Error> {
        with_timeout(async {
            self.0.write(command.as_bytes()).await?;
            self.read_status().await?;
            self.read_content().await
        })
        .await
    }

    /// Sends a command. Returns the status line of the response.
    async fn command(&mut self, line: &str) -> Result<&[u8], Error> {
        with_timeout(async {
            self.0.write(line.as_bytes()).await?;
            self.read_status().await
        })
        .await
    }

    /// Reads a status line and checks that it is `+OK` (RFC 1939 section 3).
    async fn read_status(&mut self) -> Result<&[u8], Error> {
        let find_end = |bytes: &[u8]| Ok(memchr(b'\n', bytes).map(|newline| ((), newline + 1)));
        let ((), line) = self.0.read(MAX_LINE_BYTES, find_end).await?;
        match line {
            [b'+', b'O', b'K', ..] => Ok(line),
            [b'-', b'E', b'R', b'R', ..] => Err(Error::refused(line)),
            _ => Err(Error::Protocol("invalid POP3 status line")),
        }
    }

    /// Reads the lines after a status line, up to a line with a single dot.
    async fn read_content(&mut self) -> Result<&[u8], Error> {
        const END: &[u8] = b"\r\n.\r\n";
        let mut search_start = 0;
        let find_end = |bytes: &[u8]| {
            if bytes.starts_with(END_OF_DATA) {
                return Ok(Some(((), END_OF_DATA.len())));
            }
            let found = memmem::find(&bytes[search_start..], END).map(|at| ((), search_start + at + END.len()));
            search_start = bytes.len().saturating_sub(END.len() - 1);
            Ok(found)
        };
        let ((), content) = self.0.read(MAX_CONTENT_BYTES, find_end).await?;
        Ok(&content[..content.len() - END_OF_DATA.len()])
    }
}

/// Parses the response to STAT (RFC 1939 section 5): `+OK`, the number of messages, their size. Anything may follow.
fn parse_stat(line: &[u8]) -> Option<Stat> {
    let mut words = str::from_utf8(line).ok()?.split_ascii_whitespace().skip(1);
    Some(Stat { messages: words.next()?.parse().ok()?, octets: words.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// Runs a server that sends these bytes in small pieces. Returns the results of two multi-line commands.
    fn fetched(response: &'static str) -> Result<Vec<String>, String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            stream.set_nodelay(true).expect("a socket option");
            for piece in response.as_bytes().chunks(3) {
                // The client may have disconnected after an error.
                let _ = stream.write_all(piece);
            }
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let result = runtime.block_on(async {
            let mut client = Client::connect(&[address]).await?;
            let mut contents = Vec::new();
            for command in ["LIST\r\n", "RETR 1\r\n"] {
                contents.push(String::from_utf8_lossy(client.fetch(command).await?).into_owned());
            }
            Ok(contents)
        });
        server.join().expect("the server");
        result.map_err(|error: Error| error.to_string())
    }

    #[test]
    fn multi_line_responses_end_with_a_dot() {
        let cases = [
            ("+OK\r\n+OK\r\n.\r\n+OK\r\n.\r\n", ["", ""]),
            ("+OK hello\r\n+OK\r\n1 5\r\n2 7\r\n.\r\n+OK\r\nx\r\n.\r\n", ["1 5\r\n2 7\r\n", "x\r\n"]),
            ("+OK\r\n+OK\r\n..\r\n..a\r\na.\r\n.\r\n+OK\r\n\r\n.\r\n", ["..\r\n..a\r\na.\r\n", "\r\n"]),
        ];
        for (response, expected) in cases {
            assert_eq!(fetched(response).expect("valid responses"), expected, "{response:?}");
        }
    }

    #[test]
    fn refusals_and_protocol_violations_are_errors() {
        let cases = [
            ("-ERR busy\r\n", "refused: -ERR busy"),
            ("220 this is SMTP\r\n", "protocol error of the server: invalid POP3 status line"),
            ("+OK\r\n+OK\r\n1 5\r\n", "protocol error of the server: connection closed unexpectedly"),
        ];
        for (response, expected) in cases {
            assert_eq!(fetched(response), Err(expected.to_owned()));
        }
    }

    #[test]
    fn parses_stat() {
        assert_eq!(parse_stat(b"+OK 2 320\r\n"), Some(Stat { messages: 2, octets: 320 }));
        assert_eq!(parse_stat(b"+OK 0 0 nothing here\r\n"), Some(Stat { messages: 0, octets: 0 }));
        assert_eq!(parse_stat(b"+OK 2\r\n"), None);
        assert_eq!(parse_stat(b"+OK -1 5\r\n"), None);
    }
}
