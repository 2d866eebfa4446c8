//! Release: a client requests that a stored message is sent to some recipients.

use restante_mail::address::{Address, Alphabet, is_valid_domain};
use restante_mail::message::Message;
use restante_store::StoreError;

use crate::recipients::with_ascii_domain;
use crate::settings::Target;

/// The maximum number of recipients of one entry.
pub const MAX_RECIPIENTS: usize = 100;

/// The maximum length of the text before the subject.
const MAX_PREFIX_BYTES: usize = 100;

/// A request to send a message.
#[derive(Clone, Debug)]
pub struct ReleaseRequest {
    /// The message, with the copies that the client may read.
    pub message: Message,
    /// The name of the target. May be left out if there is only one.
    pub target: Option<String>,
    /// The recipients. Empty for the recipients of the envelope.
    pub recipients: Vec<String>,
    /// The name of the user or token, if authentication is configured.
    pub by: Option<String>,
    /// A text that is added before the subject, or an empty one.
    pub subject_prefix: String,
}

/// Why a message is not released. It displays as a sentence for the client.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReleaseError {
    /// No target is configured.
    #[error("no relay target is configured: set relay.targets")]
    NoTarget,
    /// No target has this name.
    #[error("there is no relay target {0:?}")]
    UnknownTarget(String),
    /// There are several targets, so the request has to name one of these.
    #[error("name one of the relay targets: {}", .0.join(", "))]
    AmbiguousTarget(Vec<String>),
    /// There is no recipient.
    #[error("there is no recipient")]
    NoRecipients,
    /// There are more than [`MAX_RECIPIENTS`].
    #[error("there are more than {MAX_RECIPIENTS} recipients")]
    TooManyRecipients,
    /// A recipient is not a valid address.
    #[error("{0:?} is not a valid mail address")]
    InvalidRecipient(String),
    /// The local part of a recipient contains a route to another domain.
    #[error("{0:?} contains a route to another domain, which the relay does not permit")]
    Route(String),
    /// The text before the subject is too long, or contains other characters.
    #[error("the subject prefix may have up to {MAX_PREFIX_BYTES} printable ASCII characters, without \"=?\"")]
    InvalidPrefix,
    /// The target does not allow these recipients.
    #[error("the relay target does not allow these recipients: {}", .0.join(", "))]
    NotAllowed(Vec<String>),
    /// The target blocks these recipients.
    #[error("the relay target blocks these recipients: {}", .0.join(", "))]
    Blocked(Vec<String>),
    /// The message was sent in a loop.
    #[error("the message is in a loop: {0}")]
    Loop(&'static str),
    /// The message was deleted.
    #[error("the message was deleted")]
    Deleted,
    /// The queue has reached its limit.
    #[error("the relay queue is full; retry later")]
    QueueFull,
    /// The storage failed.
    #[error("the relay queue is not available; retry later")]
    Store(StoreError),
}

/// Returns the target with this name, or the only one.
pub(crate) fn select_target<'a>(targets: &'a [Target], name: Option<&str>) -> Result<&'a Target, ReleaseError> {
    match (name, targets) {
        (_, []) => Err(ReleaseError::NoTarget),
        (Some(name), _) => {
            let target = targets.iter().find(|target| target.name == name);
            target.ok_or_else(|| ReleaseError::UnknownTarget(name.to_owned()))
        }
        (None, [only]) => Ok(only),
        (None, _) => Err(ReleaseError::AmbiguousTarget(targets.iter().map(|target| target.name.clone()).collect())),
    }
}

/// Returns the recipients in their canonical form, each once. All of them have to be allowed.
pub(crate) fn check_recipients(target: &Target, recipients: &[String]) -> Result<Vec<String>, ReleaseError> {
    if recipients.is_empty() {
        return Err(ReleaseError::NoRecipients);
    }
    if recipients.len() > MAX_RECIPIENTS {
        return Err(ReleaseError::TooManyRecipients);
    }
    let (mut checked, mut not_allowed, mut blocked) = (Vec::new(), Vec::new(), Vec::new());
    for recipient in recipients {
        let address = parse_address(recipient).ok_or_else(|| ReleaseError::InvalidRecipient(recipient.clone()))?;
        if contains_route(&address) {
            return Err(ReleaseError::Route(address));
        }
        if target.blocked.matches(&address) {
            blocked.push(address);
        } else if !target.allowed.matches(&address) {
            not_allowed.push(address);
        } else if !checked.contains(&address) {
            checked.push(address);
        }
    }
    match (not_allowed.is_empty(), blocked.is_empty()) {
        (false, _) => Err(ReleaseError::NotAllowed(not_allowed)),
        (true, false) => Err(ReleaseError::Blocked(blocked)),
        (true, true) => Ok(checked),
    }
}

/// Returns the text before the subject without spaces around it. It cannot add a header field, and is not decoded.
pub(crate) fn check_prefix(prefix: &str) -> Result<String, ReleaseError> {
    let prefix = prefix.trim_matches(' ');
    let is_printable = prefix.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let is_valid = prefix.len() <= MAX_PREFIX_BYTES && is_printable && !prefix.contains("=?");
    is_valid.then(|| prefix.to_owned()).ok_or(ReleaseError::InvalidPrefix)
}

/// Parses the address of a recipient that messages can be sent to.
pub(crate) fn parse_recipient(text: &str) -> Option<String> {
    parse_address(text).filter(|address| !contains_route(address))
}

/// Returns whether mail servers can interpret the local part of an address as a route to another domain, as in
/// `ann%other.org@example.org` or `other.org!ann@example.org`. Then the domain does not show where a message goes.
fn contains_route(address: &str) -> bool {
    address.rsplit_once('@').is_none_or(|(local, _)| local.contains(['%', '!', '@']))
}

/// Parses an address that can be sent in a command: it has a domain, and no line break or control character. Returns it
/// with its domain as ASCII. Patterns are compared with this form, and servers differ in the conversion of other forms.
pub(crate) fn parse_address(text: &str) -> Option<String> {
    let address = Address::parse(text.trim(), Alphabet::Utf8).ok()?;
    let text = with_ascii_domain(&address.text());
    let (_, domain) = text.rsplit_once('@')?;
    let is_safe = !text.chars().any(|c| c.is_control() || c == '<' || c == '>');
    (is_safe && domain.is_ascii() && is_valid_domain(domain)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipients_have_a_domain_and_no_route() {
        let table = [
            ("ann@example.org", true),
            ("Ann.Lee+tag@example.org", true),
            ("\u{e4}nn@b\u{fc}cher.example", true),
            ("\"ann lee\"@example.org", true),
            ("ann", false),
            ("", false),
            ("ann@", false),
            ("ann@example.org>\r\nRCPT TO:<eve@other.org", false),
            ("ann%other.org@example.org", false),
            ("other.org!ann@example.org", false),
            ("\"ann@other.org\"@example.org", false),
        ];
        for (text, expected) in table {
            assert_eq!(parse_recipient(text).is_some(), expected, "{text}");
        }
    }

    #[test]
    fn prefixes_are_short_and_printable() {
        assert_eq!(check_prefix("").unwrap(), "");
        assert_eq!(check_prefix(" [Staging]  ").unwrap(), "[Staging]");
        for prefix in ["a\r\nBcc: eve@x.org", "\t", "\u{e4}", "=?utf-8?q?a?=", &"x".repeat(101)] {
            assert!(check_prefix(prefix).is_err(), "{prefix:?}");
        }
    }

    #[test]
    fn domains_are_converted_to_ascii() {
        let table = [
            ("ann@b\u{fc}cher.example", Some("ann@xn--bcher-kva.example")),
            ("\u{e4}nn@B\u{dc}CHER.Example", Some("\u{e4}nn@xn--bcher-kva.Example")),
            ("ann@stra\u{df}e.example", Some("ann@xn--strae-oqa.example")),
            ("ann@\u{ff45}xample.org", Some("ann@example.org")),
            ("ann@ex\u{ad}ample.org", Some("ann@example.org")),
            ("ann@a\u{3002}b.example", Some("ann@a.b.example")),
            ("ann@XN--BCHER-KVA.example", Some("ann@XN--BCHER-KVA.example")),
            ("ann@[192.0.2.1]", Some("ann@[192.0.2.1]")),
            // Domains that have no such form: an address, a character that is not permitted, a part of another command.
            ("ann@\u{ff11}\u{ff12}7.0.0.1", None),
            ("ann@a\u{ff20}b.example", None),
            ("ann@a\u{ff1e}b.example", None),
            ("ann@a\u{fffd}.example", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse_recipient(text).as_deref(), expected, "{text}");
        }
    }
}
