//! The ground that the writer stands on: the files are where readers will look for them, and there is room on the disk.

use std::time::{Duration, Instant};

use rusqlite::wal::CheckpointMode;

use super::checkpoint::bring_home;
use super::trouble;
use super::writer::Writer;
use crate::{Result, StoreError};

/// How long it is believed that files and room are still there.
const CHECKED: Duration = Duration::from_millis(100);

impl Writer {
    /// Somebody may have moved the database, or all of the directory, away from under us.
    pub(super) fn check_identity(&self) -> Result<()> {
        match self.directory.database_identity() {
            Ok(found) if found == self.identity => Ok(()),
            Ok(_) => Err(StoreError::Broken("the database was replaced by another; restart the server".to_owned())),
            Err(error) => Err(StoreError::Unavailable(format!("the database is not where it was: {error}"))),
        }
    }

    /// What has to be there before new mail is taken: the files, where readers will look for them; and room. Mail is
    /// refused before the disk is full to the last byte, because deletions need some room too.
    pub(super) fn check_ground(&mut self) -> Result<()> {
        if self.checked.is_some_and(|checked| checked.elapsed() < CHECKED) {
            return Ok(());
        }
        self.checked = None;
        self.check_identity()?;
        let room = self.directory.room().map_err(|error| trouble::of_segment("looking for room", &error))?;
        if room.free < room.reserve() {
            self.make_room();
            let (free, reserve) = (room.free >> 20, room.reserve() >> 20);
            return Err(StoreError::NoSpace(format!("{free} MiB are free, {reserve} MiB are kept for deletions")));
        }
        self.tail.check();
        self.tail.prepare().map_err(|error| {
            self.reclaim.leftovers = true;
            trouble::of_segment("beginning a segment", &error)
        })?;
        self.checked = Some(Instant::now());
        Ok(())
    }

    /// Gives back what can be given back when there is no room: the log begins anew, and the last segment is left when most
    /// of it is not in use.
    pub(super) fn make_room(&mut self) {
        if let Some(database) = &self.database {
            bring_home(database, CheckpointMode::PASSIVE);
        }
        let Some(current) = self.tail.current() else { return };
        if let Some(book) = self.books.segments.get(&current).copied()
            && book.live.saturating_mul(2) < book.end
        {
            self.tail.give_up();
            self.reclaim.consider(current, book, None);
        }
    }

    /// When nothing in the last segment is in use, its space need not wait until it is full.
    pub(super) fn leave_an_empty_tail(&mut self) {
        let Some(current) = self.tail.current() else { return };
        let Some(book) = self.books.segments.get(&current).copied() else { return };
        if book.live == 0 && book.end > self.settings.segment_bytes / 16 {
            self.tail.give_up();
            self.reclaim.consider(current, book, None);
        }
    }
}
