//! The overview of a store: how many messages it has, how many of them are unread, and their tags.

use std::collections::{BTreeMap, HashSet};

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

/// A tag and the messages that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagCount {
    /// The tag. If messages spell it with other cases of letters, one of the spellings.
    pub tag: String,
    /// The number of messages with a copy that has the tag.
    pub messages: u64,
}

/// Counts the messages of each tag.
#[derive(Debug, Default)]
pub struct TagCounter {
    /// The tags by their names in lower case.
    counts: BTreeMap<String, TagCount>,
}

impl TagCounter {
    /// Adds messages that have this tag.
    pub fn add(&mut self, tag: &str, messages: u64) {
        let entry = self.counts.entry(tag.to_lowercase());
        entry.or_insert_with(|| TagCount { tag: tag.to_owned(), messages: 0 }).messages += messages;
    }

    /// Removes a message that has this tag.
    pub fn remove(&mut self, tag: &str) {
        let key = tag.to_lowercase();
        if let Some(count) = self.counts.get_mut(&key) {
            count.messages = count.messages.saturating_sub(1);
            if count.messages == 0 {
                self.counts.remove(&key);
            }
        }
    }

    /// Adds a message whose copies have these tags.
    pub fn add_message<'t>(&mut self, copies: impl IntoIterator<Item = &'t Tags>) {
        let mut copies = copies.into_iter().filter(|tags| !tags.is_empty());
        let Some(first) = copies.next() else { return };
        first.iter().for_each(|tag| self.add(tag, 1));
        let mut known: HashSet<String> = HashSet::new();
        for tags in copies.filter(|tags| *tags != first) {
            if known.is_empty() {
                known.extend(first.iter().map(str::to_lowercase));
            }
            for tag in tags.iter() {
                if known.insert(tag.to_lowercase()) {
                    self.add(tag, 1);
                }
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
        self.counts.values().take(MAX_OVERVIEW_TAGS).cloned().collect()
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
            counter.add(tag, messages);
        }
        assert_eq!(counts(&counter), [("A".to_owned(), 2), ("b".to_owned(), 3), ("c".to_owned(), 1)]);
        for tag in ["C", "b", "unknown"] {
            counter.remove(tag);
        }
        assert_eq!(counts(&counter), [("A".to_owned(), 2), ("b".to_owned(), 2)]);
    }

    #[test]
    fn copies_of_a_message_are_counted_once() {
        let mut counter = TagCounter::default();
        let copies = [(1, tags(["a"])), (1, tags(["A", "b"])), (1, tags(["B"])), (2, tags(["a"]))];
        counter.add_copies(copies.map(Ok::<_, ()>)).unwrap();
        assert_eq!(counts(&counter), [("a".to_owned(), 2), ("b".to_owned(), 1)]);
        assert_eq!(counter.add_copies([Err::<(u8, Tags), _>("damaged")]), Err("damaged"));
    }

    #[test]
    fn number_of_tags_is_limited() {
        let mut counter = TagCounter::default();
        for number in 0..=MAX_OVERVIEW_TAGS {
            counter.add(&number.to_string(), 1);
        }
        assert_eq!(counter.counts().len(), MAX_OVERVIEW_TAGS);
    }
}
