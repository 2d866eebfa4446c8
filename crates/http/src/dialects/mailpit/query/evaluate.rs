//! Decides whether a message matches a query: from its summary if that is possible, otherwise from its source.

use std::cell::LazyCell;

use bytes::Bytes;
use restante_mail::message::Message;
use restante_mail::mime::{HeaderSummary, Mime, header_summary};

use crate::dialects::mailpit::query::parse::{Condition, Query, Term, clean, lowercase};
use crate::dialects::mailpit::query::search_text::search_text;
use crate::dialects::mailpit::summary::{Address, MessageSummary};

/// What the summary of a message says about a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Match,
    NoMatch,
    /// The source of the message is needed.
    Undecided,
}

impl Query {
    /// Decides from the summary of a message.
    pub(super) fn check_summary(&self, message: &Message) -> Decision {
        let fields = LazyCell::new(|| AddressFields::from_summary(message));
        self.check(|condition| condition.check(message, || &fields, None))
    }

    /// Returns whether a message matches. The cost is linear in the size of its source.
    pub(super) fn matches_source(&self, message: &Message, source: Bytes) -> bool {
        let header = header_summary(&source);
        let fields = AddressFields::from_summary(message).with_header(&header);
        let has_text = self.texts().next().is_some();
        let text = if has_text { search_text(message, &Mime::parse(source)) } else { String::new() };
        self.check(|condition| condition.check(message, || &fields, Some(&text))) == Decision::Match
    }

    /// Combines the results of all terms. `meets` returns `None` if it cannot say whether a condition is met.
    fn check(&self, meets: impl Fn(&Condition) -> Option<bool>) -> Decision {
        let mut decision = Decision::Match;
        for Term { condition, is_excluded } in &self.terms {
            match condition.check_excluded(*is_excluded, &meets) {
                Some(true) => {}
                Some(false) => return Decision::NoMatch,
                None => decision = Decision::Undecided,
            }
        }
        decision
    }
}

impl Condition {
    /// Returns whether a term with this condition matches. An excluded limit also excludes messages that are exactly at
    /// the limit of a size, but not those at the limit of a time.
    fn check_excluded(&self, is_excluded: bool, meets: impl Fn(&Self) -> Option<bool>) -> Option<bool> {
        match self {
            _ if !is_excluded => meets(self),
            Self::After(time) => meets(&Self::Before(*time)),
            Self::Before(time) => meets(&Self::After(*time)),
            Self::Larger(size) => meets(&Self::Smaller(*size)),
            Self::Smaller(size) => meets(&Self::Larger(*size)),
            _ => meets(self).map(|meets| !meets),
        }
    }

    /// Returns whether a message meets the condition, or `None` if the source of the message is needed to know. `text` is
    /// the search text, if it is known.
    fn check<'f>(
        &self,
        message: &Message,
        fields: impl Fn() -> &'f AddressFields<'f>,
        text: Option<&str>,
    ) -> Option<bool> {
        let first = message.first();
        // A list of which some addresses are not known says only what it contains.
        let in_list = |is_found: bool| if is_found || !fields().is_truncated { Some(is_found) } else { None };
        match self {
            Self::To(text) => Some(contains(&fields().to, text)),
            Self::From(text) => Some(contains(&fields().from, text)),
            Self::Cc(text) => in_list(contains(&fields().cc, text)),
            Self::Bcc(text) => in_list(contains(&fields().bcc, text)),
            Self::ReplyTo(text) => in_list(contains(&fields().reply_to, text)),
            Self::Addressed(text) => in_list(fields().lists().into_iter().any(|list| contains(list, text))),
            Self::Subject(text) => Some(lowercase(first.headline.subject()).contains(text)),
            Self::MessageId(text) => Some(lowercase(first.details.message_id()).contains(text)),
            Self::Tag(text) => Some(message.tags().iter().any(|tag| lowercase(tag) == *text)),
            Self::Tagged => Some(message.tags().iter().next().is_some()),
            Self::Read => Some(message.is_seen()),
            Self::Unread => Some(!message.is_seen()),
            Self::HasInlineParts => Some(first.details.inline_parts() > 0),
            Self::HasAttachments => Some(first.details.attached_parts() > 0),
            Self::After(time) => Some(first.received.as_millisecond() >= time.as_millisecond()),
            Self::Before(time) => Some(first.received.as_millisecond() <= time.as_millisecond()),
            Self::Larger(size) => Some(first.size > *size),
            Self::Smaller(size) => Some(first.size < *size),
            Self::Text(searched) => {
                if let Some(text) = text {
                    return Some(text.contains(searched));
                }
                // The search text contains these texts, and more.
                let addresses = fields().lists().into_iter().flatten();
                let mut known = addresses
                    .flat_map(|address| [address.name, address.address])
                    .chain([first.headline.subject(), first.details.sender()]);
                known.any(|text| clean(text).contains(searched)).then_some(true)
            }
        }
    }
}

/// Returns whether the name or the address of one of these addresses contains a text, which is in lower case.
fn contains(list: &[Address<'_>], text: &str) -> bool {
    let is_in = |value: &str| lowercase(value).contains(text);
    list.iter().any(|Address { name, address }| is_in(name) || is_in(address))
}

/// The addresses of a message.
struct AddressFields<'a> {
    from: [Address<'a>; 1],
    to: Vec<Address<'a>>,
    cc: Vec<Address<'a>>,
    /// The addresses of Bcc and the recipients of the envelope that no header field names.
    bcc: Vec<Address<'a>>,
    reply_to: Vec<Address<'a>>,
    /// Whether the lists of Cc, Bcc and Reply-To are not complete.
    is_truncated: bool,
}

impl<'a> AddressFields<'a> {
    fn from_summary(message: &'a Message) -> Self {
        let MessageSummary { from, to, cc, bcc, reply_to, .. } = MessageSummary::new(message);
        Self {
            from: [from],
            to: to.unwrap_or_default(),
            cc: cc.unwrap_or_default(),
            bcc: bcc.unwrap_or_default(),
            reply_to,
            is_truncated: message.first().details.is_truncated(),
        }
    }

    /// Replaces lists of which the summary has only the first addresses.
    fn with_header(self, header: &'a HeaderSummary) -> Self {
        if !self.is_truncated {
            return self;
        }
        let [cc, bcc, reply_to] = [&header.cc, &header.bcc, &header.reply_to]
            .map(|list| list.iter().map(|address| Address::parse(address)).collect());
        Self { cc, bcc, reply_to, is_truncated: false, ..self }
    }

    fn lists(&self) -> [&[Address<'a>]; 5] {
        [&self.to, &self.from, &self.cc, &self.bcc, &self.reply_to]
    }
}
