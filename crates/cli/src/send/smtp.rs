//! Sends one message by SMTP (RFC 5321) over a connection without TLS. Extensions are used if the server offers them; a
//! missing one that the message needs is an error.

use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use restante_mail::address::Address;
use socket2::Socket;

use super::raw_message::lines_before;
use super::stream;
use crate::error::CommandError;
use crate::server::Credentials;

/// The maximum size of a reply in bytes, including all its lines.
const MAX_REPLY_BYTES: u64 = 64 * 1024;
/// The user name that is sent with a token. The server ignores it.
const TOKEN_USER: &str = "token";

/// The message to send, with its envelope.
#[derive(Debug)]
pub(super) struct OutgoingMessage {
    /// The envelope sender; `None` for the null reverse-path.
    pub(super) from: Option<Address>,
    pub(super) to: Vec<Address>,
    /// Header and body, with any line ends.
    pub(super) source: Vec<u8>,
}

/// How to reach the server.
pub(super) struct ConnectionSettings<'a> {
    /// Host and port, or `unix:/path`.
    pub(super) addr: &'a str,
    /// The name in EHLO.
    pub(super) helo_name: &'a str,
    pub(super) credentials: &'a Credentials,
    /// True if credentials may be sent to other machines, without encryption.
    pub(super) insecure: bool,
    /// The time limit of each step.
    pub(super) timeout: Duration,
    /// The sentences that follow the error if no server listens at the address.
    pub(super) refused_hint: &'static str,
}

/// Sends a message to all recipients or to none. Returns the final reply.
pub(super) fn send_message(
    settings: &ConnectionSettings<'_>,
    message: &OutgoingMessage,
) -> Result<String, CommandError> {
    let mut connection = SmtpConnection::open(settings)?;
    connection.expect_reply("2")?;
    let extensions = connection.greet(settings.helo_name)?;
    connection.authenticate(settings, &extensions)?;

    let data = encode_data(&message.source);
    let from = message.from.as_ref().map(ToString::to_string).unwrap_or_default();
    connection.command(&format!("MAIL FROM:<{from}>{}", mail_parameters(message, data.len(), &extensions)?), "2")?;
    for to in &message.to {
        connection.command(&format!("RCPT TO:<{to}>"), "2").map_err(mark_as_recipient_error)?;
    }
    connection.command("DATA", "3")?;
    connection.write(&data)?;
    let reply = connection.expect_reply("2")?;
    // The message was accepted, whatever happens to QUIT.
    let _ = connection.command("QUIT", "2");
    Ok(reply)
}

/// The lines of the EHLO reply, one extension each.
struct SmtpExtensions(Vec<String>);

impl SmtpExtensions {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|line| line.split(' ').next().is_some_and(|word| word.eq_ignore_ascii_case(name)))
    }

    fn offers_plain(&self) -> bool {
        let mut lines = self.0.iter().map(|line| line.to_ascii_uppercase());
        lines.any(|line| line.starts_with("AUTH ") && line.split(' ').any(|word| word == "PLAIN"))
    }
}

/// Returns the parameters of MAIL: the size (RFC 1870), and those for characters outside of ASCII (RFC 6152, RFC 6531).
fn mail_parameters(
    message: &OutgoingMessage,
    size: usize,
    extensions: &SmtpExtensions,
) -> Result<String, CommandError> {
    let mut text = if extensions.has("SIZE") { format!(" SIZE={size}") } else { String::new() };
    if !message.source.is_ascii() && extensions.has("8BITMIME") {
        text.push_str(" BODY=8BITMIME");
    }
    let has_utf8_address = message.to.iter().chain(&message.from).any(|address| !address.to_string().is_ascii());
    let header = lines_before(&message.source, |line| matches!(line, b"\n" | b"\r\n"));
    if (has_utf8_address || !header.is_ascii()) && extensions.has("SMTPUTF8") {
        text.push_str(" SMTPUTF8");
    } else if has_utf8_address {
        let message = "An address is not ASCII, and the server does not support such addresses (SMTPUTF8).".to_owned();
        return Err(CommandError::Undelivered { message, is_temporary: false, is_recipient: true });
    }
    Ok(text)
}

/// Encodes a message for DATA: CRLF line ends, dot stuffing (RFC 5321 section 4.5.2), and the final dot.
fn encode_data(source: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(source.len() + source.len() / 32 + 5);
    for line in source.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            data.push(b'.');
        }
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        data.extend_from_slice(text.strip_suffix(b"\r").unwrap_or(text));
        data.extend_from_slice(b"\r\n");
    }
    data.extend_from_slice(b".\r\n");
    data
}

/// An SMTP connection.
struct SmtpConnection<'a> {
    reader: BufReader<Socket>,
    addr: &'a str,
}

impl<'a> SmtpConnection<'a> {
    fn open(settings: &ConnectionSettings<'a>) -> Result<Self, CommandError> {
        let addr = settings.addr;
        let stream = stream::connect(addr, settings.timeout)
            .map_err(|error| connect_error(addr, &error, settings.refused_hint))?;
        // The socket has no time limit if it is zero.
        let timeout = Some(settings.timeout.max(Duration::from_micros(1)));
        let limited = stream.set_read_timeout(timeout).and_then(|()| stream.set_write_timeout(timeout));
        limited.map_err(|error| unreachable(addr, &error))?;
        Ok(Self { reader: BufReader::new(stream), addr })
    }

    /// Sends EHLO, or HELO to a server without extensions.
    fn greet(&mut self, name: &str) -> Result<SmtpExtensions, CommandError> {
        match self.command(&format!("EHLO {name}"), "2") {
            Ok(reply) => {
                Ok(SmtpExtensions(reply.lines().skip(1).map(|line| line.get(4..).unwrap_or("").to_owned()).collect()))
            }
            Err(CommandError::Undelivered { .. }) => {
                self.command(&format!("HELO {name}"), "2")?;
                Ok(SmtpExtensions(Vec::new()))
            }
            Err(error) => Err(error),
        }
    }

    /// Authenticates if there are credentials and the server offers AUTH PLAIN.
    fn authenticate(
        &mut self,
        settings: &ConnectionSettings<'_>,
        extensions: &SmtpExtensions,
    ) -> Result<(), CommandError> {
        let (name, secret) = match settings.credentials {
            _ if !extensions.offers_plain() => return Ok(()),
            Credentials::None => return Ok(()),
            Credentials::Token(token) => (TOKEN_USER, token),
            Credentials::User { name, password } => (name.as_str(), password),
        };
        let is_local = stream::is_local(self.reader.get_ref()).map_err(|error| unreachable(self.addr, &error))?;
        if !(settings.insecure || is_local) {
            let addr = self.addr;
            return Err(CommandError::Unauthorized(format!(
                "The mail server {addr} is another machine, and the connection is not encrypted: use --insecure to send the \
                 credentials anyway."
            )));
        }
        let response = STANDARD.encode(format!("\0{name}\0{secret}"));
        self.command(&format!("AUTH PLAIN {response}"), "2").map(|_| ()).map_err(|error| match error {
            CommandError::Undelivered { message, is_temporary: false, .. } => CommandError::Unauthorized(message),
            other => other,
        })
    }

    fn command(&mut self, command: &str, code: &str) -> Result<String, CommandError> {
        self.write(format!("{command}\r\n").as_bytes())?;
        self.expect_reply(code)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        let addr = self.addr;
        self.reader.get_mut().write_all(bytes).map_err(|error| unreachable(addr, &error))
    }

    /// Reads a reply, which must begin with this digit.
    fn expect_reply(&mut self, code: &str) -> Result<String, CommandError> {
        let addr = self.addr;
        let reply = self.read_reply().map_err(|error| unreachable(addr, &error))?;
        if reply.starts_with(code) {
            return Ok(reply);
        }
        let message = format!("The server {addr} replied: {}", reply.replace('\n', " "));
        Err(CommandError::Undelivered { message, is_temporary: reply.starts_with('4'), is_recipient: false })
    }

    fn read_reply(&mut self) -> io::Result<String> {
        let mut input = (&mut self.reader).take(MAX_REPLY_BYTES);
        let mut reply = String::new();
        loop {
            let mut line = Vec::new();
            input.read_until(b'\n', &mut line)?;
            if !line.ends_with(b"\n") {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the connection was closed, or the reply is too long",
                ));
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

/// Returns the error of a failed connection attempt. The hint is added if no server listens at the address.
pub(super) fn connect_error(addr: &str, error: &io::Error, refused_hint: &str) -> CommandError {
    match unreachable(addr, error) {
        CommandError::Unreachable(message) if error.kind() == io::ErrorKind::ConnectionRefused => {
            CommandError::Unreachable(format!("{message} {refused_hint}"))
        }
        other => other,
    }
}

fn unreachable(addr: &str, error: &io::Error) -> CommandError {
    CommandError::Unreachable(format!("The mail server {addr} cannot be reached: {error}."))
}

fn mark_as_recipient_error(error: CommandError) -> CommandError {
    match error {
        CommandError::Undelivered { message, is_temporary, .. } => {
            CommandError::Undelivered { message, is_temporary, is_recipient: true }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_lines_for_data() {
        let table = [
            ("", ".\r\n"),
            ("a", "a\r\n.\r\n"),
            ("a\n", "a\r\n.\r\n"),
            ("a\r\nb\n", "a\r\nb\r\n.\r\n"),
            (".\n..\n.a\n", "..\r\n...\r\n..a\r\n.\r\n"),
            ("a\rb\n", "a\rb\r\n.\r\n"),
            ("\n\n", "\r\n\r\n.\r\n"),
        ];
        for (source, data) in table {
            assert_eq!(String::from_utf8(encode_data(source.as_bytes())).unwrap(), data, "{source:?}");
        }
    }

    proptest::proptest! {
        /// No content can end the message early, and decoding restores the message.
        #[test]
        fn only_the_last_line_is_a_single_dot(source in "([.a\r]{0,3}\n){0,6}") {
            let data = String::from_utf8(encode_data(source.as_bytes())).unwrap();
            let body = data.strip_suffix(".\r\n").unwrap();
            let ends_early = ["\r\n", body].concat().contains("\r\n.\r\n");
            proptest::prop_assert!(!ends_early);
            let decoded: String =
                body.split_inclusive("\r\n").map(|line| line.strip_prefix('.').unwrap_or(line)).collect();
            proptest::prop_assert_eq!(decoded.replace("\r\n", "\n"), source.replace("\r\n", "\n"));
        }
    }

    #[test]
    fn uses_the_extensions_that_a_message_needs() {
        let all = || SmtpExtensions(["SIZE 1000", "8BITMIME", "SMTPUTF8"].map(str::to_owned).to_vec());
        let address = |text: &str| Address::parse(text, restante_mail::address::Alphabet::Utf8).unwrap();
        let message =
            |to: &str, source: &str| OutgoingMessage { from: None, to: vec![address(to)], source: source.into() };
        let table = [
            (message("a@x.org", "A: b\n\nhi\n"), all(), Some(" SIZE=7")),
            (message("a@x.org", "A: b\n\nhü\n"), all(), Some(" SIZE=7 BODY=8BITMIME")),
            (message("a@x.org", "A: ü\n\nhi\n"), all(), Some(" SIZE=7 BODY=8BITMIME SMTPUTF8")),
            (message("ü@x.org", "A: b\n\nhi\n"), all(), Some(" SIZE=7 SMTPUTF8")),
            (message("a@x.org", "A: ü\n\nhi\n"), SmtpExtensions(Vec::new()), Some("")),
            (message("ü@x.org", "A: b\n\nhi\n"), SmtpExtensions(Vec::new()), None),
        ];
        for (message, extensions, expected) in table {
            assert_eq!(mail_parameters(&message, 7, &extensions).ok().as_deref(), expected, "{message:?}");
        }
        assert!(SmtpExtensions(vec!["AUTH LOGIN PLAIN".to_owned()]).offers_plain());
        assert!(!SmtpExtensions(vec!["AUTH LOGIN".to_owned(), "PLAIN".to_owned()]).offers_plain());
    }
}
