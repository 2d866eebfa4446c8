//! The selected mailbox as a session sees it: one compact entry per message, in the order of sequence numbers.
//!
//! Changes of other clients are applied when they arrive, but the client gets to know them only between commands, so
//! that sequence numbers do not change during one. Deleted messages keep their entries until then, and new messages get
//! their sequence numbers then.

use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::ops::{Range, RangeInclusive};

use jiff::Timestamp;
use restante_mail::message::{Flags, Marks, MessageId};
use restante_mail::tags::Tags;

use super::command::{SequenceSet, SetNumber};
use super::{Listed, reply};

/// The number of different sets of keywords that a session distinguishes. Further ones are shown as no keywords. Tests have
/// few messages.
pub(super) const MAX_KEYWORD_SETS: usize = if cfg!(test) { 100 } else { 60_000 };
/// The index of the sets of keywords above this limit.
const UNKNOWN_KEYWORDS: u16 = u16::MAX;
/// The number of keywords that SELECT lists.
const MAX_KNOWN_TAGS: usize = 500;

/// A message of the selected mailbox.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the properties are independent of each other")]
pub(super) struct Entry {
    pub(super) id: MessageId,
    pub(super) modseq: u64,
    /// The time of receipt in Unix microseconds.
    received: i64,
    pub(super) uid: u32,
    size: u32,
    /// The index of the keywords in [`Selected::keywords`], or [`UNKNOWN_KEYWORDS`].
    keywords: u16,
    pub(super) flags: Flags,
    pub(super) is_seen: bool,
    /// Whether this session is the first that has listed the message.
    pub(super) is_recent: bool,
    /// Whether the message is deleted, but not yet for the client.
    pub(super) is_gone: bool,
    /// Whether the client does not know the current flags.
    pub(super) is_changed: bool,
}

impl Entry {
    /// Returns the time of receipt.
    pub(super) fn received(&self) -> Timestamp {
        Timestamp::from_microsecond(self.received).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Returns whether the tags are known. They are not if there are more sets than a session distinguishes.
    pub(super) fn has_known_tags(&self) -> bool {
        self.keywords != UNKNOWN_KEYWORDS
    }

    /// Returns the size in octets.
    pub(super) fn size(&self) -> u64 {
        self.size.into()
    }
}

/// The selected mailbox.
#[derive(Debug)]
pub(super) struct Selected {
    pub(super) is_read_only: bool,
    /// Whether `\Recent` is shown. IMAP4rev2 does not have it.
    shows_recent: bool,
    /// Ascending by id and by UID.
    entries: Vec<Entry>,
    /// The number of entries that the client knows. They have sequence numbers.
    announced: usize,
    /// The number of entries that are gone.
    gone: usize,
    has_changes: bool,
    next_uid: u32,
    highest_modseq: u64,
    keywords: KeywordTable,
    /// The UIDs of the last search with SAVE, ascending.
    pub(super) saved: Vec<u32>,
}

impl Selected {
    pub(super) fn new(listing: &Listed, is_read_only: bool, shows_recent: bool) -> Self {
        let mut selected = Self {
            is_read_only,
            shows_recent,
            entries: Vec::with_capacity(listing.messages.len()),
            announced: 0,
            gone: 0,
            has_changes: false,
            next_uid: 1,
            highest_modseq: 1,
            keywords: KeywordTable::default(),
            saved: Vec::new(),
        };
        selected.extend(listing);
        selected.announced = selected.entries.len();
        selected
    }

    /// Returns the messages that the client knows.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries[..self.announced]
    }

    /// Returns the number of messages that the client knows.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.announced).unwrap_or(u32::MAX)
    }

    /// Returns the number of recent messages.
    pub(super) fn recent_count(&self) -> usize {
        self.entries().iter().filter(|entry| entry.is_recent).count()
    }

    pub(super) fn next_uid(&self) -> u32 {
        self.next_uid
    }

    pub(super) fn highest_modseq(&self) -> u64 {
        self.highest_modseq
    }

    /// Returns the highest id that is known here.
    pub(super) fn last_id(&self) -> MessageId {
        self.entries.last().map_or(MessageId::ZERO, |entry| entry.id)
    }

    /// Returns the tags of a message. Empty if they are not known.
    pub(super) fn tags(&self, entry: &Entry) -> &Tags {
        &self.keywords.set(entry.keywords).tags
    }

    /// Returns tags that messages have or had since the mailbox was selected, at most [`MAX_KNOWN_TAGS`].
    pub(super) fn known_tags(&self) -> BTreeSet<&str> {
        let mut known = BTreeSet::new();
        for tag in self.keywords.sets.iter().flat_map(|set| set.tags.iter()) {
            if known.len() == MAX_KNOWN_TAGS {
                break;
            }
            known.insert(tag);
        }
        known
    }

    /// Returns the bytes in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.saved.capacity() * size_of::<u32>() + self.keywords.bytes
    }

    /// Adds messages that are newer than the known ones.
    pub(super) fn extend(&mut self, listing: &Listed) {
        self.next_uid = self.next_uid.max(listing.next_uid);
        self.highest_modseq = self.highest_modseq.max(listing.highest_modseq);
        for message in listing.messages.iter() {
            if message.id <= self.last_id() && !self.entries.is_empty() {
                continue;
            }
            let keywords = self.keywords.index_of(&message.marks.tags);
            self.highest_modseq = self.highest_modseq.max(message.marks.modseq);
            self.next_uid = self.next_uid.max(message.uid.saturating_add(1));
            self.entries.push(Entry {
                id: message.id,
                modseq: message.marks.modseq,
                received: message.received.as_microsecond(),
                uid: message.uid,
                size: u32::try_from(message.size).unwrap_or(u32::MAX),
                keywords,
                flags: message.marks.flags,
                is_seen: message.marks.seen,
                is_recent: self.shows_recent && message.uid >= listing.first_recent_uid,
                is_gone: false,
                is_changed: false,
            });
        }
    }

    /// Applies a complete list of the messages, after events were missed.
    pub(super) fn reload(&mut self, listing: &Listed) {
        let known: Vec<MessageId> = self.entries.iter().map(|entry| entry.id).collect();
        let mut listed = listing.messages.iter().peekable();
        for id in known {
            while listed.next_if(|message| message.id < id).is_some() {}
            match listed.next_if(|message| message.id == id) {
                Some(message) => self.mark(id, &message.marks),
                None => self.remove(id),
            }
        }
        self.extend(listing);
    }

    /// Applies the current flags of a message.
    pub(super) fn mark(&mut self, id: MessageId, marks: &Marks) {
        let Ok(index) = self.entries.binary_search_by_key(&id, |entry| entry.id) else { return };
        let keywords = self.keywords.index_of(&marks.tags);
        let entry = &mut self.entries[index];
        if marks.modseq <= entry.modseq {
            return;
        }
        entry.is_changed |= entry.flags != marks.flags || entry.is_seen != marks.seen || entry.keywords != keywords;
        (entry.modseq, entry.flags, entry.is_seen, entry.keywords) = (marks.modseq, marks.flags, marks.seen, keywords);
        self.has_changes |= entry.is_changed;
        self.highest_modseq = self.highest_modseq.max(marks.modseq);
    }

    /// Marks a message as deleted.
    pub(super) fn remove(&mut self, id: MessageId) {
        let Ok(index) = self.entries.binary_search_by_key(&id, |entry| entry.id) else { return };
        if !std::mem::replace(&mut self.entries[index].is_gone, true) {
            self.gone += 1;
        }
    }

    /// Forgets that the client does not know the flags of a message, because a reply contains them.
    pub(super) fn flags_sent(&mut self, index: usize) {
        if let Some(entry) = self.entries.get_mut(index) {
            entry.is_changed = false;
        }
    }

    /// Returns whether there is something to announce.
    pub(super) fn has_unannounced_changes(&self) -> bool {
        self.gone > 0 || self.has_changes || self.entries.len() > self.announced
    }

    /// Writes the changes since the last call. Deleted messages are announced only if sequence numbers may change now.
    pub(super) fn announce(&mut self, out: &mut Vec<u8>, may_renumber: bool, style: reply::FlagsStyle) {
        if self.gone > 0 && may_renumber {
            self.expunge(|sequence, _| {
                let _ = write!(out, "* {sequence} EXPUNGE\r\n");
            });
        }
        if self.entries.len() > self.announced {
            self.announced = self.entries.len();
            let _ = write!(out, "* {} EXISTS\r\n", self.announced);
            if self.shows_recent {
                let _ = write!(out, "* {} RECENT\r\n", self.recent_count());
            }
        }
        if std::mem::take(&mut self.has_changes) {
            for index in 0..self.announced {
                let entry = &mut self.entries[index];
                if std::mem::take(&mut entry.is_changed) && !entry.is_gone {
                    reply::write_flags_update(out, self, index, style);
                }
            }
        }
    }

    /// Removes the entries that are gone, and calls `announce` with the sequence number, at that moment, and the UID of
    /// each that the client knows.
    fn expunge(&mut self, mut announce: impl FnMut(usize, u32)) {
        let (mut index, mut kept, mut announced) = (0, 0, self.announced);
        self.entries.retain(|entry| {
            if !entry.is_gone {
                kept += 1;
            } else if index < self.announced {
                announce(kept + 1, entry.uid);
                announced -= 1;
            }
            index += 1;
            !entry.is_gone
        });
        self.announced = announced;
        self.gone = 0;
    }

    /// Returns the indices of the messages of a set, as ascending ranges without overlap. Numbers without a message are
    /// left out.
    pub(super) fn resolve(&self, set: &SequenceSet, is_uid: bool) -> Vec<Range<usize>> {
        let entries = self.entries();
        let Some(last) = entries.last() else { return Vec::new() };
        let ranges = match set {
            SequenceSet::Saved => {
                let index = |uid: &u32| entries.binary_search_by_key(uid, |entry| entry.uid).ok();
                return self.saved.iter().filter_map(index).map(|index| index..index + 1).collect();
            }
            SequenceSet::Ranges(_) if is_uid => {
                let in_list = |range: RangeInclusive<u32>| {
                    entries.partition_point(|entry| entry.uid < *range.start())
                        ..entries.partition_point(|entry| entry.uid <= *range.end())
                };
                set.ranges(last.uid).map(in_list).collect::<Vec<_>>()
            }
            SequenceSet::Ranges(_) => {
                let index = |number: u32| usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1);
                let in_list = |range: RangeInclusive<u32>| {
                    index(*range.start()).min(entries.len())..index(*range.end()).saturating_add(1).min(entries.len())
                };
                set.ranges(self.count()).map(in_list).collect()
            }
        };
        ranges.into_iter().filter(|range| !range.is_empty()).collect()
    }

    /// Returns whether a set of sequence numbers contains one above the last message. `*` in an empty mailbox is allowed.
    pub(super) fn exceeds(&self, set: &SequenceSet) -> bool {
        let SequenceSet::Ranges(ranges) = set else { return false };
        let mut numbers = ranges.iter().flat_map(|(from, to)| [from, to]);
        let has_last = ranges.iter().any(|(from, to)| [from, to].contains(&&SetNumber::Last));
        let is_above = |number: &SetNumber| matches!(number, SetNumber::Number(number) if number.get() > self.count());
        numbers.any(is_above) && !(self.announced == 0 && has_last)
    }
}

/// The different sets of keywords of a mailbox. The first one is empty.
#[derive(Debug)]
struct KeywordTable {
    sets: Vec<KeywordSet>,
    indices: HashMap<Tags, u16>,
    /// The approximate size in memory.
    bytes: usize,
}

/// A set of keywords.
#[derive(Debug, Default)]
pub(super) struct KeywordSet {
    tags: Tags,
    /// The keywords, each after a space, as FLAGS contains them after the system flags.
    text: Vec<u8>,
}

impl Default for KeywordTable {
    fn default() -> Self {
        Self { sets: vec![KeywordSet::default()], indices: HashMap::new(), bytes: 0 }
    }
}

impl KeywordTable {
    fn index_of(&mut self, tags: &Tags) -> u16 {
        if tags.is_empty() {
            return 0;
        }
        if let Some(&index) = self.indices.get(tags) {
            return index;
        }
        let Some(index) = u16::try_from(self.sets.len()).ok().filter(|&index| usize::from(index) < MAX_KEYWORD_SETS)
        else {
            return UNKNOWN_KEYWORDS;
        };
        let mut text = Vec::new();
        reply::write_keywords(&mut text, tags.iter());
        self.bytes += size_of::<KeywordSet>() + size_of::<(Tags, u16)>() + tags.encoded().len() + text.capacity();
        self.sets.push(KeywordSet { tags: tags.clone(), text });
        self.indices.insert(tags.clone(), index);
        index
    }

    /// Returns the set with an index. It is empty if the keywords are not known.
    fn set(&self, index: u16) -> &KeywordSet {
        self.sets.get(usize::from(index)).unwrap_or(&self.sets[0])
    }
}

impl Selected {
    /// Returns the keywords of a message, each after a space.
    pub(super) fn keyword_text(&self, entry: &Entry) -> &[u8] {
        &self.keywords.set(entry.keywords).text
    }
}
