//! The overview of a store: how many messages it has, how many of them are unread, and their tags.

use std::collections::{BTreeMap, HashSet};

use restante_mail::message::Message;
use restante_mail::tags::Tags;

/// The maximum number of tags in an overview. Of more tags, the first ones by name are kept.
pub const MAX_OVERVIEW_TAGS: usize = 10_000;

/// The contents of a store as readers of messages see them. See [`Store::overview`](crate::Store::overview).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// The number of messages. A message in several mailboxes is counted once.
    pub messages: u64,
    /// The number of messages with a copy that is not marked as read.
    pub unread: u64,
    /// The tags, ordered by name in any case of letters.
    pub tags: Vec<TagCount>,
}

impl Overview {
    /// Returns the overview of these messages.
    pub fn of_messages(messages: &[Message]) -> Self {
        let mut tags = TagCounter::default();
        for message in messages {
            tags.add_message(message.copies().iter().map(|copy| &copy.tags));
        }
        Self {
            messages: messages.len() as u64,
            unread: messages.iter().filter(|message| !message.is_seen()).count() as u64,
            tags: tags.counts(),
        }
    }
}

/// A tag and the messages that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagCount {
    /// The tag. If messages spell it with other cases of letters, the spelling of the most copies, and of several such
    /// spellings the first one in the order of their bytes.
    pub tag: String,
    /// The number of messages with a copy that has the tag.
    pub messages: u64,
}

/// Counts the messages of each tag.
#[derive(Debug, Default)]
pub struct TagCounter {
    /// The tags by their names in lower case.
    counts: BTreeMap<String, CountedTag>,
}

#[derive(Debug, Default)]
struct CountedTag {
    messages: u64,
    /// The spellings of the tag, and the number of copies that have each of them.
    spellings: BTreeMap<String, u64>,
}

impl CountedTag {
    fn add_spelling(&mut self, tag: &str, copies: u64) {
        match self.spellings.get_mut(tag) {
            Some(count) => *count += copies,
            None => {
                self.spellings.insert(tag.to_owned(), copies);
            }
        }
    }

    fn remove_spelling(&mut self, tag: &str) {
        if let Some(count) = self.spellings.get_mut(tag) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.spellings.remove(tag);
            }
        }
    }

    /// Returns the spelling of the most copies, the first one of several.
    fn spelling(&self) -> Option<&str> {
        // Of equal elements, `max_by_key` returns the last one.
        let most = self.spellings.iter().rev().max_by_key(|(_, count)| **count);
        most.map(|(spelling, _)| spelling.as_str())
    }
}

impl TagCounter {
    /// Adds messages that have this tag, and the number of their copies that have it.
    pub(crate) fn add(&mut self, tag: &str, messages: u64, copies: u64) {
        let entry = self.counts.entry(tag.to_lowercase()).or_default();
        entry.messages += messages;
        entry.add_spelling(tag, copies);
    }

    /// Removes a tag of a copy. `is_only` is whether no other copy of the message has it.
    pub(crate) fn remove_from_copy(&mut self, tag: &str, is_only: bool) {
        let key = tag.to_lowercase();
        if let Some(entry) = self.counts.get_mut(&key) {
            entry.messages = entry.messages.saturating_sub(u64::from(is_only));
            entry.remove_spelling(tag);
            if entry.messages == 0 {
                self.counts.remove(&key);
            }
        }
    }

    /// Adds a message whose copies have these tags.
    pub fn add_message<'t>(&mut self, copies: impl IntoIterator<Item = &'t Tags>) {
        self.add_messages(copies.into_iter().map(|tags| (tags, 1)), 1);
    }

    /// Adds messages of which each has these tags, with the number of copies that have them.
    pub(crate) fn add_messages<'t>(&mut self, copies: impl IntoIterator<Item = (&'t Tags, u64)>, messages: u64) {
        let copies: Vec<(&Tags, u64)> = copies.into_iter().filter(|(tags, _)| !tags.is_empty()).collect();
        let Some(&(first, _)) = copies.first() else { return };
        let (equal, other): (Vec<_>, Vec<_>) = copies.into_iter().partition(|(tags, _)| *tags == first);
        let equal_copies: u64 = equal.iter().map(|(_, copies)| copies).sum();
        for tag in first.iter() {
            self.add(tag, messages, messages * equal_copies);
        }
        let mut known: HashSet<String> = HashSet::new();
        for (tags, copies) in other {
            if known.is_empty() {
                known.extend(first.iter().map(str::to_lowercase));
            }
            for tag in tags.iter() {
                let is_new = known.insert(tag.to_lowercase());
                self.add(tag, if is_new { messages } else { 0 }, messages * copies);
            }
        }
    }

    /// Adds messages whose copies are given with their messages. The copies of a message are adjacent.
    pub(crate) fn add_copies<M: PartialEq, E>(
        &mut self,
        copies: impl IntoIterator<Item = Result<(M, Tags), E>>,
    ) -> Result<(), E> {
        let mut message: Option<(M, Vec<Tags>)> = None;
        for copy in copies {
            let (id, tags) = copy?;
            match &mut message {
                Some((last, copies)) if *last == id => copies.push(tags),
                _ => {
                    if let Some((_, copies)) = message.replace((id, vec![tags])) {
                        self.add_message(&copies);
                    }
                }
            }
        }
        if let Some((_, copies)) = message {
            self.add_message(&copies);
        }
        Ok(())
    }

    /// Returns the tags, ordered by name in any case of letters, and at most [`MAX_OVERVIEW_TAGS`].
    pub fn counts(&self) -> Vec<TagCount> {
        let count =
            |counted: &CountedTag| Some(TagCount { tag: counted.spelling()?.to_owned(), messages: counted.messages });
        self.counts.values().filter_map(count).take(MAX_OVERVIEW_TAGS).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags<const N: usize>(tags: [&str; N]) -> Tags {
        Tags::new(tags).unwrap()
    }

    fn counts(counter: &TagCounter) -> Vec<(String, u64)> {
        counter.counts().into_iter().map(|count| (count.tag, count.messages)).collect()
    }

    #[test]
    fn tags_are_counted_in_any_case() {
        let mut counter = TagCounter::default();
        for (tag, messages) in [("b", 2), ("A", 2), ("B", 1), ("c", 1)] {
            counter.add(tag, messages, messages);
        }
        assert_eq!(counts(&counter), [("A".to_owned(), 2), ("b".to_owned(), 3), ("c".to_owned(), 1)]);
        for tag in ["c", "b", "unknown"] {
            counter.remove_from_copy(tag, true);
        }
        // Both spellings have one copy.
        assert_eq!(counts(&counter), [("A".to_owned(), 2), ("B".to_owned(), 2)]);
    }

    #[test]
    fn tag_has_the_spelling_of_the_most_copies() {
        let mut counter = TagCounter::default();
        counter.add_message([&tags(["name"]), &tags(["name"])]);
        counter.add_message([&tags(["name"])]);
        // The copies are changed one after the other.
        for (is_only, expected) in [(false, "name"), (false, "NAME"), (true, "NAME")] {
            counter.remove_from_copy("name", is_only);
            counter.add("NAME", is_only.into(), 1);
            assert_eq!(counts(&counter), [(expected.to_owned(), 2)]);
        }
        counter.remove_from_copy("NAME", false);
        counter.remove_from_copy("NAME", true);
        counter.remove_from_copy("NAME", true);
        assert_eq!(counts(&counter), []);
    }

    #[test]
    fn copies_of_a_message_are_counted_once() {
        let mut counter = TagCounter::default();
        let copies = [(1, tags(["a"])), (1, tags(["A", "b"])), (1, tags(["B"])), (2, tags(["a"]))];
        counter.add_copies(copies.map(Ok::<_, ()>)).unwrap();
        assert_eq!(counts(&counter), [("a".to_owned(), 2), ("B".to_owned(), 1)]);
        assert_eq!(counter.add_copies([Err::<(u8, Tags), _>("damaged")]), Err("damaged"));
    }

    #[test]
    fn number_of_tags_is_limited() {
        let mut counter = TagCounter::default();
        for number in 0..=MAX_OVERVIEW_TAGS {
            counter.add(&number.to_string(), 1, 1);
        }
        assert_eq!(counter.counts().len(), MAX_OVERVIEW_TAGS);
    }
}
