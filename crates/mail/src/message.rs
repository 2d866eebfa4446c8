//! A stored message as its readers see it: its id, its summary and its source bytes.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::slice;
use std::str::FromStr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use jiff::Timestamp;

use crate::details::Details;
use crate::naming::{MailboxName, Project};
use crate::tags::Tags;

/// The id of a copy of a message, unique in the store. Ids ascend in the order of arrival and are never reused. The
/// copies of one message have consecutive ids. The id of the first copy is also the id of the message as a whole.
///
/// An id is the time of arrival in microseconds, or the last id plus one if that is higher. Only the last id is needed
/// to assign an id. So ids stay unique after a purge, and after a restart of a store that does not persist anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(u64);

impl MessageId {
    /// The id below all others.
    pub const ZERO: Self = Self(0);

    /// The id above all others.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the id for a message that was received at `received` in a store whose last id is `last`.
    #[must_use]
    pub fn next_after(last: Self, received: Timestamp) -> Self {
        let arrival = u64::try_from(received.as_microsecond()).unwrap_or(0);
        Self(arrival.max(last.0 + 1))
    }

    /// Returns the id as a number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl From<u64> for MessageId {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The text is not a message id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseMessageIdError;

impl FromStr for MessageId {
    type Err = ParseMessageIdError;

    /// Accepts only the form that [`fmt::Display`] writes, so that each message has exactly one URL.
    fn from_str(text: &str) -> Result<Self, ParseMessageIdError> {
        if text.starts_with(['0', '+']) {
            return Err(ParseMessageIdError);
        }
        text.parse().map(Self).map_err(|_| ParseMessageIdError)
    }
}

/// The summary of a copy of a message: the message as it is in one mailbox. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The mailbox that holds this copy.
    pub mailbox: MailboxName,
    /// The id of this copy.
    pub id: MessageId,
    /// The id of the message that this is a copy of.
    pub message: MessageId,
    /// The number of this copy within its mailbox. Numbers ascend with the ids and are never reused in a mailbox.
    pub number: u32,
    /// Sender, recipients and subject.
    pub headline: Headline,
    /// The time when the server received the message.
    pub received: Timestamp,
    /// The length of the source in bytes.
    pub size: u64,
    /// Whether the message is marked as read.
    pub seen: bool,
    /// The flags.
    pub flags: Flags,
    /// The tags.
    pub tags: Tags,
    /// A number that ascends within the mailbox with every change of the marks of a copy. See [`Marks::modseq`].
    pub modseq: u64,
    /// The envelope and a preview.
    pub details: Details,
}

impl Summary {
    /// Returns the marks.
    pub fn marks(&self) -> Marks {
        Marks { seen: self.seen, flags: self.flags, tags: self.tags.clone(), modseq: self.modseq }
    }

    /// Returns the recipients of the headline. If the headline has none because the recipients of the envelope are in several
    /// projects, returns those of this copy.
    pub fn to(&self) -> impl Iterator<Item = Cow<'_, str>> {
        recipients_to_show(slice::from_ref(self))
    }

    /// Returns the length of all texts together, in bytes.
    pub fn text_len(&self) -> usize {
        self.headline.text_len() + self.tags.encoded().len() + self.details.encoded().len()
    }
}

/// What clients can change of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Whether the copy is marked as read.
    pub seen: bool,
    /// The flags.
    pub flags: Flags,
    /// The tags.
    pub tags: Tags,
    /// The number of the last change of these values: the MODSEQ of IMAP. It ascends within the mailbox, and storing the
    /// copy is its first change.
    pub modseq: u64,
}

/// A set of flags of a copy. They have a meaning for mail clients only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    /// The message needs attention.
    pub const FLAGGED: Self = Self(1);
    /// The message was answered.
    pub const ANSWERED: Self = Self(2);
    /// The message is to be deleted.
    pub const DELETED: Self = Self(4);
    /// The message is a draft.
    pub const DRAFT: Self = Self(8);

    /// All flags.
    const ALL: u8 = 15;

    /// Returns the flags as bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns the flags with these bits. Ignores bits that stand for no flag.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL)
    }

    /// Returns whether all of `other` are in the set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the flags that are in one of the sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the flags of this set without those of `other`.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether there are no flags.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A message as a whole: its copies in mailboxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// At least one copy, ascending by id.
    copies: Vec<Summary>,
}

impl Message {
    /// Groups copies that are ascending by id into messages.
    pub fn group(copies: impl IntoIterator<Item = Summary>) -> Vec<Self> {
        let mut messages: Vec<Self> = Vec::new();
        for copy in copies {
            match messages.last_mut() {
                Some(last) if last.id() == copy.message => last.copies.push(copy),
                _ => messages.push(Self { copies: vec![copy] }),
            }
        }
        messages
    }

    /// Returns the id of the message.
    #[expect(clippy::misnamed_getters, reason = "the id of a copy is another one")]
    pub fn id(&self) -> MessageId {
        self.first().message
    }

    /// Returns the first copy. Sender, subject, size and text are the same in all copies.
    pub fn first(&self) -> &Summary {
        &self.copies[0]
    }

    /// Returns the copies, ascending by id.
    pub fn copies(&self) -> &[Summary] {
        &self.copies
    }

    /// Returns the copies as owned values.
    pub fn into_copies(self) -> Vec<Summary> {
        self.copies
    }

    /// Returns whether all copies are marked as read.
    pub fn is_seen(&self) -> bool {
        self.copies.iter().all(|copy| copy.seen)
    }

    /// Returns the tags of all copies.
    pub fn tags(&self) -> Tags {
        self.copies.iter().fold(Tags::default(), |tags, copy| tags.union(&copy.tags))
    }

    /// Returns the mailboxes of the copies.
    pub fn mailboxes(&self) -> impl Iterator<Item = &MailboxName> {
        self.copies.iter().map(|copy| &copy.mailbox)
    }

    /// Returns the recipients of the headline. If the headline has none because the recipients of the envelope are in several
    /// projects, returns those of the copies.
    pub fn to(&self) -> impl Iterator<Item = Cow<'_, str>> {
        recipients_to_show(&self.copies)
    }

    /// Returns the recipients of the envelope whose mailboxes hold a copy.
    pub fn recipients(&self) -> impl Iterator<Item = &str> {
        self.copies.iter().flat_map(|copy| copy.details.recipients())
    }

    /// Returns the recipients of the envelope that no header field (To, Cc, Bcc) names, in any case of letters: the hidden
    /// recipients. Empty if the header names more addresses than are kept.
    pub fn unnamed_recipients(&self) -> Vec<&str> {
        let Summary { headline, details, .. } = self.first();
        if details.lacks_addresses() {
            return Vec::new();
        }
        let to = headline.to().filter(|_| !details.lacks_to());
        self.recipients_without(to.chain(details.cc()).chain(details.bcc()))
    }

    /// Returns the recipients of the envelope without these addresses, in any case of letters. They have the form
    /// `Display Name <address>`.
    pub fn recipients_without<'a>(&self, named: impl Iterator<Item = &'a str>) -> Vec<&str> {
        let named: HashSet<String> = named.map(|named| address_of(named).to_lowercase()).collect();
        self.recipients().filter(|recipient| !named.contains(&recipient.to_lowercase())).collect()
    }

    /// Returns the message with only the copies in these mailboxes. `None` if there are none.
    #[must_use]
    pub fn restricted_to(mut self, is_permitted: impl Fn(&MailboxName) -> bool) -> Option<Self> {
        self.copies.retain(|copy| is_permitted(&copy.mailbox));
        (!self.copies.is_empty()).then_some(self)
    }

    /// Returns the message with the names of its mailboxes relative to a home.
    #[must_use]
    pub fn relative_to(mut self, home: Option<&Project>) -> Self {
        for copy in &mut self.copies {
            copy.mailbox = copy.mailbox.relative_to(home);
        }
        self
    }
}

/// Sender, recipients and subject of a message, decoded. Addresses have the form `Display Name <address>`.
///
/// A store can contain very many headlines. So all texts are in one allocation, which the copies of a message share.
#[derive(Clone, PartialEq, Eq)]
pub struct Headline {
    /// Sender, subject and recipients, concatenated. Each recipient ends in a line feed.
    text: Arc<str>,
    from_end: u32,
    subject_end: u32,
}

impl Headline {
    /// Creates a headline. Line feeds are replaced by spaces; no header field can contain one.
    pub fn new<'a>(from: &str, to: impl IntoIterator<Item = &'a str>, subject: &str) -> Self {
        let offset = |text: &str| u32::try_from(text.len()).unwrap_or(u32::MAX);
        let mut text = one_line(from).into_owned();
        let from_end = offset(&text);
        text.push_str(&one_line(subject));
        let subject_end = offset(&text);
        for recipient in to {
            text.push_str(&one_line(recipient));
            text.push('\n');
        }
        Self { text: text.into(), from_end, subject_end }
    }

    /// Returns the sender.
    pub fn from(&self) -> &str {
        self.slice(0, self.from_end)
    }

    /// Returns the subject.
    pub fn subject(&self) -> &str {
        self.slice(self.from_end, self.subject_end)
    }

    /// Returns the recipients.
    pub fn to(&self) -> impl Iterator<Item = &str> {
        self.recipient_lines().split_terminator('\n')
    }

    /// Returns the recipients as one text, in which each recipient ends in a line feed.
    pub fn recipient_lines(&self) -> &str {
        self.slice(self.subject_end, u32::MAX)
    }

    /// Returns the length of all texts together, in bytes.
    pub fn text_len(&self) -> usize {
        self.text.len()
    }

    fn slice(&self, start: u32, end: u32) -> &str {
        let at = |offset: u32| (offset as usize).min(self.text.len());
        &self.text[at(start)..at(end)]
    }
}

/// Returns the recipients of the headline of these copies of a message, or else those of the copies.
fn recipients_to_show(copies: &[Summary]) -> impl Iterator<Item = Cow<'_, str>> {
    let Summary { headline, details, .. } = &copies[0];
    let is_empty = details.lacks_to() && headline.recipient_lines().is_empty();
    let hidden = if is_empty { copies } else { &[] };
    let hidden = hidden.iter().flat_map(|copy| copy.details.recipients());
    headline.to().map(Cow::Borrowed).chain(hidden.map(|address| format!("<{address}>").into()))
}

/// Returns the address of the form `Display Name <address>`.
fn address_of(named: &str) -> &str {
    let without_end = named.strip_suffix('>').unwrap_or(named);
    without_end.rsplit_once('<').map_or(named, |(_, address)| address)
}

fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains('\n') { text.replace('\n', " ").into() } else { text.into() }
}

impl fmt::Debug for Headline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to: Vec<&str> = self.to().collect();
        f.debug_struct("Headline")
            .field("from", &self.from())
            .field("to", &to)
            .field("subject", &self.subject())
            .finish()
    }
}

/// The source of a stored message: the trace fields added for its mailbox, then the message as it was received.
///
/// The two are separate because a message for several mailboxes is stored once. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Return-Path and Received. They differ per mailbox.
    pub trace: Bytes,
    /// The message, byte for byte.
    pub body: Bytes,
}

impl Source {
    /// Returns the length of trace and body together. This is the `size` of the summary.
    pub fn len(&self) -> usize {
        self.trace.len() + self.body.len()
    }

    /// Returns whether both are empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns trace and body as one buffer. Copies both.
    pub fn to_bytes(&self) -> Bytes {
        let mut all = BytesMut::with_capacity(self.len());
        all.extend_from_slice(&self.trace);
        all.extend_from_slice(&self.body);
        all.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::details::DetailFields;

    fn copy(message: u64, id: u64, mailbox: &str, tags: &[&str]) -> Summary {
        Summary {
            mailbox: MailboxName::from(mailbox.to_owned()),
            id: id.into(),
            message: message.into(),
            number: 1,
            headline: Headline::new("", [], ""),
            received: Timestamp::UNIX_EPOCH,
            size: 1,
            seen: id.is_multiple_of(2),
            flags: Flags::default(),
            modseq: id,
            tags: Tags::new(tags.iter().copied()).unwrap(),
            details: Details::default(),
        }
    }

    #[test]
    fn message_combines_its_copies() {
        let copies = [copy(5, 6, "ann", &["a"]), copy(5, 7, "bob", &["b", "A"]), copy(8, 8, "ann", &[])];
        let [first, second] = &Message::group(copies.clone())[..] else { panic!("two messages") };
        assert_eq!((first.id().number(), second.id().number()), (5, 8));
        assert_eq!(first.copies(), &copies[..2]);
        assert_eq!(first.mailboxes().map(MailboxName::as_str).collect::<Vec<_>>(), ["ann", "bob"]);
        assert_eq!(first.tags().iter().collect::<Vec<_>>(), ["a", "b"]);
        assert!(!first.is_seen() && second.is_seen());
        let restricted = first.clone().restricted_to(|mailbox| mailbox.as_str() == "ann").unwrap();
        assert_eq!(restricted.copies(), &copies[..1]);
        assert!(restricted.is_seen());
        assert_eq!(first.clone().restricted_to(|_| false), None);
    }

    #[test]
    fn recipients_that_no_header_names_are_found() {
        let strings = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>();
        let unnamed = |fields: DetailFields<'_>| {
            let headline = Headline::new("", ["Bob <Bob@x>", "<d@x>"], "");
            let summary = Summary { headline, details: Details::new(&fields), ..copy(1, 1, "bob", &[]) };
            strings(&Message::group([summary])[0].unnamed_recipients())
        };
        let (cc, bcc) = (strings(&["C <c@x>"]), strings(&["<e@x>"]));
        let recipients = strings(&["bob@x", "C@X", "d@x", "e@x", "f@x", "f+1@x"]);
        let fields = DetailFields { cc: &cc, bcc: &bcc, recipients: &recipients, ..DetailFields::default() };
        assert_eq!(unnamed(fields), ["f@x", "f+1@x"]);
        assert_eq!(unnamed(DetailFields { lacks_to: true, ..fields }), ["bob@x", "d@x", "f@x", "f+1@x"]);
        assert_eq!(unnamed(DetailFields { recipients: &[], ..fields }), [""; 0]);
        let many = vec!["<a@x>".to_owned(); 1000];
        assert_eq!(unnamed(DetailFields { cc: &many, ..fields }), [""; 0], "not all addresses of Cc are kept");
    }

    #[test]
    fn flags_are_sets_of_known_bits() {
        let both = Flags::FLAGGED.union(Flags::DRAFT);
        assert_eq!((both.bits(), Flags::from_bits(0xF9)), (9, both));
        assert!(both.contains(Flags::DRAFT) && !both.contains(Flags::DRAFT.union(Flags::DELETED)));
        assert_eq!(both.difference(Flags::DRAFT.union(Flags::DELETED)), Flags::FLAGGED);
        assert!(Flags::default().is_empty() && both.contains(Flags::default()));
    }

    #[test]
    fn ids_ascend_if_the_clock_stops_or_goes_back() {
        let now = Timestamp::from_microsecond(1_000_000).unwrap();
        let earlier = Timestamp::from_microsecond(999).unwrap();
        let first = MessageId::next_after(MessageId::ZERO, now);
        let second = MessageId::next_after(first, now);
        let third = MessageId::next_after(second, earlier);
        assert_eq!([first, second, third].map(MessageId::number), [1_000_000, 1_000_001, 1_000_002]);
    }

    #[test]
    fn headline_returns_the_texts_it_was_created_from() {
        let table: &[(&str, &[&str], &str)] = &[
            ("Ann <a@x>", &["<b@x>", "Bö <c@x>"], "Grüße"),
            ("", &[], ""),
            ("<a@x>", &[""], "x"),
            ("", &["", ""], ""),
        ];
        for (from, to, subject) in table {
            let headline = Headline::new(from, to.iter().copied(), subject);
            assert_eq!((headline.from(), headline.subject()), (*from, *subject));
            assert_eq!(
                headline.text_len(),
                from.len() + subject.len() + to.iter().map(|recipient| recipient.len() + 1).sum::<usize>()
            );
            assert_eq!(headline.to().collect::<Vec<_>>(), *to);
        }
        let hostile = Headline::new("a\nb", ["c\nd"], "e\nf");
        assert_eq!((hostile.from(), hostile.to().collect(), hostile.subject()), ("a b", vec!["c d"], "e f"));
    }

    #[test]
    fn parses_ids_only_in_canonical_form() {
        assert_eq!("17".parse(), Ok(MessageId::from(17)));
        for other in ["", "017", "+17", " 17", "17 ", "-1", "latest", "99999999999999999999"] {
            assert_eq!(other.parse::<MessageId>(), Err(ParseMessageIdError), "{other:?}");
        }
    }
}
