//! All reply texts of the SMTP and LMTP session. All have enhanced status codes (RFC 2034, RFC 3463), except the
//! greeting, the replies to HELO, EHLO and LHLO, intermediate replies (3yz), and refusals of scripts without a status
//! code.

use std::io::Write as _;

use restante_mail::address::AddressError;
use restante_mail::envelope::{RecipientRefusal, Refusal, RefusalReason, SenderRefusal};

use crate::foreign::ForeignInput;
use crate::reply_text::{to_printable_ascii, write_line};

use super::{Protocol, Settings, StoreRefusal};

/// The longest text after the code of a refusal, so that the line is within the 512 octets of RFC 5321 section
/// 4.5.3.1.5.
const MAX_TEXT_CHARS: usize = 450;

/// The enhanced status code and the text of a reply with 421, which ends the session.
pub(crate) type ClosingReply = (&'static str, &'static str);

pub(crate) const TIMED_OUT: ClosingReply = ("4.4.2", "Waited too long for you, closing");
pub(crate) const SHUTTING_DOWN: ClosingReply = ("4.3.2", "Shutting down");
pub(crate) const BUSY: ClosingReply = ("4.7.0", "Too many connections, try again later");
pub(crate) const TOO_MANY_ERRORS: ClosingReply = ("4.7.0", "Too many errors, closing");
const NOT_HTTP: ClosingReply = ("4.7.0", "This port does not speak HTTP, closing");
const NOT_TLS: ClosingReply = ("4.7.0", "TLS begins with STARTTLS on this port, closing");
const FIRST_LINE_TOO_LONG: ClosingReply = ("4.7.0", "Line too long, closing");

pub(crate) const OK: &str = "250 2.0.0 Ok\r\n";
pub(crate) const RESET: &str = "250 2.0.0 Reset\r\n";
pub(crate) const SENDER_OK: &str = "250 2.1.0 Sender ok\r\n";
pub(crate) const RECIPIENT_OK: &str = "250 2.1.5 Recipient ok\r\n";
pub(crate) const CHUNK_OK: &str = "250 2.0.0 Chunk received\r\n";
pub(crate) const DELIVERED: &str = "250 2.0.0 Mail accepted\r\n";
pub(crate) const VERIFY: &str = "252 2.5.0 Cannot verify it, but will take mail for it\r\n";
pub(crate) const HELP: &str = "214 2.0.0 HELO EHLO LHLO MAIL RCPT DATA BDAT RSET NOOP VRFY HELP STARTTLS AUTH QUIT\r\n";
pub(crate) const BYE: &str = "221 2.0.0 Bye\r\n";
pub(crate) const GO_AHEAD_TLS: &str = "220 2.0.0 Ready to start TLS\r\n";
pub(crate) const GO_AHEAD_DATA: &str = "354 End the mail with a dot on a line of its own\r\n";

pub(crate) const AUTHENTICATED: &str = "235 2.7.0 Authenticated\r\n";
pub(crate) const NOT_AUTHENTICATED: ErrorReply =
    ErrorReply::new(RefusalReason::Auth, "535 5.7.8 Wrong user name or password\r\n");
pub(crate) const AUTH_CANCELLED: &str = "501 5.7.0 Authentication cancelled\r\n";
pub(crate) const AUTH_MALFORMED: ErrorReply = ErrorReply::syntax("501 5.5.2 Cannot decode the response\r\n");
pub(crate) const AUTH_UNKNOWN: ErrorReply =
    ErrorReply::syntax("504 5.5.4 Unknown authentication mechanism; EHLO lists the known ones\r\n");
pub(crate) const AUTH_LINE_TOO_LONG: ErrorReply = ErrorReply::syntax("500 5.5.6 Authentication line too long\r\n");
pub(crate) const AUTH_TWICE: ErrorReply = ErrorReply::syntax("503 5.5.1 Already authenticated\r\n");
pub(crate) const AUTH_IN_MAIL: ErrorReply = ErrorReply::syntax("503 5.5.1 No AUTH in the middle of a mail\r\n");
pub(crate) const TOO_MANY_LOGINS: ErrorReply =
    ErrorReply::new(RefusalReason::Auth, "454 4.7.0 Too many logins have failed, try again later\r\n");
pub(crate) const LOGIN_UNAVAILABLE: ErrorReply =
    ErrorReply::new(RefusalReason::Auth, "454 4.7.0 The login cannot be checked now, try again later\r\n");
pub(crate) const LOGIN_NOT_PERMITTED: ErrorReply =
    ErrorReply::new(RefusalReason::Auth, "535 5.7.8 The login does not allow this\r\n");
/// The text of RFC 3207 section 4.
pub(crate) const STARTTLS_REQUIRED: ErrorReply =
    ErrorReply::new(RefusalReason::Policy, "530 5.7.0 Must issue a STARTTLS command first\r\n");
pub(crate) const AUTH_REQUIRED: ErrorReply =
    ErrorReply::new(RefusalReason::Auth, "530 5.7.0 Authentication required\r\n");

pub(crate) const UNKNOWN_COMMAND: ErrorReply = ErrorReply::syntax("500 5.5.1 Unknown command\r\n");
pub(crate) const CONTROL_CHARACTER: ErrorReply = ErrorReply::syntax("500 5.5.2 Control character in the command\r\n");
pub(crate) const LINE_TOO_LONG: ErrorReply = ErrorReply::syntax("500 5.5.2 Line too long\r\n");
pub(crate) const NOT_IMPLEMENTED: ErrorReply = ErrorReply::syntax("502 5.5.1 Command not implemented\r\n");
pub(crate) const SMTP_ONLY: ErrorReply = ErrorReply::syntax("502 5.5.1 This is SMTP: use EHLO or HELO\r\n");
pub(crate) const LMTP_ONLY: ErrorReply = ErrorReply::syntax("502 5.5.1 This is LMTP: use LHLO\r\n");
pub(crate) const TLS_UNAVAILABLE: ErrorReply = ErrorReply::syntax("502 5.5.1 TLS is not available\r\n");

pub(crate) const SYNTAX_HELLO: ErrorReply =
    ErrorReply::syntax("501 5.5.4 Syntax: EHLO, HELO or LHLO, and one host name\r\n");
pub(crate) const SYNTAX_MAIL: ErrorReply = ErrorReply::syntax("501 5.5.4 Syntax: MAIL FROM:<address> [parameters]\r\n");
pub(crate) const SYNTAX_RCPT: ErrorReply = ErrorReply::syntax("501 5.5.4 Syntax: RCPT TO:<address> [parameters]\r\n");
pub(crate) const SYNTAX_BDAT: ErrorReply = ErrorReply::syntax("501 5.5.4 Syntax: BDAT size [LAST]\r\n");
pub(crate) const SYNTAX_VRFY: ErrorReply = ErrorReply::syntax("501 5.5.4 Syntax: VRFY address\r\n");
pub(crate) const SYNTAX_AUTH: ErrorReply =
    ErrorReply::syntax("501 5.5.4 Syntax: AUTH mechanism [initial-response]\r\n");
pub(crate) const NO_ARGUMENT: ErrorReply = ErrorReply::syntax("501 5.5.4 This command takes no argument\r\n");
pub(crate) const PARAMETER_MALFORMED: ErrorReply = ErrorReply::syntax("501 5.5.4 Malformed parameter\r\n");
pub(crate) const PARAMETER_TWICE: ErrorReply = ErrorReply::syntax("501 5.5.4 Parameter given twice\r\n");
pub(crate) const PARAMETER_UNKNOWN: ErrorReply = ErrorReply::syntax("555 5.5.4 Unknown parameter\r\n");

pub(crate) const HELLO_FIRST: ErrorReply = ErrorReply::syntax("503 5.5.1 Say hello first\r\n");
pub(crate) const MAIL_FIRST: ErrorReply = ErrorReply::syntax("503 5.5.1 Need MAIL first\r\n");
pub(crate) const RCPT_FIRST: ErrorReply = ErrorReply::syntax("503 5.5.1 Need a valid recipient first\r\n");
pub(crate) const MAIL_TWICE: ErrorReply = ErrorReply::syntax("503 5.5.1 Sender already given\r\n");
pub(crate) const CHUNKS_STARTED: ErrorReply = ErrorReply::syntax("503 5.5.1 Only BDAT or RSET once BDAT has begun\r\n");
pub(crate) const TLS_TWICE: ErrorReply = ErrorReply::syntax("503 5.5.1 TLS is already on\r\n");

pub(crate) const TOO_MANY_RECIPIENTS: ErrorReply =
    ErrorReply::new(RefusalReason::Recipients, "452 4.5.3 Too many recipients\r\n");
pub(crate) const MESSAGE_TOO_LONG: ErrorReply = ErrorReply::new(RefusalReason::Size, "552 5.3.4 Mail too long\r\n");
pub(crate) const ADDRESS_NOT_ASCII: ErrorReply =
    ErrorReply::new(RefusalReason::Address, "553 5.6.7 Address is not ASCII; MAIL with SMTPUTF8 allows UTF-8\r\n");

pub(crate) const BAD_SENDER: &str = "553 5.1.7 Bad sender";
pub(crate) const BAD_RECIPIENT: &str = "553 5.1.3 Bad recipient";

pub(crate) const STORE_FULL: ErrorReply =
    ErrorReply::new(RefusalReason::StoreFull, "452 4.3.1 No room for this mail at the moment\r\n");
pub(crate) const STORE_UNAVAILABLE: ErrorReply =
    ErrorReply::new(RefusalReason::StoreFailed, "451 4.3.0 The mail cannot be stored at the moment\r\n");
pub(crate) const STORE_BROKEN: ErrorReply =
    ErrorReply::new(RefusalReason::StoreFailed, "451 4.3.5 The mail cannot be stored because of a fault here\r\n");

/// A fixed refusing reply and the reason of the refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorReply {
    /// The reason.
    pub(crate) reason: RefusalReason,
    /// The reply, with CRLF.
    pub(crate) line: &'static str,
}

impl ErrorReply {
    const fn new(reason: RefusalReason, line: &'static str) -> Self {
        Self { reason, line }
    }

    const fn syntax(line: &'static str) -> Self {
        Self::new(RefusalReason::Syntax, line)
    }
}

pub(crate) fn write_greeting(out: &mut Vec<u8>, settings: &Settings) {
    let protocol = match settings.protocol {
        Protocol::Smtp => "SMTP",
        Protocol::Lmtp => "LMTP",
    };
    write_line(out, format_args!("220 {} Restante {protocol} ready", settings.domain));
}

pub(crate) fn write_hello(out: &mut Vec<u8>, domain: &str, peer: &str) {
    write_line(out, format_args!("250 {domain} greets {peer}"));
}

/// Writes the reply to EHLO and LHLO: the extensions that are available now.
pub(crate) fn write_extensions(out: &mut Vec<u8>, settings: &Settings, peer: &str, starttls: bool) {
    write_line(out, format_args!("250-{} greets {peer}", settings.domain));
    out.extend_from_slice(b"250-PIPELINING\r\n");
    write_line(out, format_args!("250-SIZE {}", settings.max_message_bytes));
    out.extend_from_slice(b"250-8BITMIME\r\n250-SMTPUTF8\r\n250-CHUNKING\r\n250-ENHANCEDSTATUSCODES\r\n250-DSN\r\n");
    if starttls && settings.require_starttls {
        out.extend_from_slice(b"250 STARTTLS\r\n");
        return;
    }
    let cram_md5 = if settings.cram_md5 { " CRAM-MD5" } else { "" };
    // Clients that choose the first one they know prefer a password.
    let mechanisms = format_args!("PLAIN LOGIN{cram_md5} XOAUTH2 OAUTHBEARER");
    if starttls {
        write_line(out, format_args!("250-AUTH {mechanisms}"));
        out.extend_from_slice(b"250 STARTTLS\r\n");
    } else {
        write_line(out, format_args!("250 AUTH {mechanisms}"));
    }
}

/// Writes a challenge, which is in base64. RFC 4954 section 4 requires the space, also if it is empty.
pub(crate) fn write_challenge(out: &mut Vec<u8>, challenge: &str) {
    write_line(out, format_args!("334 {challenge}"));
}

/// Writes the reply to an invalid address. It starts with [`BAD_SENDER`] or [`BAD_RECIPIENT`].
pub(crate) fn write_bad_address(out: &mut Vec<u8>, start: &str, error: &AddressError) {
    write_line(out, format_args!("{start}: {error}"));
}

pub(crate) fn write_closing(out: &mut Vec<u8>, domain: &str, (status, text): ClosingReply) {
    write_line(out, format_args!("421 {status} {domain} {text}"));
}

/// Returns the reply to input that is not that of a mail client.
pub(crate) fn foreign_input(foreign: ForeignInput) -> ClosingReply {
    match foreign {
        ForeignInput::Http => NOT_HTTP,
        ForeignInput::Tls => NOT_TLS,
        ForeignInput::LongLine => FIRST_LINE_TOO_LONG,
    }
}

/// Returns the reply to a refused sender.
pub fn sender_refusal(refusal: SenderRefusal) -> Refusal {
    match refusal {
        SenderRefusal::Policy => Refusal::new(550, "5.7.1 Mail from this domain is not accepted here"),
        SenderRefusal::Hook(refusal) => refusal,
        SenderRefusal::Chaos(code) => Refusal::new(code, "Chaos sender error"),
    }
}

/// Returns the reply to a refused recipient.
pub fn recipient_refusal(refusal: RecipientRefusal) -> Refusal {
    match refusal {
        RecipientRefusal::UnusableName(error) => {
            Refusal::new(553, format!("5.1.3 No mailbox here can have that name: {error}"))
        }
        RecipientRefusal::UnknownRun => {
            Refusal::new(550, "5.1.1 The run of this domain has expired, or another server has leased it")
        }
        RecipientRefusal::NotPermitted => Refusal::new(550, "5.7.1 The credentials are not for this mailbox"),
        RecipientRefusal::Policy => Refusal::new(550, "5.7.1 Mail to this domain is not accepted here"),
        RecipientRefusal::NotAllowed => Refusal::new(550, "5.7.1 Mail to this address is not accepted here"),
        RecipientRefusal::Hook(refusal) => refusal,
        RecipientRefusal::Chaos(code) => Refusal::new(code, "Chaos recipient error"),
    }
}

/// Returns the reply to a simulated failure of a login.
pub(crate) fn chaos_login_refusal(code: u16) -> Refusal {
    Refusal::new(code, "Chaos authentication error")
}

/// Returns the reply to a message that the store did not accept. The client keeps it and tries again (RFC 5321 section
/// 4.2).
pub(crate) fn store_refusal(refusal: StoreRefusal) -> ErrorReply {
    match refusal {
        StoreRefusal::Full => STORE_FULL,
        StoreRefusal::Unavailable => STORE_UNAVAILABLE,
        StoreRefusal::Broken => STORE_BROKEN,
        StoreRefusal::TooLarge => MESSAGE_TOO_LONG,
    }
}

/// Writes a refusal with an external text, made valid as a reply: an error code, an enhanced code of the same class if
/// there is one, and one line of printable ASCII.
pub(crate) fn write_refusal(out: &mut Vec<u8>, refusal: &Refusal) {
    let code = if (400..=599).contains(&refusal.code) { refusal.code } else { 550 };
    let (subject, text) = split_enhanced_code(refusal.text.trim());
    // Writing to memory cannot fail.
    let _ = match subject {
        Some(subject) => write!(out, "{code} {}.{subject} ", code / 100),
        None => write!(out, "{code} "),
    };
    let text = if text.is_empty() { "Refused" } else { text };
    out.extend(text.chars().take(MAX_TEXT_CHARS).map(to_printable_ascii));
    out.extend_from_slice(b"\r\n");
}

/// Splits `5.7.1 text` into `7.1` and `text` (RFC 3463 section 2).
fn split_enhanced_code(text: &str) -> (Option<&str>, &str) {
    let (code, rest) = text.split_once(' ').unwrap_or((text, ""));
    let is_number =
        |digits: &str| (1..=3).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    let is_code =
        |subject: &&str| subject.split_once('.').is_some_and(|(class, detail)| is_number(class) && is_number(detail));
    match code.strip_prefix("4.").or_else(|| code.strip_prefix("5.")).filter(is_code) {
        Some(subject) => (Some(subject), rest.trim_start()),
        None => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_valid_refusals() {
        let long = "x".repeat(10_000);
        let table: &[(u16, &str, &str)] = &[
            (550, "Mail denied by policy", "550 Mail denied by policy"),
            (450, "Try later", "450 Try later"),
            (550, "5.1.1 Nobody here", "550 5.1.1 Nobody here"),
            (451, "5.1.1 Nobody here", "451 4.1.1 Nobody here"),
            (550, "5.1.1", "550 5.1.1 Refused"),
            (550, "5.1 items", "550 5.1 items"),
            (550, "2.0.0 Ok", "550 2.0.0 Ok"),
            (550, "5.1234.1 x", "550 5.1234.1 x"),
            (250, "not a refusal", "550 not a refusal"),
            (999, "no code", "550 no code"),
            (550, "", "550 Refused"),
            (550, "a\r\n250 Ok\0b", "550 a  250 Ok b"),
            (550, "naïve", "550 na?ve"),
            (550, &long, &format!("550 {}", &long[..MAX_TEXT_CHARS])),
        ];
        for (code, text, expected) in table {
            let mut out = Vec::new();
            write_refusal(&mut out, &Refusal::new(*code, *text));
            assert_eq!(String::from_utf8(out).unwrap(), format!("{expected}\r\n"));
        }
    }
}
