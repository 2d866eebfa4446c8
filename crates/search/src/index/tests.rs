//! For every query, the index returns the messages that match the query individually.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;
use proptest::prelude::*;
use restante_mail::details::Details;
use restante_mail::message::{Flags, Headline, Marks, MessageId, Source, Summary};
use restante_mail::mime::Mime;
use restante_mail::naming::Naming;
use restante_mail::tags::Tags;

use super::compile::Filter;
use super::partition::Partition;
use super::{Changes, Entry, Index, IndexQuery, IndexedMessage, MarkUpdate, Matches};
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
    tags: Tags,
}

impl SampleMessage {
    /// Returns the stored message. `number` makes its id unique.
    fn build(&self, number: u64) -> (Summary, Mime) {
        let tag = self.tag.as_ref().map(|tag| format!("X-Tag: {}\r\n", tag.join(" "))).unwrap_or_default();
        let file =
            self.file.map(|file| format!("--b\r\nContent-Disposition: attachment; filename={file}\r\n\r\nx\r\n"));
        let source = format!(
            "Cc: c <cc@x>\r\n{tag}Received: {}\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
             --b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n{}\r\n{}--b--\r\n",
            self.subject.join(" "),
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
            flags: Flags::default(),
            modseq: 1,
            message: id,
            number: 1,
            tags: self.tags.clone(),
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

fn tags() -> impl Strategy<Value = Tags> {
    prop::collection::vec(prop::sample::select(vec!["Alpha", "two words", "beta"]), 0..3)
        .prop_map(|tags| Tags::new(tags).unwrap())
}

fn sample_message() -> impl Strategy<Value = SampleMessage> {
    let texts = (word(), words(), words(), words(), prop::option::of(words()));
    let facts = (
        prop::sample::select(vec!["ann", "ann.b", "bob"]),
        prop::option::of(prop::sample::select(vec!["alpha.pdf", "x-beta.txt"])),
        0..4_i64,
        0..4_u64,
        any::<bool>(),
        tags(),
    );
    (texts, facts).prop_map(|((from, to, subject, body, tag), (mailbox, file, age, size, seen, tags))| {
        let (age, size) = (age * 3600, size * 1024);
        SampleMessage { mailbox, from, to, subject, body, tag, file, age, size, seen, tags }
    })
}

fn term() -> impl Strategy<Value = String> {
    let field = prop::sample::select(vec![
        "",
        "",
        "from:",
        "to:",
        "cc:",
        "subject:",
        "body:",
        "filename:",
        "header:X-Tag=",
        "header:Received=",
    ]);
    let text = prop_oneof![
        word().prop_map(str::to_owned),
        word().prop_map(|word| format!("\"{word}\"")),
        (word(), word()).prop_map(|(left, right)| format!("\"{left} {right}\"")),
        (word(), word()).prop_map(|(left, right)| format!("{left}.{right}")),
        (word(), 1..3_usize).prop_map(|(word, length)| word.chars().take(length).collect()),
        prop::sample::select(vec![
            "alp*",
            "b*",
            "gamma-r",
            "gamm-ray",
            "alpha.b",
            "\"alpha be\"*",
            "\"alpha be\"",
            "\u{78ba}*",
            "alpha.pdf",
        ])
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
        "tag:alpha",
        "tag:ALPHA",
        "tag:\"two words\"",
        "tag:alp",
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

/// Runs a query. `stored` are the messages that are read if the index is not enough.
fn find(
    index: &mut Index,
    stored: &BTreeMap<MessageId, (Summary, Mime)>,
    text: &str,
    limit: usize,
    before: MessageId,
) -> Matches {
    let query = Query::parse(text, now()).unwrap_or_else(|error| panic!("{text}: {error}"));
    let deadline = Instant::now() + Duration::from_mins(1);
    let caller = Arc::new(());
    let matches_message = |_: &_, id| stored.get(&id).map(|(summary, mime)| query.matches(summary, Some(mime)));
    let index_query = IndexQuery {
        query: &query,
        mailbox: None,
        is_permitted: &|_| true,
        before,
        limit,
        matches_message: &matches_message,
        message_of: None,
        deadline,
        caller: Arc::downgrade(&caller),
    };
    index.find(&index_query).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns all matches, read in pages.
fn find_all(
    index: &mut Index,
    stored: &BTreeMap<MessageId, (Summary, Mime)>,
    text: &str,
    limit: usize,
) -> Vec<IndexedMessage> {
    let (mut messages, mut before) = (Vec::new(), MessageId::MAX);
    loop {
        let page = find(index, stored, text, limit, before);
        assert!(page.messages.len() <= limit);
        messages.extend(page.messages);
        match page.next {
            Some(next) => before = next,
            None => return messages,
        }
    }
}

fn indexed(summary: &Summary) -> IndexedMessage {
    let Summary { mailbox, id, seen, tags, .. } = summary.clone();
    IndexedMessage { mailbox, id, seen, tags }
}

proptest! {
    #[test]
    fn index_finds_the_messages_that_match_individually(
        samples in prop::collection::vec((sample_message(), any::<bool>()), 0..24),
        queries in prop::collection::vec(query_text(), 1..12),
        tagged in prop::collection::vec((any::<prop::sample::Index>(), tags()), 0..6),
        removed in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        limit in prop_oneof![Just(1_usize), Just(3), Just(1000)],
    ) {
        let mut index = Index::open(None).unwrap().0;
        let mut stored: BTreeMap<MessageId, (Summary, Mime)> = BTreeMap::new();
        let mut changes = Changes::default();
        for (number, (sample, is_end_of_batch)) in (0..).zip(&samples) {
            let (summary, mime) = sample.build(number);
            changes.added.push(entry(&summary, &mime));
            stored.insert(summary.id, (summary, mime));
            if *is_end_of_batch {
                index.write(std::mem::take(&mut changes)).unwrap();
            }
        }
        index.write(changes).unwrap();
        for (position, tags) in tagged.iter().filter(|_| !samples.is_empty()) {
            let (summary, _) = stored.values_mut().nth(position.index(samples.len())).unwrap();
            summary.tags = tags.clone();
            summary.modseq += 1;
            let mut changes = Changes::default();
            changes.mark(summary.id, summary.marks());
            index.write(changes).unwrap();
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
            let expected: Vec<_> = expected.map(|(summary, _)| indexed(summary)).collect();
            prop_assert_eq!(find_all(&mut index, &stored, text, limit), expected, "{}", text);
        }
    }
}

/// Marks come from changes and from the store. The message was stored with MODSEQ 1.
#[test]
fn changes_of_marks_can_arrive_in_another_order() {
    /// Marks, and whether they come from the store.
    type Received<'a> = (&'a Marks, bool);
    const STORED: bool = true;
    let marks = |modseq, seen, tag: &str| Marks {
        seen,
        modseq,
        tags: Tags::from_valid([tag].into_iter().filter(|tag| !tag.is_empty())),
        ..Marks::default()
    };
    let (old, new, last) = (marks(2, false, "old"), marks(3, true, "new"), marks(4, true, ""));
    let table: [(&[Received<'_>], &Marks, &str); 6] = [
        (&[(&old, !STORED), (&new, !STORED)], &new, "the order in which they were made"),
        (&[(&new, !STORED), (&old, !STORED)], &new, "the other order"),
        (&[(&new, !STORED), (&new, !STORED), (&last, !STORED)], &last, "the same change twice"),
        (&[(&last, !STORED), (&old, !STORED), (&new, !STORED)], &last, "tags are removed"),
        (&[(&new, STORED), (&old, !STORED)], &new, "a change from before the comparison with the store"),
        (&[(&last, !STORED), (&old, STORED)], &old, "the store has lost changes"),
    ];
    for (updates, expected, description) in table {
        for is_one_batch in [true, false] {
            let mut index = Index::open(None).unwrap().0;
            let (summary, mime) = numbered_message(1);
            let mut changes = Changes { added: vec![entry(&summary, &mime)], ..Changes::default() };
            for &(marks, is_from_store) in updates {
                changes.marks.push(MarkUpdate { id: summary.id, marks: marks.clone(), is_from_store });
                if !is_one_batch {
                    index.write(std::mem::take(&mut changes)).unwrap();
                }
            }
            index.write(changes).unwrap();
            let indexed = &index.entries_between(MessageId::ZERO, MessageId::MAX, 9).unwrap()[0];
            assert_eq!((indexed.seen, &indexed.tags), (expected.seen, &expected.tags), "{description}");
            let found = ["old", "new"].map(|tag| find_numbers(&mut index, &format!("tag:{tag}"), 9) == [1]);
            assert_eq!(found, ["old", "new"].map(|tag| expected.tags.contains(tag)), "{description}");
        }
    }
}

/// The highest number of a message in the tests.
const MAX_NUMBER: u64 = 500;

fn numbered_message(number: u64) -> (Summary, Mime) {
    let received = Timestamp::from_second(i64::try_from(number).unwrap()).unwrap();
    let source = format!("X-Number: n{number}\r\n\r\nword{} common{}\r\n", number % 100, number % 3);
    let summary = Summary {
        mailbox: Naming::Local.parse_mailbox(&format!("box{}", number % 7)).unwrap(),
        id: MessageId::next_after(MessageId::ZERO, received),
        message: MessageId::next_after(MessageId::ZERO, received),
        number: 1,
        headline: Headline::new("ann@shop.example", ["<bob@x.org>"], "Verification"),
        received,
        size: 1,
        seen: false,
        flags: Flags::default(),
        modseq: 1,
        tags: Tags::default(),
        details: Details::default(),
    };
    (summary, Mime::parse(Bytes::from(source)))
}

fn entry(summary: &Summary, mime: &Mime) -> Entry {
    let source = Source { trace: Bytes::new(), body: mime.source().clone() };
    Entry { summary: summary.clone(), source }
}

fn entries(numbers: impl Iterator<Item = u64>) -> Vec<Entry> {
    let build = |number| {
        let (summary, mime) = numbered_message(number);
        entry(&summary, &mime)
    };
    numbers.map(build).collect()
}

/// Returns the numbers of the matching messages in the order of the results.
fn find_numbers(index: &mut Index, text: &str, limit: usize) -> Vec<u64> {
    let stored = (0..=MAX_NUMBER).map(numbered_message).map(|(summary, mime)| (summary.id, (summary, mime))).collect();
    let matches = find_all(index, &stored, text, limit);
    matches.iter().map(|message| message.id.number() / 1_000_000).collect()
}

fn partition_count(index: &Index) -> u64 {
    index.connection.query_row("SELECT count(*) FROM partitions", [], |row| row.get(0)).unwrap()
}

#[test]
fn order_of_results_does_not_depend_on_the_order_of_additions() {
    let mut index = Index::open(None).unwrap().0;
    // Not in the order of their ids, as after a rebuild.
    for start in 0..5 {
        let added = entries((0..100).map(|number| start + 5 * number));
        index.write(Changes { added, ..Changes::default() }).unwrap();
    }
    assert_eq!(index.count(), 500);
    let all = |keep: &dyn Fn(&u64) -> bool| (0..500).rev().filter(keep).collect::<Vec<_>>();
    assert_eq!(find_numbers(&mut index, "verific", 70), all(&|_| true));
    assert_eq!(find_numbers(&mut index, "\"word42\"", 2), all(&|number| number % 100 == 42));
    assert_eq!(
        find_numbers(&mut index, "word4", 50),
        all(&|number| (4..5).contains(&(number % 100)) || (40..50).contains(&(number % 100)))
    );
    assert_eq!(
        find_numbers(&mut index, "header:X-Number=n12", 50),
        all(&|number| *number == 12 || (120..130).contains(number))
    );
    assert_eq!(
        find_numbers(&mut index, "\"word7 common1\" mailbox:box6", 50),
        all(&|n| n % 100 == 7 && n % 3 == 1 && n % 7 == 6)
    );
    assert_eq!(
        find_numbers(&mut index, "common -common1 -\"common2\" word99", 50),
        all(&|n| n % 3 == 0 && n % 100 == 99)
    );
}

#[test]
fn deleted_documents_are_not_found() {
    let mut index = Index::open(None).unwrap().0;
    let id = |number: u64| MessageId::from(number * 1_000_000);
    index.write(Changes { added: entries(1..=100), ..Changes::default() }).unwrap();
    let partitions = partition_count(&index);
    let remove = |index: &mut Index, numbers: std::ops::RangeInclusive<u64>| {
        // Removing a message twice, or one that is not in the index, has no effect.
        let removed = numbers.clone().chain(numbers).chain([5000]).map(id).collect();
        index.write(Changes { removed, ..Changes::default() }).unwrap();
    };
    remove(&mut index, 1..=10);
    assert_eq!(index.count(), 90);
    assert_eq!(find_numbers(&mut index, "verification", 1000), (11..=100).rev().collect::<Vec<_>>());
    remove(&mut index, 11..=90);
    assert_eq!(find_numbers(&mut index, "verification", 1000), (91..=100).rev().collect::<Vec<_>>());
    assert!(partition_count(&index) < partitions / 2);
    index.write(Changes { added: entries(1..=1), ..Changes::default() }).unwrap();
    assert_eq!(find_numbers(&mut index, "word1", 1000).last(), Some(&1), "a message can be added again");
    remove(&mut index, 1..=100);
    assert_eq!((index.count(), partition_count(&index)), (0, 0));
}

/// The parser of the full-text table has a small stack.
#[test]
fn deeply_nested_queries_are_evaluated() {
    let mut index = Index::open(None).unwrap().0;
    index.write(Changes { added: entries(0..=100), ..Changes::default() }).unwrap();
    let nest = |levels: usize, template: &str| {
        (0..levels).fold("word3".to_owned(), |inner, level| {
            template.replace("{inner}", &inner).replace("{level}", &level.to_string())
        })
    };
    let flat = |separator: &str| (0..60).map(|number| format!("word{number}")).collect::<Vec<_>>().join(separator);
    let texts = [
        nest(15, "(word{level} or -{inner})"),
        nest(15, "(common -{inner})"),
        nest(7, "(word{level} or (common1 -{inner}))"),
        flat(" or "),
        flat(" "),
        flat(" or -"),
        format!("-({})", flat(" -")),
        format!("{} or is:seen", nest(12, "(word{level} or -{inner} is:unseen)")),
    ];
    for text in texts {
        let query = Query::parse(&text, now()).unwrap_or_else(|error| panic!("{text}: {error}"));
        let is_match = |number: &u64| {
            let (summary, mime) = numbered_message(*number);
            query.matches(&summary, Some(&mime))
        };
        let expected: Vec<_> = (0..=100).rev().filter(is_match).collect();
        assert_eq!(find_numbers(&mut index, &text, 1000), expected, "{text}");
    }
}

/// A query of 4 KiB can be a phrase of more than a thousand words.
#[test]
fn long_phrases_are_looked_up_by_few_words() {
    let repeated = "\u{78ba}".repeat(1300);
    let distinct: String = ('\u{4e00}'..).take(1300).collect();
    for (text, expected_words) in [(repeated, 1), (distinct, 8)] {
        let text: &'static str = text.leak();
        let (last, _) = text.char_indices().last().unwrap();
        let sample = |body| SampleMessage {
            mailbox: "ann",
            from: "",
            to: Vec::new(),
            subject: Vec::new(),
            body: vec![body],
            tag: None,
            file: None,
            age: 0,
            size: 0,
            seen: false,
            tags: Tags::default(),
        };
        let stored: BTreeMap<_, _> = [(1, text), (2, &text[..last])]
            .map(|(number, body)| sample(body).build(number))
            .map(|(summary, mime)| (summary.id, (summary, mime)))
            .into();
        let added = stored.values().map(|(summary, mime)| entry(summary, mime)).collect();
        let mut index = Index::open(None).unwrap().0;
        index.write(Changes { added, ..Changes::default() }).unwrap();

        let query = Query::parse(text, now()).unwrap();
        let partition = &Partition::list(&index.connection).unwrap()[0];
        let Filter { words, required, .. } = Filter::new(&query, None, partition);
        let columns = required[0].len();
        assert_eq!(words.unwrap().text.matches('"').count(), 2 * columns * expected_words);
        assert_eq!(required.len(), expected_words);

        let ids: Vec<_> = stored.keys().copied().collect();
        let found = |index: &mut Index, text: &str| -> Vec<_> {
            find_all(index, &stored, text, 10).iter().map(|message| message.id).collect()
        };
        assert_eq!(found(&mut index, text), [ids[0]]);
        assert_eq!(found(&mut index, &format!("is:unseen -({text})")), [ids[1]]);
    }
}

#[test]
fn damage_is_reported() {
    for change in [
        "UPDATE words_data SET block = x'ffffffffffffffff' WHERE id > 10",
        "DROP TABLE words",
        "ALTER TABLE documents DROP COLUMN tags",
        "ALTER TABLE partitions DROP COLUMN number",
    ] {
        let mut index = Index::open(None).unwrap().0;
        index.write(Changes { added: entries(1..=50), ..Changes::default() }).unwrap();
        index.connection.execute(change, []).unwrap();
        let query = Query::parse("word1", now()).unwrap();
        let caller = Arc::new(());
        let error = index.find(&IndexQuery {
            query: &query,
            mailbox: None,
            is_permitted: &|_| true,
            before: MessageId::MAX,
            limit: 10,
            matches_message: &|_, _| None,
            message_of: None,
            deadline: Instant::now() + Duration::from_mins(1),
            caller: Arc::downgrade(&caller),
        });
        assert!(error.as_ref().is_err_and(super::is_damage), "{change}: {error:?}");
    }
}
