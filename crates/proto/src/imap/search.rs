//! Evaluation of SEARCH, in two stages: [`Query::decide`] uses what is known without the message, and [`Query::matches`] the
//! message too.

use std::cell::OnceCell;
use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use memchr::memmem::Finder;
use restante_mail::mime::decode_text;

use super::command::{Flag, Search, SearchKey, SequenceSet};
use super::date::SentDate;
use super::keywords::tag_of_keyword;
use super::view::MessageView;
use super::view::fold;

/// The maximum number of texts in one search. Each is compared with each message.
pub(super) const MAX_SEARCH_TEXTS: usize = 100;

/// What a session knows about a message without its source.
pub(super) trait Known {
    /// Returns the sequence number.
    fn sequence(&self) -> u32;
    /// Returns the UID.
    fn uid(&self) -> u32;
    /// Returns whether the message has a flag. A keyword is given as its tag.
    fn has_flag(&self, flag: &Flag) -> bool;
    /// Returns whether the message is recent.
    fn is_recent(&self) -> bool;
    /// Returns the time of receipt.
    fn received(&self) -> Timestamp;
    /// Returns the size in octets.
    fn size(&self) -> u64;
    /// Returns the MODSEQ.
    fn modseq(&self) -> u64;
    /// Returns whether this is the EMAILID.
    fn has_email_id(&self, id: &str) -> bool;
}

/// Numbers as ranges that are ascending and not adjacent.
type Ranges = Vec<RangeInclusive<u32>>;

/// Returns whether one of the ranges contains the number. The time is logarithmic.
fn contain(ranges: &Ranges, number: u32) -> bool {
    let index = ranges.partition_point(|range| *range.end() < number);
    ranges.get(index).is_some_and(|range| range.contains(&number))
}

/// What a [`Query`] needs to be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SearchNeeds {
    /// Only what is [`Known`].
    Known,
    /// The header of the message. A [`MessageView`] of only the header is enough.
    Header,
    /// The whole message.
    Message,
}

/// Why a search cannot be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SearchError {
    /// The charset is unknown: the response code BADCHARSET.
    BadCharset,
    /// The search has more than [`MAX_SEARCH_TEXTS`] texts.
    TooManyTexts,
}

/// A prepared search: sets are resolved, and texts are decoded and folded.
#[derive(Clone, Debug)]
pub(super) struct Query(Key);

#[derive(Clone, Debug)]
enum Key {
    All,
    And(Vec<Key>),
    Or(Box<(Key, Key)>),
    Not(Box<Key>),
    Sequence(Ranges),
    Uid(Arc<Ranges>),
    Flag(Flag),
    Recent,
    Larger(u64),
    Smaller(u64),
    Received(Days),
    /// Received at this time or before it.
    NotAfter(Timestamp),
    /// Received at this time or after it.
    NotBefore(Timestamp),
    ModSeq(u64),
    EmailId(String),
    Sent(Days),
    Header {
        field: String,
        text: Text,
    },
    Body(Text),
    Text(Text),
}

/// A range of days.
#[derive(Clone, Copy, Debug)]
enum Days {
    Before(Date),
    On(Date),
    Since(Date),
}

impl Days {
    fn contains(self, day: Date) -> bool {
        match self {
            Self::Before(limit) => day < limit,
            Self::On(only) => day == only,
            Self::Since(start) => day >= start,
        }
    }
}

/// A folded text, prepared to be found.
#[derive(Clone, Debug)]
struct Text(Finder<'static>);

impl Text {
    fn is_in(&self, text: &str) -> bool {
        self.0.find(text.as_bytes()).is_some()
    }
}

impl Query {
    /// Prepares a search. `last_sequence` and `last_uid` are the greatest numbers of the mailbox, `saved` is the result of the
    /// last SEARCH with SAVE as UIDs.
    pub(super) fn new(
        search: &Search,
        last_sequence: u32,
        last_uid: u32,
        saved: &[u32],
        now: Timestamp,
    ) -> Result<Self, SearchError> {
        let charset = search.charset.as_deref().unwrap_or("UTF-8");
        let saved = Arc::new(saved.iter().map(|&uid| uid..=uid).collect());
        let mut builder = Builder { charset, last_sequence, last_uid, saved, now, texts: 0 };
        if decode_text(charset, b"").is_none() {
            return Err(SearchError::BadCharset);
        }
        builder.key(&search.key).map(Self)
    }

    /// Returns whether the message matches. Returns `None` if that depends on its source.
    pub(super) fn decide(&self, known: &impl Known) -> Option<bool> {
        self.0.evaluate(known, None)
    }

    /// Returns whether the message matches. `view` is its source, or only its header if [`Self::needs`] says so.
    pub(super) fn matches(&self, known: &impl Known, view: &MessageView) -> bool {
        let texts = Texts { view, header: OnceCell::new(), body: OnceCell::new() };
        self.0.evaluate(known, Some(&texts)).unwrap_or_default()
    }

    /// Returns what the search needs of those messages that [`Self::decide`] does not decide.
    pub(super) fn needs(&self) -> SearchNeeds {
        self.0.needs()
    }
}

/// Converts search keys.
struct Builder<'a> {
    charset: &'a str,
    last_sequence: u32,
    last_uid: u32,
    saved: Arc<Ranges>,
    now: Timestamp,
    texts: usize,
}

impl Builder<'_> {
    fn key(&mut self, key: &SearchKey) -> Result<Key, SearchError> {
        Ok(match key {
            SearchKey::All => Key::All,
            SearchKey::And(keys) => Key::And(keys.iter().map(|key| self.key(key)).collect::<Result<_, _>>()?),
            SearchKey::Or(a, b) => Key::Or(Box::new((self.key(a)?, self.key(b)?))),
            SearchKey::Not(key) => Key::Not(Box::new(self.key(key)?)),
            // Saved results are UIDs.
            SearchKey::Sequence(SequenceSet::Saved) | SearchKey::Uid(SequenceSet::Saved) => {
                Key::Uid(self.saved.clone())
            }
            SearchKey::Sequence(set) => Key::Sequence(set.ranges(self.last_sequence).collect()),
            SearchKey::Uid(set) => Key::Uid(Arc::new(set.ranges(self.last_uid).collect())),
            SearchKey::Flag(Flag::Keyword(keyword)) => Key::Flag(Flag::Keyword(tag_of_keyword(keyword))),
            SearchKey::Flag(flag) => Key::Flag(flag.clone()),
            SearchKey::Recent => Key::Recent,
            SearchKey::Header { field, text } => Key::Header { field: field.clone(), text: self.text(text)? },
            SearchKey::Body(text) => Key::Body(self.text(text)?),
            SearchKey::Text(text) => Key::Text(self.text(text)?),
            SearchKey::Before(day) => Key::Received(Days::Before(*day)),
            SearchKey::On(day) => Key::Received(Days::On(*day)),
            SearchKey::Since(day) => Key::Received(Days::Since(*day)),
            SearchKey::SentBefore(day) => Key::Sent(Days::Before(*day)),
            SearchKey::SentOn(day) => Key::Sent(Days::On(*day)),
            SearchKey::SentSince(day) => Key::Sent(Days::Since(*day)),
            SearchKey::Larger(size) => Key::Larger(*size),
            SearchKey::Smaller(size) => Key::Smaller(*size),
            SearchKey::Older(seconds) => Key::NotAfter(self.time_before(seconds.get())),
            SearchKey::Younger(seconds) => Key::NotBefore(self.time_before(seconds.get())),
            SearchKey::ModSeq(modseq) => Key::ModSeq(*modseq),
            SearchKey::EmailId(id) => Key::EmailId(id.clone()),
            // No message has a THREADID.
            SearchKey::ThreadId(_) => Key::Not(Box::new(Key::All)),
        })
    }

    fn text(&mut self, text: &[u8]) -> Result<Text, SearchError> {
        self.texts += 1;
        if self.texts > MAX_SEARCH_TEXTS {
            return Err(SearchError::TooManyTexts);
        }
        let text = fold(decode_text(self.charset, text).ok_or(SearchError::BadCharset)?);
        Ok(Text(Finder::new(text.as_bytes()).into_owned()))
    }

    fn time_before(&self, seconds: u32) -> Timestamp {
        self.now.checked_sub(SignedDuration::from_secs(seconds.into())).unwrap_or(Timestamp::MIN)
    }
}

/// The texts of a message. They are decoded when a key needs them.
struct Texts<'a> {
    view: &'a MessageView,
    header: OnceCell<String>,
    body: OnceCell<Vec<String>>,
}

impl Texts<'_> {
    fn has_in_header(&self, text: &Text) -> bool {
        text.is_in(self.header.get_or_init(|| self.view.folded_header()))
    }

    fn has_in_body(&self, text: &Text) -> bool {
        // The empty text is in every body, also in one without texts.
        text.is_in("") || self.body.get_or_init(|| self.view.folded_body()).iter().any(|body| text.is_in(body))
    }

    fn has_field(&self, field: &str, text: &Text) -> bool {
        self.view.folded_fields(field).any(|value: String| text.is_in(&value))
    }

    fn is_sent(&self, days: Days) -> bool {
        let sent = self.view.first_field("Date").and_then(SentDate::parse);
        sent.is_some_and(|sent| days.contains(sent.day))
    }
}

impl Key {
    /// Evaluates the key. Without the texts, returns `None` if the result depends on them.
    fn evaluate(&self, known: &impl Known, texts: Option<&Texts<'_>>) -> Option<bool> {
        Some(match self {
            Self::All => true,
            Self::And(keys) => return all(keys.iter().map(|key| key.evaluate(known, texts))),
            Self::Or(keys) => {
                let results = [&keys.0, &keys.1].into_iter().map(|key| key.evaluate(known, texts));
                return all(results.map(negate)).map(|is_none| !is_none);
            }
            Self::Not(key) => return negate(key.evaluate(known, texts)),
            Self::Sequence(ranges) => contain(ranges, known.sequence()),
            Self::Uid(ranges) => contain(ranges, known.uid()),
            Self::Flag(flag) => known.has_flag(flag),
            Self::Recent => known.is_recent(),
            Self::Larger(size) => known.size() > *size,
            Self::Smaller(size) => known.size() < *size,
            Self::Received(days) => days.contains(Offset::UTC.to_datetime(known.received()).date()),
            Self::NotAfter(time) => known.received() <= *time,
            Self::NotBefore(time) => known.received() >= *time,
            Self::ModSeq(modseq) => known.modseq() >= *modseq,
            Self::EmailId(id) => known.has_email_id(id),
            Self::Sent(days) => texts?.is_sent(*days),
            Self::Header { field, text } => texts?.has_field(field, text),
            Self::Body(text) => texts?.has_in_body(text),
            Self::Text(text) => texts?.has_in_header(text) || texts?.has_in_body(text),
        })
    }

    fn needs(&self) -> SearchNeeds {
        match self {
            Self::And(keys) => keys.iter().map(Self::needs).max().unwrap_or(SearchNeeds::Known),
            Self::Or(keys) => keys.0.needs().max(keys.1.needs()),
            Self::Not(key) => key.needs(),
            Self::Sent(_) | Self::Header { .. } => SearchNeeds::Header,
            Self::Body(_) | Self::Text(_) => SearchNeeds::Message,
            _ => SearchNeeds::Known,
        }
    }
}

/// Returns whether all results are true. One that is false decides, even if others are unknown.
fn all(results: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut is_known = true;
    for result in results {
        match result {
            Some(true) => {}
            Some(false) => return Some(false),
            None => is_known = false,
        }
    }
    is_known.then_some(true)
}

fn negate(result: Option<bool>) -> Option<bool> {
    result.map(|is_true| !is_true)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::imap::command::SetNumber;

    struct Message;

    impl Known for Message {
        fn sequence(&self) -> u32 {
            5
        }
        fn uid(&self) -> u32 {
            50
        }
        fn has_flag(&self, flag: &Flag) -> bool {
            matches!(flag, Flag::Seen) || matches!(flag, Flag::Keyword(name) if name == "work")
        }
        fn is_recent(&self) -> bool {
            false
        }
        fn received(&self) -> Timestamp {
            "2024-01-02T00:30:00Z".parse().unwrap()
        }
        fn size(&self) -> u64 {
            1000
        }
        fn modseq(&self) -> u64 {
            7
        }
        fn has_email_id(&self, id: &str) -> bool {
            id == "M1"
        }
    }

    const SOURCE: &str = "From: =?utf-8?q?J=C3=96RG?= <j@example.org>\r\nDate: Mon, 1 Jan 2024 23:30:00 -0100\r\n\
        Subject: a\r\n folded\r\nX-Empty:\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\npreamble\r\n--b\r\n\
        Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nCaf=\r\n=E9\r\n\
        --b\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nPGI+QmFzZTwvYj4=\r\n--b\r\n\
        Content-Type: application/pdf\r\n\r\nbinary\r\n--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\nnested ΣΑΣ\r\n--b--\r\n";

    fn evaluate(key: SearchKey, charset: Option<&str>) -> (Option<bool>, bool, SearchNeeds) {
        let charset = charset.map(str::to_owned);
        let search = Search { is_uid: false, charset, key, returns: None };
        let now = "2024-01-02T01:00:00Z".parse().unwrap();
        let query = Query::new(&search, 9, 90, &[20, 50, 70], now).unwrap();
        let view = MessageView::parse(SOURCE.as_bytes().to_vec().into());
        (query.decide(&Message), query.matches(&Message, &view), query.needs())
    }

    fn set(ranges: &[(u32, u32)]) -> SequenceSet {
        let number = |number| NonZeroU32::new(number).map_or(SetNumber::Last, SetNumber::Number);
        SequenceSet::Ranges(ranges.iter().map(|&(from, to)| (number(from), number(to))).collect())
    }

    #[test]
    fn keys_without_the_message_are_decided() {
        let day = |day: &str| day.parse::<Date>().unwrap();
        let seconds = |seconds| NonZeroU32::new(seconds).unwrap();
        let flag = SearchKey::Flag;
        let table = [
            (SearchKey::All, true),
            (SearchKey::Sequence(set(&[(1, 4), (6, 0)])), false),
            (SearchKey::Sequence(set(&[(0, 5)])), true),
            (SearchKey::Uid(set(&[(51, 60)])), false),
            (SearchKey::Uid(set(&[(60, 50)])), true),
            (SearchKey::Sequence(SequenceSet::Saved), true),
            (flag(Flag::Seen), true),
            (flag(Flag::Deleted), false),
            (flag(Flag::Keyword("work".to_owned())), true),
            (SearchKey::Recent, false),
            (SearchKey::Larger(999), true),
            (SearchKey::Larger(1000), false),
            (SearchKey::Smaller(1001), true),
            (SearchKey::Smaller(1000), false),
            (SearchKey::Before(day("2024-01-02")), false),
            (SearchKey::Before(day("2024-01-03")), true),
            (SearchKey::On(day("2024-01-02")), true),
            (SearchKey::Since(day("2024-01-02")), true),
            (SearchKey::Since(day("2024-01-03")), false),
            (SearchKey::Older(seconds(1800)), true),
            (SearchKey::Older(seconds(1801)), false),
            (SearchKey::Younger(seconds(1800)), true),
            (SearchKey::Younger(seconds(1799)), false),
            (SearchKey::ModSeq(7), true),
            (SearchKey::ModSeq(8), false),
            (SearchKey::EmailId("M1".to_owned()), true),
            (SearchKey::ThreadId("M1".to_owned()), false),
            (SearchKey::Not(Box::new(SearchKey::All)), false),
        ];
        for (key, expected) in table {
            let label = format!("{key:?}");
            assert_eq!(evaluate(key, None), (Some(expected), expected, SearchNeeds::Known), "{label}");
        }
    }

    #[test]
    fn keys_with_the_message_are_matched() {
        let day = |day: &str| day.parse::<Date>().unwrap();
        let header = |field: &str, text: &str| {
            (SearchKey::Header { field: field.to_owned(), text: text.as_bytes().to_vec() }, SearchNeeds::Header)
        };
        let body = |text: &str| (SearchKey::Body(text.as_bytes().to_vec()), SearchNeeds::Message);
        let text = |text: &str| (SearchKey::Text(text.as_bytes().to_vec()), SearchNeeds::Message);
        let sent = |key| (key, SearchNeeds::Header);
        let table = [
            (header("from", "jörg <J@"), true),
            (header("SUBJECT", "A folded"), true),
            (header("X-Empty", ""), true),
            (header("X-None", ""), false),
            (header("Subject", "inner"), false),
            (body("café"), true),
            (body("nested σας"), true),
            (body("<B>base"), true),
            (body("binary"), false),
            (body("preamble"), false),
            (body("nested"), true),
            (body("INNER"), true),
            (body("folded"), false),
            (body(""), true),
            (text("subject: a folded"), true),
            (text("nested"), true),
            (text("nothing"), false),
            (sent(SearchKey::SentBefore(day("2024-01-02"))), true),
            (sent(SearchKey::SentOn(day("2024-01-01"))), true),
            (sent(SearchKey::SentSince(day("2024-01-02"))), false),
        ];
        for ((key, needs), expected) in table {
            let label = format!("{key:?}");
            assert_eq!(evaluate(key, None), (None, expected, needs), "{label}");
        }
    }

    #[test]
    fn logic_has_three_values() {
        let unknown = || SearchKey::Body(b"nested".to_vec());
        let truth = || SearchKey::All;
        let falsity = || SearchKey::Recent;
        let or = |a, b| SearchKey::Or(Box::new(a), Box::new(b));
        let table = [
            (SearchKey::And(vec![unknown(), falsity()]), Some(false)),
            (SearchKey::And(vec![unknown(), truth()]), None),
            (or(unknown(), truth()), Some(true)),
            (or(unknown(), falsity()), None),
            (or(falsity(), falsity()), Some(false)),
            (SearchKey::Not(Box::new(unknown())), None),
            (SearchKey::And(vec![]), Some(true)),
        ];
        for (key, expected) in table {
            let label = format!("{key:?}");
            let (decided, matched, _) = evaluate(key, None);
            assert_eq!(decided, expected, "{label}");
            assert!(decided.is_none_or(|decided| decided == matched), "{label}");
        }
    }

    #[test]
    fn texts_are_decoded_from_the_charset() {
        let latin = SearchKey::Body(b"CAF\xc9".to_vec());
        assert!(evaluate(latin.clone(), Some("ISO-8859-1")).1);
        assert!(evaluate(SearchKey::Body(b"nested".to_vec()), Some("US-ASCII")).1);
        let search =
            |key, charset: &str| Search { is_uid: false, charset: Some(charset.to_owned()), key, returns: None };
        let error = |search| Query::new(&search, 1, 1, &[], Timestamp::UNIX_EPOCH).err();
        assert_eq!(error(search(SearchKey::All, "X-UNKNOWN")), Some(SearchError::BadCharset));
        assert_eq!(error(search(SearchKey::And(vec![latin; 101]), "UTF-8")), Some(SearchError::TooManyTexts));
    }
}
