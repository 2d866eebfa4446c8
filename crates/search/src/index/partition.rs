//! Partitions of the index by id. A query reads the newest partition first, and the others only if it needs more results,
//! because the full-text table reads all matches of a prefix before it returns the first one.

use std::ops::Range;

use rusqlite::{Connection, Result, params};

use super::tokens::TokenPattern;

/// The number of documents from which on a partition gets no new documents at its end. Tests have few documents.
const MAX_DOCUMENTS: i64 = if cfg!(test) { 8 } else { 1 << 17 };

/// The documents in a range of ids.
#[derive(Clone, Debug)]
pub(super) struct Partition {
    /// The number that its tokens begin with.
    pub(super) number: i64,
    pub(super) ids: Range<i64>,
    /// The highest id that was added.
    last: i64,
    /// The number of documents that were added.
    count: i64,
}

impl Partition {
    /// Returns all partitions in the order of their ids.
    pub(super) fn list(connection: &Connection) -> Result<Vec<Self>> {
        let sql = "SELECT number, first, lead(first, 1, ?1) OVER (ORDER BY first), last, count FROM partitions
            ORDER BY first";
        let mut select = connection.prepare_cached(sql)?;
        let partitions = select.query_map([i64::MAX], |row| {
            Ok(Self { number: row.get(0)?, ids: row.get(1)?..row.get(2)?, last: row.get(3)?, count: row.get(4)? })
        })?;
        partitions.collect()
    }

    /// Returns the pattern of a token of this partition, or of all of its tokens that start with it.
    pub(super) fn pattern(&self, token: &str, is_prefix: bool) -> TokenPattern {
        TokenPattern { text: format!("{}{token}", self.number), is_prefix }
    }

    fn save(&self, connection: &Connection) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO partitions (first, number, last, count) VALUES (?1, ?2, ?3, ?4)";
        let mut insert = connection.prepare_cached(sql)?;
        insert.execute(params![self.ids.start, self.number, self.last, self.count])?;
        Ok(())
    }
}

/// Finds the partitions of new documents.
pub(super) struct Partitioner {
    partitions: Vec<Partition>,
}

impl Partitioner {
    /// Reads the partitions.
    pub(super) fn new(connection: &Connection) -> Result<Self> {
        Ok(Self { partitions: Partition::list(connection)? })
    }

    /// Adds a document. Returns the number of its partition.
    pub(super) fn add(&mut self, id: i64) -> i64 {
        let position = self.partitions.partition_point(|partition| partition.ids.start <= id);
        let end = self.partitions.get(position).map_or(i64::MAX, |next| next.ids.start);
        let current = self.partitions[..position].last_mut();
        if let Some(partition) = current.filter(|partition| partition.count < MAX_DOCUMENTS || id < partition.last) {
            partition.last = partition.last.max(id);
            partition.count += 1;
            return partition.number;
        }
        let number = self.partitions.iter().map(|partition| partition.number + 1).max().unwrap_or(1);
        self.partitions.insert(position, Partition { number, ids: id..end, last: id, count: 1 });
        number
    }

    /// Writes the partitions.
    pub(super) fn save(&self, connection: &Connection) -> Result<()> {
        self.partitions.iter().try_for_each(|partition| partition.save(connection))
    }
}

/// Deletes partitions without documents.
pub(super) fn delete_empty(connection: &Connection) -> Result<()> {
    for Partition { ids, .. } in Partition::list(connection)? {
        let sql = "DELETE FROM partitions WHERE first = ?1
            AND NOT EXISTS (SELECT 1 FROM documents WHERE id >= ?1 AND id < ?2)";
        connection.prepare_cached(sql)?.execute([ids.start, ids.end])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_ranges_of_ids() {
        let mut partitioner = Partitioner { partitions: Vec::new() };
        let mut add = |ids: &[i64]| ids.iter().map(|id| partitioner.add(*id)).collect::<Vec<_>>();
        assert_eq!(add(&[10, 11, 12, 13, 14, 15, 16, 17, 20, 21]), [1, 1, 1, 1, 1, 1, 1, 1, 2, 2]);
        assert_eq!(add(&[9, 8]), [3, 4], "ids below all others");
        assert_eq!(add(&[19, 18, 16]), [5, 6, 1], "ids after all others of a full partition");
        let starts: Vec<_> = partitioner.partitions.iter().map(|partition| partition.ids.start).collect();
        assert_eq!(starts, [8, 9, 10, 18, 19, 20]);
    }
}
