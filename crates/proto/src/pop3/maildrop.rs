//! The mailbox as one session sees it: the numbers and sizes of its messages at login, and which of them are marked as
//! deleted. The messages themselves are not part of it.

use restante_mail::message::MessageId;

/// The number of entries per block.
const BLOCK_ENTRIES: usize = 1024;

/// The messages of the mailbox at login, numbered from 1 in the order in which they were added. A mailbox may be large
/// and have many readers, so an entry takes 16 bytes and one bit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maildrop {
    /// Blocks of [`BLOCK_ENTRIES`] entries, except for the last one. Growing in blocks avoids copies and spare
    /// capacity.
    blocks: Vec<Vec<Entry>>,
    marks: Marks,
    /// All messages.
    all: Total,
    /// The messages that are not marked.
    unmarked: Total,
    /// Whether messages must not be marked as deleted, because the login may only read.
    pub is_read_only: bool,
}

/// The number of messages and their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) messages: usize,
    pub(crate) octets: u64,
}

/// One message of the mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) id: MessageId,
    pub(crate) octets: u64,
}

/// The marked messages: a bit for each, up to the last one that was ever marked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Marks(Vec<u64>);

/// Why a number does not name a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageNumberError {
    /// There is no such message in this session.
    Unknown,
    /// The message is marked as deleted.
    Deleted,
}

impl Extend<(MessageId, u64)> for Maildrop {
    fn extend<T: IntoIterator<Item = (MessageId, u64)>>(&mut self, messages: T) {
        for (id, octets) in messages {
            match self.blocks.last_mut() {
                Some(block) if block.len() < BLOCK_ENTRIES => block.push(Entry { id, octets }),
                _ => self.blocks.push(vec![Entry { id, octets }]),
            }
            self.all = self.all.with_message(octets);
            self.unmarked = self.unmarked.with_message(octets);
        }
    }
}

impl FromIterator<(MessageId, u64)> for Maildrop {
    fn from_iter<T: IntoIterator<Item = (MessageId, u64)>>(messages: T) -> Self {
        let mut maildrop = Self::default();
        maildrop.extend(messages);
        maildrop
    }
}

impl Maildrop {
    /// Returns the memory used if all messages are marked.
    pub fn memory_bytes(&self) -> usize {
        self.all.messages * size_of::<Entry>() + self.all.messages.div_ceil(8)
    }

    /// Returns the number and size of the messages that are not marked.
    pub(crate) fn total(&self) -> Total {
        self.unmarked
    }

    /// Returns the message with this number, unless it is marked.
    pub(crate) fn entry(&self, number: u64) -> Result<Entry, MessageNumberError> {
        let index = to_index(number)?;
        let entry = self.get(index).ok_or(MessageNumberError::Unknown)?;
        if self.marks.contains(index) { Err(MessageNumberError::Deleted) } else { Ok(entry) }
    }

    /// Returns the first message from this number on that is not marked, with its number.
    pub(crate) fn next_unmarked(&self, number: u64) -> Option<(u64, Entry)> {
        let index = self.marks.next_unmarked(to_index(number).ok()?);
        Some((u64::try_from(index).ok()? + 1, self.get(index)?))
    }

    /// Marks the message with this number as deleted.
    pub(crate) fn mark(&mut self, number: u64) -> Result<(), MessageNumberError> {
        let octets = self.entry(number)?.octets;
        self.marks.insert(to_index(number)?);
        self.unmarked.messages -= 1;
        self.unmarked.octets = self.unmarked.octets.saturating_sub(octets);
        Ok(())
    }

    /// Removes all marks.
    pub(crate) fn unmark_all(&mut self) {
        self.marks = Marks::default();
        self.unmarked = self.all;
    }

    /// Returns the marked messages. Each block is freed after its messages were checked.
    pub(crate) fn into_marked(self) -> Vec<MessageId> {
        let Self { blocks, marks, .. } = self;
        let entries = blocks.into_iter().flatten().enumerate();
        entries.filter(|(index, _)| marks.contains(*index)).map(|(_, entry)| entry.id).collect()
    }

    fn get(&self, index: usize) -> Option<Entry> {
        self.blocks.get(index / BLOCK_ENTRIES)?.get(index % BLOCK_ENTRIES).copied()
    }
}

impl Marks {
    const WORD_BITS: usize = u64::BITS as usize;

    fn contains(&self, index: usize) -> bool {
        self.0.get(index / Self::WORD_BITS).is_some_and(|word| word >> (index % Self::WORD_BITS) & 1 == 1)
    }

    /// Returns the first index from this one on that is not marked. Runs of marks are skipped by whole words.
    fn next_unmarked(&self, index: usize) -> usize {
        let first = index / Self::WORD_BITS;
        let Some(words) = self.0.get(first..) else { return index };
        // The bits before the index in its word count as marked.
        let skipped = (1 << (index % Self::WORD_BITS)) - 1;
        let words = words.iter().zip(std::iter::once(skipped).chain(std::iter::repeat(0)));
        let first_free = words.map(|(marks, skipped)| (marks | skipped).trailing_ones() as usize);
        (first..).zip(first_free).find(|(_, first_free)| *first_free < Self::WORD_BITS).map_or_else(
            || index.max(self.0.len() * Self::WORD_BITS),
            |(word, first_free)| word * Self::WORD_BITS + first_free,
        )
    }

    fn insert(&mut self, index: usize) {
        let word = index / Self::WORD_BITS;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (index % Self::WORD_BITS);
    }
}

impl Total {
    fn with_message(self, octets: u64) -> Self {
        Self { messages: self.messages + 1, octets: self.octets.saturating_add(octets) }
    }
}

fn to_index(number: u64) -> Result<usize, MessageNumberError> {
    let index = number.checked_sub(1).ok_or(MessageNumberError::Unknown)?;
    usize::try_from(index).map_err(|_| MessageNumberError::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_sizes(sizes: &[u64]) -> Maildrop {
        sizes.iter().enumerate().map(|(index, size)| (MessageId::from(100 + index as u64), *size)).collect()
    }

    #[test]
    fn marks_and_unmarks_messages() {
        let mut maildrop = with_sizes(&[10, 20, 30]);
        assert_eq!(maildrop.mark(2), Ok(()));
        assert_eq!(maildrop.mark(2), Err(MessageNumberError::Deleted));
        assert_eq!(maildrop.total(), Total { messages: 2, octets: 40 });
        assert_eq!(maildrop.next_unmarked(2).map(|(number, entry)| (number, entry.octets)), Some((3, 30)));
        assert_eq!(maildrop.clone().into_marked(), [MessageId::from(101)]);
        maildrop.unmark_all();
        assert_eq!(maildrop, with_sizes(&[10, 20, 30]));
    }

    #[test]
    fn numbers_large_mailboxes_with_little_memory() {
        const COUNT: usize = 3 * BLOCK_ENTRIES + 1;
        let ids = || (0..COUNT as u64).map(MessageId::from);
        let mut maildrop = Maildrop::default();
        // Added in pages that do not match the blocks.
        let all: Vec<(MessageId, u64)> = ids().map(|id| (id, 1)).collect();
        all.chunks(1000).for_each(|page| maildrop.extend(page.iter().copied()));
        assert_eq!(maildrop, all.iter().copied().collect());
        assert_eq!(maildrop.memory_bytes(), COUNT * 16 + COUNT.div_ceil(8));
        for (number, id) in (1..).zip(ids()) {
            assert_eq!(maildrop.entry(number).map(|entry| entry.id), Ok(id));
            assert_eq!(maildrop.mark(number), Ok(()));
            assert_eq!(maildrop.next_unmarked(1).map(|(next, _)| next), (number < COUNT as u64).then_some(number + 1));
        }
        assert_eq!(maildrop.total(), Total::default());
        assert_eq!(maildrop.into_marked(), ids().collect::<Vec<_>>());
    }

    #[test]
    fn finds_the_next_unmarked_message() {
        const COUNT: u64 = 200;
        // The ranges of marked messages.
        let table: &[&[std::ops::RangeInclusive<u64>]] = &[
            &[],
            &[1..=1],
            &[1..=64],
            &[64..=65],
            &[2..=63, 65..=127],
            &[1..=128, 130..=192],
            &[129..=COUNT],
            &[1..=COUNT],
        ];
        for runs in table {
            let mut maildrop: Maildrop = (1..=COUNT).map(|number| (MessageId::from(number), 1)).collect();
            runs.iter().cloned().flatten().for_each(|number| maildrop.mark(number).unwrap());
            for number in 1..=COUNT + 1 {
                let expected = (number..=COUNT).find(|number| !runs.iter().any(|run| run.contains(number)));
                assert_eq!(maildrop.next_unmarked(number).map(|(next, _)| next), expected, "{runs:?} from {number}");
            }
        }
    }

    #[test]
    fn rejects_numbers_without_a_message() {
        let mut maildrop = with_sizes(&[10]);
        for number in [0, 2, u64::MAX] {
            assert_eq!(maildrop.entry(number), Err(MessageNumberError::Unknown), "{number}");
            assert_eq!(maildrop.mark(number), Err(MessageNumberError::Unknown), "{number}");
            assert_eq!(maildrop.next_unmarked(number), None, "{number}");
        }
        assert_eq!(with_sizes(&[]).next_unmarked(1), None);
    }

    #[test]
    fn sizes_saturate() {
        let mut maildrop = with_sizes(&[u64::MAX, 1]);
        assert_eq!(maildrop.total().octets, u64::MAX);
        assert_eq!((maildrop.mark(1), maildrop.mark(2)), (Ok(()), Ok(())));
        assert_eq!(maildrop.total(), Total::default());
    }
}
