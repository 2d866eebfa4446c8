//! Groups of chunks. A storage writes a group as one row, because a row per chunk and an index entry per message cost
//! several times as much as the chunks themselves.

use std::collections::HashMap;
use std::sync::Arc;

use restante_mail::message::MessageId;
use restante_store::sql_values::id_to_i64;

use crate::{Chunk, SessionId};

/// The maximum size of a group of several chunks, in bytes. Storages delete whole groups.
const MAX_GROUP_BYTES: usize = 64 * 1024;
/// The maximum difference between the times of two chunks of a group, and between the ids of two messages, which are about
/// the microseconds of their arrival. So old chunks are deleted soon, and few groups can contain a given id.
const MAX_GROUP_MICROS: i64 = 5_000_000;

/// Consecutive chunks of one session.
#[derive(Debug)]
pub(super) struct ChunkGroup<'a> {
    first: &'a Chunk,
    /// The chunks after the first one.
    others: Vec<&'a Chunk>,
    /// The size in bytes.
    pub(super) bytes: usize,
    /// The lowest and the highest id of the messages.
    pub(super) message_ids: Option<(MessageId, MessageId)>,
}

impl<'a> ChunkGroup<'a> {
    /// Groups the chunks of a batch, in the order of their first chunks. The same batch always has the same groups.
    pub(super) fn split(batch: &'a [Arc<Chunk>]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        let mut latest_of_session = HashMap::<SessionId, usize>::new();
        for chunk in batch {
            let latest = latest_of_session.entry(chunk.session).or_insert(groups.len());
            let is_added = groups.get_mut(*latest).is_some_and(|group| group.try_add(chunk));
            if !is_added {
                *latest = groups.len();
                let message_ids = message_ids(chunk);
                groups.push(Self { first: chunk, others: Vec::new(), bytes: chunk.bytes(), message_ids });
            }
        }
        groups
    }

    /// Returns the session.
    pub(super) fn session(&self) -> SessionId {
        self.first.session
    }

    /// Returns the number of the first chunk.
    pub(super) fn number(&self) -> u32 {
        self.first.number
    }

    /// Returns the last chunk, whose time and session properties are the latest.
    pub(super) fn last(&self) -> &'a Chunk {
        self.others.last().unwrap_or(&self.first)
    }

    /// Returns whether something was refused in the session so far.
    pub(super) fn has_refusals(&self) -> bool {
        self.chunks().any(|chunk| chunk.info.refusals > 0)
    }

    /// Returns the chunks, in order.
    pub(super) fn chunks(&self) -> impl Iterator<Item = &'a Chunk> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }

    /// Returns the lines of all chunks, as they are stored.
    pub(super) fn lines(&self) -> Vec<u8> {
        self.chunks().map(|chunk| chunk.lines.as_bytes()).collect::<Vec<_>>().concat()
    }

    /// Adds the next chunk of the session. Returns false if it does not fit.
    fn try_add(&mut self, chunk: &'a Chunk) -> bool {
        let bytes = self.bytes + chunk.bytes();
        let message_ids = match (self.message_ids, message_ids(chunk)) {
            (Some((low, high)), Some((other_low, other_high))) => Some((low.min(other_low), high.max(other_high))),
            (ids, other) => ids.or(other),
        };
        let elapsed_micros = chunk.at.as_microsecond().saturating_sub(self.first.at.as_microsecond());
        let id_range = message_ids.map_or(0, |(low, high)| high.number() - low.number());
        let fits = bytes <= MAX_GROUP_BYTES
            && elapsed_micros <= MAX_GROUP_MICROS
            && id_range <= MAX_GROUP_MICROS.unsigned_abs()
            && self.last().number.checked_add(1) == Some(chunk.number);
        if fits {
            (self.bytes, self.message_ids) = (bytes, message_ids);
            self.others.push(chunk);
        }
        fits
    }
}

/// Returns the highest id that a group with this id can contain, as a value for a database.
pub(super) fn max_last_id(id: MessageId) -> i64 {
    id_to_i64(id).saturating_add(MAX_GROUP_MICROS)
}

/// Returns the lowest and the highest id of the messages of a chunk.
fn message_ids(chunk: &Chunk) -> Option<(MessageId, MessageId)> {
    let ids = || chunk.transaction.iter().flat_map(|transaction| &transaction.messages).map(|(_, id)| *id);
    Some((ids().min()?, ids().max()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::conformance::{chunk, mail_chunk};
    use jiff::{SignedDuration, Timestamp};

    /// Returns the session and the numbers of the chunks of each group.
    fn groups(chunks: impl IntoIterator<Item = Chunk>) -> Vec<(u64, Vec<u32>)> {
        let batch: Vec<Arc<Chunk>> = chunks.into_iter().map(Arc::new).collect();
        let numbers = |group: &ChunkGroup<'_>| group.chunks().map(|chunk| chunk.number).collect();
        ChunkGroup::split(&batch).iter().map(|group| (group.session().number(), numbers(group))).collect()
    }

    #[test]
    fn group_has_consecutive_chunks_of_one_session() {
        let chunks = [(1, 4), (2, 0), (1, 5), (3, 0), (2, 1), (1, 6), (2, 3), (2, 4), (3, 0), (3, 1)];
        let expected = [(1, vec![4, 5, 6]), (2, vec![0, 1]), (3, vec![0]), (2, vec![3, 4]), (3, vec![0, 1])];
        assert_eq!(groups(chunks.map(|(session, number)| chunk(session, number, "x"))), expected);
        assert_eq!(groups([]), []);
    }

    #[test]
    fn group_has_limited_size() {
        let lengths = [20_000, 60_000, 50_000, 1, 1, 63_000];
        let chunks = (0..).zip(lengths).map(|(number, length)| chunk(1, number, &"x".repeat(length)));
        assert_eq!(groups(chunks), [(1, vec![0]), (1, vec![1]), (1, vec![2, 3, 4]), (1, vec![5])]);
    }

    #[test]
    fn group_covers_limited_time_and_ids() {
        let at = |second| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second);
        let timed =
            (0..).zip([0, 3, 5, 6, 11, 100]).map(|(number, time)| Chunk { at: at(time), ..chunk(1, number, "x") });
        assert_eq!(groups(timed), [(1, vec![0, 1, 2]), (1, vec![3, 4]), (1, vec![5])]);
        let mails =
            (0..).zip([10, 4_000_000, 5_000_009, 5_000_010]).map(|(number, id)| mail_chunk(1, number, "bob", id));
        assert_eq!(groups(mails), [(1, vec![0, 1, 2]), (1, vec![3])]);
    }

    #[test]
    fn group_has_the_range_of_its_ids() {
        let batch =
            [chunk(1, 0, "x"), mail_chunk(1, 1, "bob", 7), mail_chunk(1, 2, "bob", 9), chunk(1, 3, "x")].map(Arc::new);
        assert_eq!(ChunkGroup::split(&batch)[0].message_ids, Some((7.into(), 10.into())));
        assert_eq!(ChunkGroup::split(&batch[..1])[0].message_ids, None);
    }
}
