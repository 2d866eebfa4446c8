//! The mailbox as one session sees it: its messages with their numbers and sizes, as they were at login, and which of them
//! are marked as deleted. The messages themselves are not here.

use restante_mail::message::MessageId;

/// What was in the mailbox at login, numbered from 1 in the order in which it was collected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maildrop {
    messages: Vec<Entry>,
    /// How many are not marked, and their octets together.
    total: Total,
}

/// How much mail there is.
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
    mark: Mark,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Kept,
    Deleted,
}

/// Why there is no message to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// There never was one in this session.
    Unknown,
    /// It is marked as deleted.
    Deleted,
}

impl FromIterator<(MessageId, u64)> for Maildrop {
    fn from_iter<T: IntoIterator<Item = (MessageId, u64)>>(messages: T) -> Self {
        let entry = |(id, octets)| Entry { id, octets, mark: Mark::Kept };
        let messages: Vec<Entry> = messages.into_iter().map(entry).collect();
        let total = Total::of(&messages);
        Self { messages, total }
    }
}

impl Maildrop {
    /// The messages that are not marked.
    pub(crate) fn total(&self) -> Total {
        self.total
    }

    /// The message of this number, unless it is marked.
    pub(crate) fn entry(&self, number: u64) -> Result<Entry, Absent> {
        let entry = self.messages.get(index(number)?).ok_or(Absent::Unknown)?;
        match entry.mark {
            Mark::Kept => Ok(*entry),
            Mark::Deleted => Err(Absent::Deleted),
        }
    }

    /// The first message from this number on that is not marked, with its number.
    pub(crate) fn next_from(&self, number: u64) -> Option<(u64, Entry)> {
        let numbered = (number..).zip(self.messages.get(index(number).ok()?..)?);
        numbered.map(|(number, entry)| (number, *entry)).find(|(_, entry)| entry.mark == Mark::Kept)
    }

    /// Marks the message of this number.
    pub(crate) fn mark(&mut self, number: u64) -> Result<(), Absent> {
        let octets = self.entry(number)?.octets;
        self.messages[index(number)?].mark = Mark::Deleted;
        self.total.messages -= 1;
        self.total.octets = self.total.octets.saturating_sub(octets);
        Ok(())
    }

    /// Takes all marks away.
    pub(crate) fn unmark_all(&mut self) {
        self.messages.iter_mut().for_each(|entry| entry.mark = Mark::Kept);
        self.total = Total::of(&self.messages);
    }

    /// The marked messages.
    pub(crate) fn into_marked(self) -> Vec<MessageId> {
        self.messages.iter().filter(|entry| entry.mark == Mark::Deleted).map(|entry| entry.id).collect()
    }
}

impl Total {
    fn of(messages: &[Entry]) -> Self {
        let octets = messages.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.octets));
        Self { messages: messages.len(), octets }
    }
}

fn index(number: u64) -> Result<usize, Absent> {
    let index = number.checked_sub(1).ok_or(Absent::Unknown)?;
    usize::try_from(index).map_err(|_| Absent::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_sizes(sizes: &[u64]) -> Maildrop {
        sizes.iter().enumerate().map(|(index, size)| (MessageId::from(100 + index as u64), *size)).collect()
    }

    #[test]
    fn marks_come_and_go() {
        let mut maildrop = of_sizes(&[10, 20, 30]);
        assert_eq!(maildrop.mark(2), Ok(()));
        assert_eq!(maildrop.mark(2), Err(Absent::Deleted));
        assert_eq!(maildrop.total(), Total { messages: 2, octets: 40 });
        assert_eq!(maildrop.next_from(2).map(|(number, entry)| (number, entry.octets)), Some((3, 30)));
        assert_eq!(maildrop.clone().into_marked(), [MessageId::from(101)]);
        maildrop.unmark_all();
        assert_eq!(maildrop, of_sizes(&[10, 20, 30]));
    }

    #[test]
    fn numbers_that_name_nothing() {
        let mut maildrop = of_sizes(&[10]);
        for number in [0, 2, u64::MAX] {
            assert_eq!(maildrop.entry(number), Err(Absent::Unknown), "{number}");
            assert_eq!(maildrop.mark(number), Err(Absent::Unknown), "{number}");
            assert_eq!(maildrop.next_from(number), None, "{number}");
        }
        assert_eq!(of_sizes(&[]).next_from(1), None);
    }

    #[test]
    fn sizes_that_nobody_has() {
        let mut maildrop = of_sizes(&[u64::MAX, 1]);
        assert_eq!(maildrop.total().octets, u64::MAX);
        assert_eq!((maildrop.mark(1), maildrop.mark(2)), (Ok(()), Ok(())));
        assert_eq!(maildrop.total(), Total::default());
    }
}
