//! The reply texts of the IMAP session.

use std::io::Write as _;

use restante_mail::message::Flags;

use crate::reply_text::{to_printable_ascii, write_line};

use super::Refusal;
use super::keywords::keyword_of_tag;
use super::selected::{Entry, Selected};
use super::task::{Completion, Status};
use super::utf7;
use super::write::write_string;

/// The maximum number of characters of a reason.
const MAX_REASON_CHARS: usize = 200;

pub(super) const LOGIN_FIRST: &str = "Log in first";
pub(super) const LOGIN_TWICE: &str = "You are logged in already";
pub(super) const SELECT_FIRST: &str = "Select a mailbox first";
pub(super) const READ_ONLY: &str = "The mailbox is open to read only";
pub(super) const TLS_UNAVAILABLE: &str = "TLS is not available";
pub(super) const TLS_TWICE: &str = "TLS is already on";
pub(super) const AUTH_UNKNOWN: &str =
    "Unknown authentication mechanism; known are PLAIN, LOGIN, XOAUTH2 and OAUTHBEARER";
pub(super) const AUTH_CANCELLED: &str = "Authentication cancelled";
pub(super) const AUTH_MALFORMED: &str = "Cannot decode the response";
pub(super) const COMMAND_TOO_LONG: &str = "The command is too long";
pub(super) const LITERAL_TOO_LARGE: &str = "The literal is too long";
pub(super) const BAD_SEQUENCE: &str = "There is no message with this sequence number";

/// How FLAGS are reported.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlagsStyle {
    /// Whether UID is included.
    pub(super) has_uid: bool,
    /// Whether MODSEQ is included.
    pub(super) has_modseq: bool,
}

/// The system flags in the order in which they are written, with the `Flags` of the store.
pub(super) const SYSTEM_FLAGS: [(&str, Flags); 4] = [
    ("\\Answered", Flags::ANSWERED),
    ("\\Flagged", Flags::FLAGGED),
    ("\\Deleted", Flags::DELETED),
    ("\\Draft", Flags::DRAFT),
];

/// Writes the last reply to a command.
pub(super) fn write_completion(out: &mut Vec<u8>, tag: &str, status: Status, code: &str, text: &str) {
    let status = match status {
        Status::Ok => "OK",
        Status::No => "NO",
        Status::Bad => "BAD",
    };
    let _ = write!(out, "{tag} {status} {code}");
    out.extend(text.chars().take(MAX_REASON_CHARS).map(to_printable_ascii));
    out.extend_from_slice(b"\r\n");
}

/// Returns the last reply to a command that the driver refuses.
pub(super) fn refusal(refusal: &Refusal) -> Completion {
    let (code, text) = match refusal {
        Refusal::WrongCredentials => ("[AUTHENTICATIONFAILED] ", "Wrong user name or password"),
        Refusal::NotPermitted => ("[NOPERM] ", "The login does not allow this"),
        Refusal::NoSuchMailbox => ("[NONEXISTENT] ", "There is no such mailbox"),
        Refusal::TryCreate => ("[TRYCREATE] ", "There is no such mailbox"),
        Refusal::AlreadyExists => ("[ALREADYEXISTS] ", "The mailbox exists already"),
        Refusal::HasChildren => ("[HASCHILDREN] ", "The mailbox has mailboxes below it"),
        Refusal::TooLarge => ("[TOOBIG] ", "The message is too large"),
        Refusal::Unavailable => ("[UNAVAILABLE] ", "The store is not available now, try again later"),
        Refusal::Cannot(reason) => return Completion::no("[CANNOT] ", reason.clone()),
        Refusal::Limit(reason) => return Completion::no("[LIMIT] ", reason.clone()),
    };
    Completion::no(code, text)
}

/// Writes the value of FLAGS.
pub(super) fn write_flags(out: &mut Vec<u8>, selected: &Selected, entry: &Entry) {
    out.push(b'(');
    let start = out.len();
    if entry.is_seen {
        out.extend_from_slice(b" \\Seen");
    }
    for (name, flag) in SYSTEM_FLAGS {
        if entry.flags.contains(flag) {
            out.push(b' ');
            out.extend_from_slice(name.as_bytes());
        }
    }
    if entry.is_recent {
        out.extend_from_slice(b" \\Recent");
    }
    out.extend_from_slice(selected.keyword_text(entry));
    if out.len() > start {
        out.remove(start);
    }
    out.push(b')');
}

/// Writes the keywords for tags, each after a space.
pub(super) fn write_keywords<'a>(out: &mut Vec<u8>, tags: impl IntoIterator<Item = &'a str>) {
    for tag in tags {
        out.push(b' ');
        out.extend_from_slice(keyword_of_tag(tag).as_bytes());
    }
}

/// Writes a FETCH reply with the flags of the message at this index.
pub(super) fn write_flags_update(out: &mut Vec<u8>, selected: &Selected, index: usize, style: FlagsStyle) {
    let Some(entry) = selected.entries().get(index) else { return };
    let _ = write!(out, "* {} FETCH (", index + 1);
    if style.has_uid {
        let _ = write!(out, "UID {} ", entry.uid);
    }
    out.extend_from_slice(b"FLAGS ");
    write_flags(out, selected, entry);
    if style.has_modseq {
        let _ = write!(out, " MODSEQ ({})", entry.modseq);
    }
    out.extend_from_slice(b")\r\n");
}

/// Writes the name of a mailbox.
pub(super) fn write_mailbox(out: &mut Vec<u8>, name: &str, is_utf8: bool) {
    if is_utf8 {
        write_string(out, name.as_bytes(), true);
    } else {
        write_string(out, utf7::encode(name).as_bytes(), false);
    }
}

/// Writes an ascending list of numbers as a set.
pub(super) fn write_set(out: &mut Vec<u8>, numbers: impl IntoIterator<Item = u32>) {
    let mut numbers = numbers.into_iter().peekable();
    let mut is_first = true;
    while let Some(first) = numbers.next() {
        let mut last = first;
        while numbers.peek().is_some_and(|&next| last.checked_add(1) == Some(next)) {
            last = numbers.next().unwrap_or(last);
        }
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        let _ = if first == last { write!(out, "{first}") } else { write!(out, "{first}:{last}") };
    }
}

/// Returns an ascending list of numbers as a set.
pub(super) fn set_text(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut out = Vec::new();
    write_set(&mut out, numbers);
    String::from_utf8(out).unwrap_or_default()
}

/// Writes the continuation request for more input.
pub(super) fn write_continuation(out: &mut Vec<u8>, text: &str) {
    write_line(out, format_args!("+ {text}"));
}
