//! All reply texts of the POP3 session. The codes in brackets are those of RFC 2449 section 8 and RFC 3206.

use crate::reply_text::{to_printable_ascii, write_line};

use super::Settings;
use super::maildrop::{Entry, MessageNumberError, Total};
use super::request::{Column, FetchRequest};

/// The longest external text in a reply, so that the line is within the 512 octets of RFC 2449 section 4.
const MAX_REASON_CHARS: usize = 400;

/// The last line of a multi-line reply.
pub(crate) const END: &str = ".\r\n";

pub(crate) const OK: &str = "+OK\r\n";
pub(crate) const BYE: &str = "+OK Bye\r\n";
pub(crate) const USER_OK: &str = "+OK Now the password\r\n";
pub(crate) const UTF8_OK: &str = "+OK UTF-8 it is\r\n";
pub(crate) const GO_AHEAD_TLS: &str = "+OK Ready to start TLS\r\n";
pub(crate) const TOP: &str = "+OK Top of the message follows\r\n";
pub(crate) const IDS: &str = "+OK Ids follow\r\n";
pub(crate) const MECHANISMS: &str = "+OK Mechanisms follow\r\nPLAIN\r\nXOAUTH2\r\nOAUTHBEARER\r\n.\r\n";

pub(crate) const UNKNOWN_COMMAND: &str = "-ERR Unknown command\r\n";
pub(crate) const CONTROL_CHARACTER: &str = "-ERR Control character in the command\r\n";
pub(crate) const LINE_TOO_LONG: &str = "-ERR Line too long\r\n";
pub(crate) const NOT_UTF8: &str = "-ERR The name is not UTF-8\r\n";
pub(crate) const TOO_MANY_ERRORS: &str = "-ERR Too many errors, closing\r\n";
pub(crate) const NOT_HTTP: &str = "-ERR This is POP3, not HTTP\r\n";
pub(crate) const NOT_TLS: &str = "-ERR TLS begins with STLS on this port, closing\r\n";
pub(crate) const FIRST_LINE_TOO_LONG: &str = "-ERR Line too long, closing\r\n";

pub(crate) const NO_ARGUMENT: &str = "-ERR This command takes no argument\r\n";
pub(crate) const SYNTAX_USER: &str = "-ERR Syntax: USER name\r\n";
pub(crate) const SYNTAX_APOP: &str = "-ERR Syntax: APOP name digest\r\n";
pub(crate) const SYNTAX_AUTH: &str = "-ERR Syntax: AUTH [mechanism [initial-response]]\r\n";
pub(crate) const SYNTAX_LIST: &str = "-ERR Syntax: LIST [number]\r\n";
pub(crate) const SYNTAX_UIDL: &str = "-ERR Syntax: UIDL [number]\r\n";
pub(crate) const SYNTAX_RETR: &str = "-ERR Syntax: RETR number\r\n";
pub(crate) const SYNTAX_DELE: &str = "-ERR Syntax: DELE number\r\n";
pub(crate) const SYNTAX_TOP: &str = "-ERR Syntax: TOP number lines\r\n";

pub(crate) const LOGIN_FIRST: &str = "-ERR Log in first\r\n";
pub(crate) const LOGIN_TWICE: &str = "-ERR You are logged in already\r\n";
pub(crate) const USER_FIRST: &str = "-ERR Need USER first\r\n";
pub(crate) const UTF8_TOO_LATE: &str = "-ERR UTF8 must come before the login\r\n";
pub(crate) const TLS_UNAVAILABLE: &str = "-ERR TLS is not available\r\n";
pub(crate) const TLS_TWICE: &str = "-ERR TLS is already on\r\n";
pub(crate) const TLS_TOO_LATE: &str = "-ERR STLS must come before UTF8 and the login\r\n";

pub(crate) const AUTH_UNKNOWN: &str = "-ERR Unknown authentication mechanism; CAPA lists the known ones\r\n";
pub(crate) const AUTH_CANCELLED: &str = "-ERR Authentication cancelled\r\n";
pub(crate) const AUTH_MALFORMED: &str = "-ERR Cannot decode the response\r\n";
pub(crate) const NOT_AUTHENTICATED: &str = "-ERR [AUTH] Wrong user name or password\r\n";
pub(crate) const NOT_PERMITTED: &str = "-ERR [AUTH] The login does not allow this\r\n";
pub(crate) const READ_ONLY: &str = "-ERR The login allows to read only\r\n";
pub(crate) const UNAVAILABLE: &str = "-ERR [SYS/TEMP] The mailbox cannot be read now, try again later\r\n";
pub(crate) const NOT_REMOVED: &str = "-ERR [SYS/TEMP] Some deleted messages are not removed\r\n";

/// Writes the greeting. Its last word is the timestamp for APOP (RFC 1939 section 7).
pub(crate) fn write_greeting(out: &mut Vec<u8>, timestamp: &str) {
    write_line(out, format_args!("+OK Restante POP3 server ready {timestamp}"));
}

/// Writes the capabilities (RFC 2449 section 5). STLS is included only while it is available.
pub(crate) fn write_capabilities(out: &mut Vec<u8>, stls: bool) {
    out.extend_from_slice(b"+OK Capabilities follow\r\nTOP\r\nUSER\r\nUIDL\r\nRESP-CODES\r\nAUTH-RESP-CODE\r\n");
    out.extend_from_slice(b"SASL PLAIN XOAUTH2 OAUTHBEARER\r\nPIPELINING\r\nUTF8 USER\r\n");
    out.extend_from_slice(if stls { b"STLS\r\n" } else { b"" });
    out.extend_from_slice(b"IMPLEMENTATION Restante\r\n.\r\n");
}

/// Writes a challenge, which is in base64. RFC 5034 section 4 requires the space, also if it is empty.
pub(crate) fn write_challenge(out: &mut Vec<u8>, challenge: &str) {
    write_line(out, format_args!("+ {challenge}"));
}

/// Writes the reply to a login and to RSET, and the first line of LIST.
pub(crate) fn write_total(out: &mut Vec<u8>, total: Total) {
    let plural = if total.messages == 1 { "" } else { "s" };
    write_line(out, format_args!("+OK {} message{plural} ({} octets)", total.messages, total.octets));
}

/// Writes the reply to STAT, in the form that RFC 1939 section 5 prescribes.
pub(crate) fn write_stat(out: &mut Vec<u8>, total: Total) {
    write_line(out, format_args!("+OK {} {}", total.messages, total.octets));
}

/// Writes the reply to LIST and UIDL for one message.
pub(crate) fn write_single_listing(out: &mut Vec<u8>, number: u64, entry: Entry, column: Column) {
    out.extend_from_slice(b"+OK ");
    write_listing_line(out, number, entry, column);
}

/// Writes one line of a listing.
pub(crate) fn write_listing_line(out: &mut Vec<u8>, number: u64, entry: Entry, column: Column) {
    match column {
        Column::Sizes => write_line(out, format_args!("{number} {}", entry.octets)),
        Column::Ids => write_line(out, format_args!("{number} {}", entry.id)),
    }
}

/// Writes the first line of the reply to RETR.
pub(crate) fn write_retr_ok(out: &mut Vec<u8>, octets: usize) {
    write_line(out, format_args!("+OK {octets} octets"));
}

pub(crate) fn write_marked(out: &mut Vec<u8>, number: u64) {
    write_line(out, format_args!("+OK Message {number} deleted"));
}

pub(crate) fn write_no_such_message(out: &mut Vec<u8>, number: u64, error: MessageNumberError) {
    match error {
        // The number is not repeated: it may be larger than any integer.
        MessageNumberError::Unknown => write_line(out, format_args!("-ERR There is no such message")),
        MessageNumberError::Deleted => write_line(out, format_args!("-ERR Message {number} is deleted")),
    }
}

/// Writes the reply for a message that was deleted by another client since the login.
pub(crate) fn write_gone(out: &mut Vec<u8>, request: FetchRequest) {
    write_line(out, format_args!("-ERR Message {} is gone", request.number));
}

/// Writes the reply to an invalid mailbox name. The reason is made valid as a reply: one line of printable ASCII.
pub(crate) fn write_bad_name(out: &mut Vec<u8>, reason: &str) {
    out.extend_from_slice(b"-ERR [AUTH] Bad mailbox name: ");
    out.extend(reason.chars().take(MAX_REASON_CHARS).map(to_printable_ascii));
    out.extend_from_slice(b"\r\n");
}

pub(crate) fn write_shutting_down(out: &mut Vec<u8>, settings: &Settings) {
    write_line(out, format_args!("-ERR [SYS/TEMP] {} is shutting down", settings.domain));
}

pub(crate) fn write_busy(out: &mut Vec<u8>, settings: &Settings) {
    write_line(out, format_args!("-ERR [SYS/TEMP] {} has too many connections, try again later", settings.domain));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_valid_reasons() {
        let long = "x".repeat(10_000);
        let table: &[(&str, &str)] = &[
            ("the domain is missing", "the domain is missing"),
            ("a\r\n+OK\0b", "a  +OK b"),
            ("naïve", "na?ve"),
            (&long, &long[..MAX_REASON_CHARS]),
        ];
        for (reason, expected) in table {
            let mut out = Vec::new();
            write_bad_name(&mut out, reason);
            assert_eq!(String::from_utf8(out).unwrap(), format!("-ERR [AUTH] Bad mailbox name: {expected}\r\n"));
        }
    }
}
