//! For every query, the index returns the messages that match the query individually.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;
use proptest::prelude::*;
use restante_mail::details::Details;
use restante_mail::message::{Headline, MessageId, Summary};
use restante_mail::mime::Mime;
use restante_mail::naming::Naming;
use restante_mail::tags::Tags;

use super::{Changes, Entry, Index, IndexQuery, Matches};
use crate::query::Query;

fn now() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap()
}

/// A small message: its words, properties and age.
#[derive(Clone, Debug)]
struct SampleMessage {
    mailbox: &'static str,
    from: &'static str,
    to: Vec<&'static str>,
    subject: Vec<&'static str>,
    body: Vec<&'static str>,
    tag: Option<Vec<&'static str>>,
    file: Option<&'static str>,
    age: i64,
    size: u64,
    seen: bool,
}

impl SampleMessage {
    /// Returns the stored message. `number` makes its id unique.
    fn build(&self, number: u64) -> (Summary, Mime) {
        let tag = self.tag.as_ref().map(|tag| format!("X-Tag: {}\r\n", tag.join(" "))).unwrap_or_default();
        let file =
            self.file.map(|file| format!("--b\r\nContent-Disposition: attachment; filename={file}\r\n\r\nx\r\n"));
        let source = format!(
            "Cc: c <cc@x>\r\n{tag}Content-Type: multipart/mixed; boundary=b\r\n\r\n\
             --b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{}\r\n{}--b--\r\n",
            self.body.join(" "),
            file.unwrap_or_default(),
        );
        let received = Timestamp::from_second(now().as_second() - self.age).unwrap();
        let last = u64::try_from(now().as_microsecond()).unwrap() + number;
        let id = MessageId::next_after(last.into(), received);
        let summary = Summary {
            mailbox: Naming::Local.parse_mailbox(self.mailbox).unwrap(),
            id,
            headline: Headline::new(self.from, self.to.iter().copied(), &self.subject.join(" ")),
            received,
            size: self.size,
            seen: self.seen,
            message: id,
            number: 1,
            tags: Tags::default(),
            details: Details::default(),
        };
        (summary, Mime::parse(Bytes::from(source)))
    }
}

const WORDS: [&str; 8] = ["alpha", "beta", "alphabet", "b\u{e9}ta", "gamma-ray", "\u{78ba}\u{8a8d}", "10", "x"];

fn word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&WORDS[..])
}

fn words() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(word(), 0..4)
}

fn sample_message() -> impl Strategy<Value = SampleMessage> {
    let texts = (word(), words(), words(), words(), prop::option::of(words()));
    let facts = (
        prop::sample::select(vec!["ann", "ann.b", "bob"]),
        prop::option::of(prop::sample::select(vec!["alpha.pdf", "x-beta.txt"])),
        0..4_i64,
        0..4_u64,
        any::<bool>(),
    );
    (texts, facts).prop_map(|((from, to, subject, body, tag), (mailbox, file, age, size, seen))| {
        let (age, size) = (age * 3600, size * 1024);
        SampleMessage { mailbox, from, to, subject, body, tag, file, age, size, seen }
    })
}

fn term() -> impl Strategy<Value = String> {
    let field =
        prop::sample::select(vec!["", "", "from:", "to:", "cc:", "subject:", "body:", "filename:", "header:X-Tag="]);
    let text = prop_oneof![
        word().prop_map(str::to_owned),
        (word(), word()).prop_map(|(left, right)| format!("\"{left} {right}\"")),
        prop::sample::select(vec!["alp*", "b*", "gamma-r*", "\"alpha be\"*", "\u{78ba}*", "alpha.pdf"])
            .prop_map(str::to_owned),
    ];
    let fact = prop::sample::select(vec![
        "has:attachment",
        "is:seen",
        "is:unseen",
        "before:1h",
        "after:2h",
        "after:90m",
        "larger:1k",
        "smaller:2k",
        "mailbox:ann",
        "mailbox:ann*",
        "mailbox:nobody",
        "header:X-Tag",
        "header:x",
    ]);
    prop_oneof![3 => (field, text).prop_map(|(field, text)| format!("{field}{text}")), 1 => fact.prop_map(str::to_owned)]
}

fn query_text() -> impl Strategy<Value = String> {
    term().prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("{left} {right}")),
            (inner.clone(), inner.clone()).prop_map(|(left, right)| format!("({left} or {right})")),
            inner.prop_map(|inner| format!("-({inner})")),
        ]
    })
}

fn find(index: &mut Index, text: &str, limit: usize, before: MessageId) -> Matches {
    let query = Query::parse(text, now()).unwrap_or_else(|error| panic!("{text}: {error}"));
    let deadline = Instant::now() + Duration::from_mins(1);
    let caller = Arc::new(());
    let index_query = IndexQuery {
        query: &query,
        mailbox: None,
        is_permitted: &|_| true,
        before,
        limit,
        deadline,
        caller: Arc::downgrade(&caller),
    };
    index.find(&index_query).unwrap_or_else(|error| panic!("{text}: {error}"))
}

proptest! {
    #[test]
    fn index_finds_the_messages_that_match_individually(
        samples in prop::collection::vec(sample_message(), 0..12),
        queries in prop::collection::vec(query_text(), 1..12),
        removed in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
    ) {
        let mut index = Index::open(None).unwrap().0;
        let mut stored: BTreeMap<MessageId, (Summary, Mime)> = BTreeMap::new();
        for (number, sample) in (0..).zip(&samples) {
            let (summary, mime) = sample.build(number);
            index.write(Changes { added: vec![Entry::new(summary.clone(), &mime)], ..Changes::default() }).unwrap();
            stored.insert(summary.id, (summary, mime));
        }
        for position in removed.iter().filter(|_| !samples.is_empty()) {
            let id = *stored.keys().nth(position.index(samples.len())).unwrap_or(&MessageId::ZERO);
            stored.remove(&id);
            index.write(Changes { removed: vec![id], ..Changes::default() }).unwrap();
        }
        prop_assert_eq!(index.count(), stored.len() as u64);
        for text in &queries {
            let query = Query::parse(text, now()).unwrap();
            let expected = stored.values().rev().filter(|(summary, mime)| query.matches(summary, Some(mime)));
            let expected: Vec<_> = expected.map(|(summary, _)| (summary.mailbox.clone(), summary.id, summary.seen)).collect();
            prop_assert_eq!(find(&mut index, text, usize::MAX, MessageId::MAX).messages, expected, "{}", text);
        }
    }
}
