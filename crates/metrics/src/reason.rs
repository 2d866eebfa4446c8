//! Why something was refused over SMTP, read off the replies: every refusal passes through them, whoever decided it.

use restante_proto::smtp::{FAREWELLS, split_enhanced_code};

/// The replies about a store that did not take a message. The reason is read off them.
pub mod refusal {
    /// The store is full.
    pub const NO_ROOM: &str = "4.3.1 No room for this mail at the moment";
    /// The store does not answer.
    pub const UNAVAILABLE: &str = "4.3.0 The mail cannot be stored at the moment";
    /// The store, or what it holds, is damaged.
    pub const BROKEN: &str = "4.3.5 The mail cannot be stored because of a fault here";
}

/// A reason to refuse a sender, a recipient, a mail or a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The rules about domains, or a script.
    Policy,
    /// The mail is too long.
    Size,
    /// The mail has too many recipients.
    Recipients,
    /// No mailbox can be named after the address, or it is none.
    Address,
    /// The command is unknown, malformed or out of order.
    Syntax,
    /// A login failed, or is missing.
    Auth,
    /// The store has no room.
    StoreFull,
    /// The store failed.
    StoreFailed,
    /// There are too many connections, or too many mails under way.
    Busy,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Policy,
        Self::Size,
        Self::Recipients,
        Self::Address,
        Self::Syntax,
        Self::Auth,
        Self::StoreFull,
        Self::StoreFailed,
        Self::Busy,
    ];

    /// What it is called in a label.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Size => "size",
            Self::Recipients => "recipients",
            Self::Address => "address",
            Self::Syntax => "syntax",
            Self::Auth => "auth",
            Self::StoreFull => "store_full",
            Self::StoreFailed => "store_failed",
            Self::Busy => "busy",
        }
    }

    /// The reason when these are the words for a store that did not take a mail.
    fn of_store(text: &str) -> Option<Self> {
        match text {
            refusal::NO_ROOM => Some(Self::StoreFull),
            refusal::UNAVAILABLE | refusal::BROKEN => Some(Self::StoreFailed),
            _ => None,
        }
    }

    /// The reasons of all refusals among these replies, which are whole lines.
    pub(super) fn all_in(replies: &[u8]) -> impl Iterator<Item = Self> {
        replies.split(|byte| *byte == b'\n').filter_map(Self::of)
    }

    /// The reason of a reply, if it refuses anything, by its enhanced status code (RFC 3463).
    fn of(reply: &[u8]) -> Option<Self> {
        if !matches!(reply.first(), Some(b'4' | b'5')) {
            return None;
        }
        let (code, text) = str::from_utf8(reply).ok()?.trim_ascii_end().split_at_checked(4)?;
        // A session that ends refuses nothing, unless a script ends it; that there are too many of them is counted where
        // it is known.
        if code == "421 " {
            return (!is_farewell(text)).then_some(Self::Policy);
        }
        // Of several lines, the last one counts. And who cancels its login is refused nothing (RFC 4954 section 4).
        let is_cancelled = code == "501 " && text.starts_with("5.7.0 ");
        if code.ends_with('-') || is_cancelled {
            return None;
        }
        // Only scripts leave the enhanced code out.
        let (Some(subject), _) = split_enhanced_code(text) else { return Some(Self::Policy) };
        Some(match subject.as_bytes() {
            b"3.4" => Self::Size,
            b"5.3" => Self::Recipients,
            // A script may use the codes of a store that fails, so it is the server's own words that count.
            [b'3', ..] => Self::of_store(text).unwrap_or(Self::Policy),
            [b'1', ..] | b"6.7" => Self::Address,
            b"7.0" | b"7.8" => Self::Auth,
            [b'5', ..] => Self::Syntax,
            // The rest are the words of scripts.
            _ => Self::Policy,
        })
    }
}

/// Whether a session ends with these words of the server's own: a script may end one too, and refuses something by that.
fn is_farewell(text: &str) -> bool {
    text.splitn(3, ' ').nth(2).is_some_and(|words| FAREWELLS.contains(&words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_and_their_reasons() {
        let table: &[(&str, Option<Reason>)] = &[
            ("250 2.0.0 Ok", None),
            ("250-PIPELINING", None),
            ("334 ", None),
            ("421 4.7.0 mx.test Too many connections, try again later", None),
            ("421 4.4.2 mx.test Waited too long for you, closing", None),
            ("421 4.3.2 mx.test Shutting down", None),
            ("421 4.7.0 mx.test Too many errors, closing", None),
            ("452 4.5.3 Too many recipients", Some(Reason::Recipients)),
            ("552 5.3.4 Mail too long", Some(Reason::Size)),
            ("550 5.7.1 Mail to this domain is not accepted here", Some(Reason::Policy)),
            ("550 5.2.1 Says a script", Some(Reason::Policy)),
            ("553 5.1.3 Bad recipient: empty", Some(Reason::Address)),
            ("553 5.6.7 Address is not ASCII", Some(Reason::Address)),
            ("500 5.5.1 Unknown command", Some(Reason::Syntax)),
            ("555 5.5.4 Unknown parameter", Some(Reason::Syntax)),
            ("530 5.7.0 Authentication required", Some(Reason::Auth)),
            ("535 5.7.8 Wrong user name or password", Some(Reason::Auth)),
            ("452 4.3.1 No room for this mail at the moment", Some(Reason::StoreFull)),
            ("451 4.3.0 The mail cannot be stored at the moment", Some(Reason::StoreFailed)),
            ("451 4.3.5 The mail cannot be stored because of a fault here", Some(Reason::StoreFailed)),
            // Scripts may say what they like.
            ("451 4.3.0 Says a script", Some(Reason::Policy)),
            ("452 4.3.1 No room for you", Some(Reason::Policy)),
            ("421 4.7.0 Go away, says a script", Some(Reason::Policy)),
            ("421 Go away", Some(Reason::Policy)),
            ("550 5.1 items left", Some(Reason::Policy)),
            ("550 5.1.1", Some(Reason::Address)),
            ("550 5.1.x Says a script", Some(Reason::Policy)),
            ("550-5.7.1 A long", None),
            ("550-5.7.1 story,", None),
            ("550 5.7.1 told by a script", Some(Reason::Policy)),
            ("550 Mail denied by policy", Some(Reason::Policy)),
            ("550 e.g. by a script", Some(Reason::Policy)),
            ("501 5.7.0 Authentication cancelled", None),
            ("5", None),
        ];
        for (reply, expected) in table {
            assert_eq!(Reason::of(reply.as_bytes()), *expected, "{reply}");
        }
        let replies: Vec<u8> = table.iter().flat_map(|(reply, _)| format!("{reply}\r\n").into_bytes()).collect();
        let expected: Vec<Reason> = table.iter().filter_map(|(_, reason)| *reason).collect();
        assert_eq!(Reason::all_in(&replies).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_reason_is_counted_in_a_place_of_its_own() {
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
