//! A small IMAP client (RFC 3501) over a plain TCP connection. It counts the parts of a response and parses nothing else, so
//! that it is faster than the servers that it measures.

use std::net::SocketAddr;
use std::time::Duration;

use memchr::memchr;
use tokio::time::timeout;

use crate::connection::Connection;
use crate::error::Error;

/// The maximum length of a line. The response to SEARCH is one line.
const MAX_LINE_BYTES: usize = 1 << 24;
/// The maximum time until a command is completed. A search in all texts takes long.
const TIMEOUT: Duration = Duration::from_mins(10);

/// An open session. After an error other than [`Error::Refused`] it must not be used again.
pub(crate) struct Client {
    connection: Connection,
    /// The number of commands that were sent. It is the tag of the last one.
    commands: u32,
}

/// The parts of a response that are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Response {
    /// FETCH responses.
    pub(crate) fetched: usize,
    /// Numbers in SEARCH responses.
    pub(crate) found: usize,
    /// The last number of an EXISTS response.
    pub(crate) exists: Option<usize>,
    /// The size of the whole response.
    pub(crate) bytes: usize,
}

impl Client {
    /// Connects and reads the greeting. `read_bytes` is the size of a read.
    pub(crate) async fn connect(addresses: &[SocketAddr], read_bytes: usize) -> Result<Self, Error> {
        let mut client = Self { connection: Connection::open(addresses, read_bytes).await?, commands: 0 };
        match client.read_line().await? {
            line if line.starts_with(b"* OK") => Ok(client),
            line => Err(Error::refused(line)),
        }
    }

    /// Connects, logs in and selects INBOX. Returns the session and the number of messages.
    pub(crate) async fn open(
        addresses: &[SocketAddr],
        account: &Account,
        read_bytes: usize,
    ) -> Result<(Self, usize), Error> {
        let mut client = Self::connect(addresses, read_bytes).await?;
        client.login(account).await?;
        let exists = client.command("SELECT INBOX").await?.exists;
        Ok((client, exists.ok_or(Error::Protocol("response to SELECT without EXISTS"))?))
    }

    /// Logs in.
    pub(crate) async fn login(&mut self, account: &Account) -> Result<(), Error> {
        self.command(&format!("LOGIN \"{}\" \"{}\"", account.user, account.password)).await.map(|_| ())
    }

    /// Sends a command and reads its response.
    pub(crate) async fn command(&mut self, command: &str) -> Result<Response, Error> {
        self.send(command.as_bytes()).await?;
        self.read_response().await
    }

    /// Appends a message to the mailbox INBOX. The server must have LITERAL+ (RFC 7888).
    pub(crate) async fn append(&mut self, message: &[u8]) -> Result<(), Error> {
        let mut command = format!("APPEND INBOX {{{}+}}\r\n", message.len()).into_bytes();
        command.extend_from_slice(message);
        self.send(&command).await?;
        self.read_response().await.map(|_| ())
    }

    /// Starts IDLE (RFC 2177) and waits until the server has accepted it.
    pub(crate) async fn idle(&mut self) -> Result<(), Error> {
        self.send(b"IDLE").await?;
        match self.read_line().await? {
            [b'+', ..] => Ok(()),
            line => Err(Error::refused(line)),
        }
    }

    /// Waits for the next EXISTS response of an idle session. Returns the number of messages.
    pub(crate) async fn next_exists(&mut self) -> Result<usize, Error> {
        loop {
            match parse_untagged(self.read_line().await?) {
                Some((exists, name)) if name.starts_with(b"EXISTS") => return Ok(exists),
                _ => {}
            }
        }
    }

    /// Sends a command with the next tag.
    async fn send(&mut self, command: &[u8]) -> Result<(), Error> {
        self.commands += 1;
        let tag = self.commands.to_string();
        self.connection.write(&[tag.as_bytes(), b" ", command, b"\r\n"].concat()).await
    }

    /// Reads a line.
    async fn read_line(&mut self) -> Result<&[u8], Error> {
        let find_end = |bytes: &[u8]| Ok(memchr(b'\n', bytes).map(|newline| ((), newline + 1)));
        let read = self.connection.read(MAX_LINE_BYTES, find_end);
        let ((), line) = timeout(TIMEOUT, read).await.unwrap_or(Err(Error::Timeout))?;
        Ok(line)
    }

    /// Reads up to the tagged line of the last command.
    async fn read_response(&mut self) -> Result<Response, Error> {
        let mut scanner = Scanner::new(self.commands);
        let read = async {
            while !scanner.is_complete {
                let scan =
                    |bytes: &[u8]| Ok(Some(scanner.scan(bytes)?).filter(|&read| read > 0).map(|read| ((), read)));
                self.connection.read(MAX_LINE_BYTES, scan).await?;
            }
            Ok(scanner.response)
        };
        timeout(TIMEOUT, read).await.unwrap_or(Err(Error::Timeout))
    }
}

/// A user of the server.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    /// The name.
    pub(crate) user: String,
    /// The password.
    pub(crate) password: String,
}

/// Counts the parts of a response in pieces. Literals are skipped by their length.
struct Scanner {
    /// The tag of the command and a space.
    tag: Vec<u8>,
    /// The number of bytes of the current literal that have not been read.
    literal_rest: usize,
    /// Whether the next line continues a response after a literal.
    is_continued: bool,
    /// Whether the tagged line has been read.
    is_complete: bool,
    response: Response,
}

impl Scanner {
    fn new(tag: u32) -> Self {
        let tag = format!("{tag} ").into_bytes();
        Self { tag, literal_rest: 0, is_continued: false, is_complete: false, response: Response::default() }
    }

    /// Reads complete lines and parts of literals up to the tagged line. Returns the number of bytes that were read.
    fn scan(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let mut rest = bytes;
        while !self.is_complete {
            let (skipped, after_literal) = rest.split_at(self.literal_rest.min(rest.len()));
            self.literal_rest -= skipped.len();
            rest = after_literal;
            let Some(newline) = memchr(b'\n', rest) else { break };
            let (line, after_line) = rest.split_at(newline + 1);
            rest = after_line;
            let literal = literal_length(line);
            if !self.is_continued {
                self.scan_line(line)?;
            }
            self.is_continued = literal.is_some();
            self.literal_rest = literal.unwrap_or(0);
        }
        let read = bytes.len() - rest.len();
        self.response.bytes += read;
        Ok(read)
    }

    /// Reads the first line of a response.
    fn scan_line(&mut self, line: &[u8]) -> Result<(), Error> {
        if let Some(status) = line.strip_prefix(&self.tag[..]) {
            self.is_complete = true;
            return if status.starts_with(b"OK") { Ok(()) } else { Err(Error::refused(line)) };
        }
        if let Some(numbers) = line.strip_prefix(b"* SEARCH") {
            self.response.found += memchr::memchr_iter(b' ', numbers).count();
            return Ok(());
        }
        match parse_untagged(line) {
            Some((_, name)) if name.starts_with(b"FETCH") => self.response.fetched += 1,
            Some((number, name)) if name.starts_with(b"EXISTS") => self.response.exists = Some(number),
            _ => {}
        }
        Ok(())
    }
}

/// Returns the number of an untagged response and its name with the rest of the line.
fn parse_untagged(line: &[u8]) -> Option<(usize, &[u8])> {
    let text = line.strip_prefix(b"* ")?;
    let (number, name) = text.split_at_checked(memchr(b' ', text)?)?;
    Some((str::from_utf8(number).ok()?.parse().ok()?, name.strip_prefix(b" ")?))
}

/// Returns the length of the literal that follows a line, if it ends with one.
fn literal_length(line: &[u8]) -> Option<usize> {
    let line = line.strip_suffix(b"}\r\n")?;
    let (_, digits) = line.split_at_checked(memchr::memrchr(b'{', line)? + 1)?;
    str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scans a response in pieces, as a connection does.
    fn scan(text: &str, piece: usize) -> Result<Response, Error> {
        let mut scanner = Scanner::new(7);
        let mut pending = Vec::new();
        for piece in text.as_bytes().chunks(piece) {
            pending.extend_from_slice(piece);
            let read = scanner.scan(&pending)?;
            pending.drain(..read);
        }
        assert!(scanner.is_complete && pending.is_empty(), "{text:?}");
        Ok(scanner.response)
    }

    #[test]
    fn counts_the_parts_of_a_response() {
        let fetch = "* 1 FETCH (BODY[] {20}\r\n* 5 EXISTS\r\n7 OK x\r\n FLAGS (\\Seen) X {0}\r\n)\r\n* 2 FETCH (UID 2)\r\n7 OK\r\n";
        let cases = [
            ("7 OK done\r\n", Response::default()),
            ("* SEARCH\r\n* SEARCH 2 30 4\r\n7 OK\r\n", Response { found: 3, ..Response::default() }),
            (
                "* FLAGS (a)\r\n* 9 EXISTS\r\n* 0 RECENT\r\n7 OK\r\n",
                Response { exists: Some(9), ..Response::default() },
            ),
            (fetch, Response { fetched: 2, ..Response::default() }),
        ];
        for (text, expected) in cases {
            for piece in [1, 3, 1000] {
                let expected = Response { bytes: text.len(), ..expected };
                assert_eq!(scan(text, piece).expect("a completed command"), expected, "{text:?}");
            }
        }
    }

    #[test]
    fn other_completions_are_refusals() {
        for text in ["7 NO quota\r\n", "* 1 EXISTS\r\n7 BAD syntax\r\n"] {
            assert!(matches!(scan(text, 5), Err(Error::Refused(_))), "{text:?}");
        }
    }

    #[test]
    fn only_complete_numbers_in_braces_are_literals() {
        assert_eq!(literal_length(b"* 1 FETCH (BODY[] {123}\r\n"), Some(123));
        for line in [&b"* OK {a}\r\n"[..], b"* OK {}\r\n", b"{5}\n", b"* OK 5}\r\n"] {
            assert_eq!(literal_length(line), None, "{}", line.escape_ascii());
        }
    }
}
