//! One mail by SMTP (RFC 5321): a short conversation over a plain connection. Who gets it and what is in it is known
//! already; the extensions that it needs are asked for, and those that are missing are told.

use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use restante_mail::address::Address;

use crate::error::CommandError;
use crate::server::Credentials;

/// The longest reply that is read, all its lines together.
const MAX_REPLY_BYTES: u64 = 64 * 1024;
/// Whom a token belongs to does not matter to the server, but something has to stand there.
const TOKEN_USER: &str = "token";

/// What is sent.
#[derive(Debug)]
pub(super) struct OutgoingMessage {
    /// The envelope's sender; none for a mail that nobody shall answer.
    pub(super) from: Option<Address>,
    pub(super) to: Vec<Address>,
    /// Header and body, with any line ends.
    pub(super) source: Vec<u8>,
}

/// How it is sent.
pub(super) struct ConnectionSettings<'a> {
    /// Host and port.
    pub(super) addr: &'a str,
    /// What this machine calls itself.
    pub(super) helo_name: &'a str,
    pub(super) credentials: &'a Credentials,
    /// Whether credentials go to other machines too, where everybody between can read them.
    pub(super) insecure: bool,
    /// How long every step may take.
    pub(super) timeout: Duration,
}

/// Sends a mail to all its recipients or to none; what the server said in the end.
pub(super) fn send_message(way: &ConnectionSettings<'_>, letter: &OutgoingMessage) -> Result<String, CommandError> {
    let mut line = SmtpConnection::open(way)?;
    line.expect_reply("2")?;
    let extensions = line.greet(way.helo_name)?;
    line.authenticate(way, &extensions)?;

    let wire = encode_data(&letter.source);
    let from = letter.from.as_ref().map(ToString::to_string).unwrap_or_default();
    line.command(&format!("MAIL FROM:<{from}>{}", mail_parameters(letter, wire.len(), &extensions)?), "2")?;
    for to in &letter.to {
        line.command(&format!("RCPT TO:<{to}>"), "2").map_err(mark_as_recipient_error)?;
    }
    line.command("DATA", "3")?;
    line.write(&wire)?;
    let reply = line.expect_reply("2")?;
    // The mail is there, whatever becomes of the good-bye.
    let _ = line.command("QUIT", "2");
    Ok(reply)
}

/// What the server said that it can, one extension in each line.
struct Extensions(Vec<String>);

impl Extensions {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|line| line.split(' ').next().is_some_and(|word| word.eq_ignore_ascii_case(name)))
    }

    fn offers_plain(&self) -> bool {
        let mut lines = self.0.iter().map(|line| line.to_ascii_uppercase());
        lines.any(|line| line.starts_with("AUTH ") && line.split(' ').any(|word| word == "PLAIN"))
    }
}

/// The parameters of MAIL: the size (RFC 1870), and what characters outside of ASCII need (RFC 6152, RFC 6531).
fn mail_parameters(letter: &OutgoingMessage, size: usize, extensions: &Extensions) -> Result<String, CommandError> {
    let mut text = if extensions.has("SIZE") { format!(" SIZE={size}") } else { String::new() };
    if !letter.source.is_ascii() && extensions.has("8BITMIME") {
        text.push_str(" BODY=8BITMIME");
    }
    let has_foreign_address = letter.to.iter().chain(&letter.from).any(|address| !address.to_string().is_ascii());
    let header = header_section(&letter.source);
    if (has_foreign_address || !header.is_ascii()) && extensions.has("SMTPUTF8") {
        text.push_str(" SMTPUTF8");
    } else if has_foreign_address {
        let sentence = "An address is not ASCII, and the server does not take such addresses.".to_owned();
        return Err(CommandError::Undelivered { message: sentence, is_temporary: false, is_recipient: true });
    }
    Ok(text)
}

/// Everything before the first blank line.
fn header_section(mail: &[u8]) -> &[u8] {
    let mut end = 0;
    for line in mail.split_inclusive(|byte| *byte == b'\n') {
        if matches!(line, b"\n" | b"\r\n") {
            break;
        }
        end += line.len();
    }
    &mail[..end]
}

/// The mail as it is sent: every line ends in CRLF, lines that begin with a dot have one more (RFC 5321 section 4.5.2),
/// and a dot alone ends it.
fn encode_data(mail: &[u8]) -> Vec<u8> {
    let mut wire = Vec::with_capacity(mail.len() + mail.len() / 32 + 5);
    for line in mail.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            wire.push(b'.');
        }
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        wire.extend_from_slice(text.strip_suffix(b"\r").unwrap_or(text));
        wire.extend_from_slice(b"\r\n");
    }
    wire.extend_from_slice(b".\r\n");
    wire
}

/// A connection, line by line.
struct SmtpConnection<'a> {
    reader: BufReader<TcpStream>,
    addr: &'a str,
}

impl<'a> SmtpConnection<'a> {
    fn open(way: &ConnectionSettings<'a>) -> Result<Self, CommandError> {
        let place = way.addr;
        let stream = connect_any(place, way.timeout).map_err(|error| unreachable(place, &error))?;
        Ok(Self { reader: BufReader::new(stream), addr: place })
    }

    /// Says hello, also to a server that knows no extensions.
    fn greet(&mut self, name: &str) -> Result<Extensions, CommandError> {
        match self.command(&format!("EHLO {name}"), "2") {
            Ok(reply) => {
                Ok(Extensions(reply.lines().skip(1).map(|line| line.get(4..).unwrap_or("").to_owned()).collect()))
            }
            Err(CommandError::Undelivered { .. }) => {
                self.command(&format!("HELO {name}"), "2")?;
                Ok(Extensions(Vec::new()))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Logs in where there are credentials and the server wants some.
    fn authenticate(&mut self, way: &ConnectionSettings<'_>, extensions: &Extensions) -> Result<(), CommandError> {
        let (name, secret) = match way.credentials {
            _ if !extensions.offers_plain() => return Ok(()),
            Credentials::None => return Ok(()),
            Credentials::Token(token) => (TOKEN_USER, token),
            Credentials::User { name, password } => (name.as_str(), password),
        };
        let peer = self.reader.get_ref().peer_addr().map_err(|error| unreachable(self.addr, &error))?;
        if !(way.insecure || is_this_machine(peer.ip())) {
            let place = self.addr;
            return Err(CommandError::Unauthorized(format!(
                "The mail server {place} is another machine, and the credentials could be read on the way: use --insecure to \
                 send them all the same."
            )));
        }
        let response = STANDARD.encode(format!("\0{name}\0{secret}"));
        self.command(&format!("AUTH PLAIN {response}"), "2").map(|_| ()).map_err(|failure| match failure {
            CommandError::Undelivered { message: sentence, is_temporary: false, .. } => {
                CommandError::Unauthorized(sentence)
            }
            other => other,
        })
    }

    fn command(&mut self, command: &str, code: &str) -> Result<String, CommandError> {
        self.write(format!("{command}\r\n").as_bytes())?;
        self.expect_reply(code)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        let place = self.addr;
        self.reader.get_mut().write_all(bytes).map_err(|error| unreachable(place, &error))
    }

    /// A whole reply, which must begin with this digit.
    fn expect_reply(&mut self, code: &str) -> Result<String, CommandError> {
        let place = self.addr;
        let reply = self.read_reply().map_err(|error| unreachable(place, &error))?;
        if reply.starts_with(code) {
            return Ok(reply);
        }
        let sentence = format!("The server {place} says: {}", reply.replace('\n', " "));
        Err(CommandError::Undelivered { message: sentence, is_temporary: reply.starts_with('4'), is_recipient: false })
    }

    fn read_reply(&mut self) -> io::Result<String> {
        let mut input = (&mut self.reader).take(MAX_REPLY_BYTES);
        let mut reply = String::new();
        loop {
            let mut line = Vec::new();
            input.read_until(b'\n', &mut line)?;
            if !line.ends_with(b"\n") {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it hangs up, or says too much"));
            }
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end();
            if !reply.is_empty() {
                reply.push('\n');
            }
            reply.push_str(line);
            if line.as_bytes().get(3) != Some(&b'-') {
                return Ok(reply);
            }
        }
    }
}

/// Tries all addresses of a name, as a host may be known by one that nobody listens on.
fn connect_any(place: &str, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    for address in place.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Whether an address is this machine, whichever way it is written.
fn is_this_machine(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

fn unreachable(place: &str, error: &io::Error) -> CommandError {
    CommandError::Unreachable(format!("The mail server {place} cannot be reached: {error}."))
}

fn mark_as_recipient_error(failure: CommandError) -> CommandError {
    match failure {
        CommandError::Undelivered { message: sentence, is_temporary: for_now, .. } => {
            CommandError::Undelivered { message: sentence, is_temporary: for_now, is_recipient: true }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_on_the_wire() {
        let table = [
            ("", ".\r\n"),
            ("a", "a\r\n.\r\n"),
            ("a\n", "a\r\n.\r\n"),
            ("a\r\nb\n", "a\r\nb\r\n.\r\n"),
            (".\n..\n.a\n", "..\r\n...\r\n..a\r\n.\r\n"),
            ("a\rb\n", "a\rb\r\n.\r\n"),
            ("\n\n", "\r\n\r\n.\r\n"),
        ];
        for (mail, wire) in table {
            assert_eq!(String::from_utf8(encode_data(mail.as_bytes())).unwrap(), wire, "{mail:?}");
        }
    }

    proptest::proptest! {
        /// Nothing in a mail can end it, and what a server makes of it is the mail.
        #[test]
        fn only_the_last_line_is_a_dot(mail in "([.a\r]{0,3}\n){0,6}") {
            let wire = String::from_utf8(encode_data(mail.as_bytes())).unwrap();
            let body = wire.strip_suffix(".\r\n").unwrap();
            let ends_early = ["\r\n", body].concat().contains("\r\n.\r\n");
            proptest::prop_assert!(!ends_early);
            let back: String =
                body.split_inclusive("\r\n").map(|line| line.strip_prefix('.').unwrap_or(line)).collect();
            proptest::prop_assert_eq!(back.replace("\r\n", "\n"), mail.replace("\r\n", "\n"));
        }
    }

    #[test]
    fn credentials_stay_on_this_machine() {
        for here in ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"] {
            assert!(is_this_machine(here.parse().unwrap()), "{here}");
        }
        for elsewhere in ["10.0.0.1", "192.0.2.1", "::", "::ffff:10.0.0.1", "2001:db8::1"] {
            assert!(!is_this_machine(elsewhere.parse().unwrap()), "{elsewhere}");
        }
    }

    #[test]
    fn extensions_that_a_mail_needs() {
        let all = || Extensions(["SIZE 1000", "8BITMIME", "SMTPUTF8"].map(str::to_owned).to_vec());
        let address = |text: &str| Address::parse(text, restante_mail::address::Alphabet::Utf8).unwrap();
        let letter = |to: &str, mail: &str| OutgoingMessage { from: None, to: vec![address(to)], source: mail.into() };
        let table = [
            (letter("a@x.org", "A: b\n\nhi\n"), all(), Some(" SIZE=7")),
            (letter("a@x.org", "A: b\n\nhü\n"), all(), Some(" SIZE=7 BODY=8BITMIME")),
            (letter("a@x.org", "A: ü\n\nhi\n"), all(), Some(" SIZE=7 BODY=8BITMIME SMTPUTF8")),
            (letter("ü@x.org", "A: b\n\nhi\n"), all(), Some(" SIZE=7 SMTPUTF8")),
            (letter("a@x.org", "A: ü\n\nhi\n"), Extensions(Vec::new()), Some("")),
            (letter("ü@x.org", "A: b\n\nhi\n"), Extensions(Vec::new()), None),
        ];
        for (letter, extensions, expected) in table {
            assert_eq!(mail_parameters(&letter, 7, &extensions).ok().as_deref(), expected, "{letter:?}");
        }
        assert!(Extensions(vec!["AUTH LOGIN PLAIN".to_owned()]).offers_plain());
        assert!(!Extensions(vec!["AUTH LOGIN".to_owned(), "PLAIN".to_owned()]).offers_plain());
    }
}
