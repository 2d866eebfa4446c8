//! The steps by which space comes back; see [`Reclaim`](super::reclaim::Reclaim) for what there is to do.

use std::collections::HashSet;
use std::fs::File;

use bytes::Bytes;
use restante_mail::message::MessageId;
use rusqlite::wal::CheckpointMode;

use super::changes::Changes;
use super::checkpoint::bring_home;
use super::error::of_segment;
use super::reclaim::MANY_ROWS;
use super::record::Record;
use super::segment::Location;
use super::sweep::Sweep;
use super::writer::{Failure, Writer};
use crate::{Result, StoreError};

/// How much of a segment is looked at in one step.
const STEP: u64 = 1 << 20;
/// How many pages the database gives back in one step.
const PAGES: u32 = 256;

impl Writer {
    /// Takes one step.
    pub(super) fn reclaim_some(&mut self) {
        let segment = self.reclaim.next_segment();
        let step = if self.reclaim.rows_went >= MANY_ROWS { self.shrink_database() } else { self.sweep() };
        if let Err(error) = step {
            tracing::error!(%error, "space cannot be reclaimed");
            self.reclaim.under_way = None;
            match (error, segment) {
                // One that is damaged stays as it is; it is not in the way of others.
                (StoreError::Broken(_), Some(segment)) if self.reclaim.rows_went < MANY_ROWS => {
                    self.reclaim.sparse.remove(&segment);
                    self.reclaim.stuck.insert(segment);
                }
                // It is thought of again when the next message goes.
                _ => self.reclaim.give_up(),
            }
        }
        self.tidy_up();
    }

    /// Deletes segments that the database does not name: what a crash has left, or an attempt that failed.
    pub(super) fn remove_leftovers(&mut self) {
        self.reclaim.leftovers = false;
        let files: HashSet<u64> = match self.shared.segments.ids() {
            Ok(files) => files.into_iter().collect(),
            Err(error) => {
                tracing::error!(%error, "the folder of segments cannot be read");
                return;
            }
        };
        for id in &files {
            if !self.books.segments.contains_key(id) && self.tail.current() != Some(*id) {
                tracing::info!(segment = id, "removing a leftover file");
                self.reclaim.graves.dead.push(*id);
                self.tail.skip(*id);
            }
        }
        for (id, book) in &self.books.segments {
            if !files.contains(id) {
                tracing::error!(segment = id, bytes = book.live, "a segment file is missing, and the mail in it");
            }
        }
    }

    /// Writes what is needed of a part of a sparse segment to the end of the last one. When all parts are done, the
    /// segment is dead.
    fn sweep(&mut self) -> Result<()> {
        self.ready()?;
        let Some(mut sweep) = self.next_sweep()? else { return Ok(()) };
        let start = sweep.offset;
        let mut records = Vec::new();
        let mut moves = Vec::new();
        while sweep.offset - start < STEP {
            let Some((from, bytes, view)) = sweep.next()? else { break };
            let Some(database) = &self.database else { break };
            let mut copies = Vec::new();
            for copy in view.copies() {
                if Changes::needs(database, &copy.mailbox, copy.id, from)? {
                    copies.push((copy.mailbox.clone(), copy.id));
                }
            }
            if !copies.is_empty() {
                records.push(Record { head: bytes, body: Bytes::new() });
                moves.push((from, copies));
            }
        }
        let done = sweep.offset >= sweep.end;
        let segment = sweep.segment;
        if !records.is_empty() || done {
            self.move_records(segment, &records, &moves).map_err(Failure::into_error)?;
        }
        if !done {
            self.reclaim.under_way = Some(sweep);
        } else if self.books.segments.contains_key(&segment) {
            return Err(StoreError::Broken(format!("segment {segment} is counted as in use, but nobody uses it")));
        }
        Ok(())
    }

    fn move_records(&mut self, segment: u64, records: &[Record], moves: &[(Location, Copies)]) -> Result<(), Failure> {
        self.transact(records, |changes, database, locations| {
            for ((from, copies), to) in moves.iter().zip(locations) {
                changes.moved(database, copies, *from, *to)?;
            }
            changes.look_at(segment);
            Ok(())
        })
    }

    /// The sweep that is under way, or the next one.
    fn next_sweep(&mut self) -> Result<Option<Sweep>> {
        if let Some(sweep) = self.reclaim.under_way.take() {
            return Ok(Some(sweep));
        }
        let Some(segment) = self.reclaim.sparse.pop_first() else { return Ok(None) };
        let Some(book) = self.books.segments.get(&segment) else { return Ok(None) };
        // Nothing has to be looked at when nothing is in use.
        let offset = if book.live == 0 { book.end } else { 0 };
        let file = File::open(self.shared.segments.path(segment));
        let file = file.map_err(|error| of_segment("reading a segment", &error))?;
        Ok(Some(Sweep { segment, file, offset, end: book.end }))
    }

    /// Gives pages that the database does not use back to the system, unless they are few and will be used soon.
    fn shrink_database(&mut self) -> Result<()> {
        self.ready()?;
        let Some(database) = &self.database else { return Ok(()) };
        let count = |pragma| database.pragma_query_value(None, pragma, |row| row.get::<_, u32>(0));
        let (free, all) = (count("freelist_count")?, count("page_count")?);
        if free <= all / 4 || free <= PAGES {
            self.reclaim.rows_went = 0;
            return Ok(());
        }
        let given_back = self.transact(&[], |_, database, _| {
            // Every step of the statement gives one page back.
            let mut vacuum = database.prepare_cached("PRAGMA incremental_vacuum")?;
            let mut steps = vacuum.query([])?;
            for _ in 0..PAGES {
                if steps.next()?.is_none() {
                    break;
                }
            }
            Ok(())
        });
        given_back.map_err(Failure::into_error)?;
        // The file becomes shorter when its log is home.
        let Some(database) = &self.database else { return Ok(()) };
        bring_home(database, CheckpointMode::PASSIVE);
        if database.pragma_query_value(None, "freelist_count", |row| row.get::<_, u32>(0))? >= free {
            self.reclaim.rows_went = 0;
        }
        Ok(())
    }
}

/// The copies that need a record.
type Copies = Vec<(String, MessageId)>;
