//! The ground that the writer stands on: the files are where readers will look for them, and there is room on the disk.

use std::time::{Duration, Instant};

use super::books::SegmentBook;
use super::error::of_segment;
use super::writer::{Checked, Writer};
use crate::{Result, StoreError};

/// A log that is worth cutting off when room is short.
const LONG_LOG: u64 = 1 << 20;
/// How long it is believed that files and room are still there.
const CHECKED: Duration = Duration::from_millis(100);
/// What a transaction takes beside the mail, at most, as a rule.
const OVERHEAD: u64 = 64 << 10;

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
    pub(super) fn check_ground(&mut self, bytes: u64) -> Result<()> {
        // The database and its log grow as well.
        let needed = bytes.saturating_mul(2) + OVERHEAD;
        if let Some(checked) = &mut self.checked
            && checked.at.elapsed() < CHECKED
            && checked.room >= needed
        {
            checked.room -= needed;
            return Ok(());
        }
        self.checked = None;
        self.check_identity()?;
        let room = self.directory.room().map_err(|error| of_segment("looking for room", &error))?;
        if room.free < room.reserve() {
            self.make_room();
            let (free, reserve) = (room.free >> 20, room.reserve() >> 20);
            return Err(StoreError::NoSpace(format!("{free} MiB are free, {reserve} MiB are kept for deletions")));
        }
        self.tail.check();
        self.tail.prepare().map_err(|error| {
            self.reclaim.leftovers = true;
            of_segment("beginning a segment", &error)
        })?;
        self.checked = Some(Checked { at: Instant::now(), room: room.free - room.reserve() });
        Ok(())
    }

    /// Gives back what can be given back when there is no room: the log begins anew, and the last segment is left when most
    /// of it is not in use.
    pub(super) fn make_room(&mut self) {
        if self.directory.log_bytes() > LONG_LOG {
            self.begin_the_log_anew();
        }
        self.leave_the_tail_if(SegmentBook::is_sparse);
    }

    /// When nothing in the last segment is in use, its space need not wait until it is full.
    pub(super) fn leave_an_empty_tail(&mut self) {
        let worth_it = self.settings.segment_bytes / 16;
        self.leave_the_tail_if(|book| book.live == 0 && book.end > worth_it);
    }

    fn leave_the_tail_if(&mut self, wanted: impl Fn(&SegmentBook) -> bool) {
        if let Some(current) = self.tail.current()
            && let Some(book) = self.books.segments.get(&current).copied().filter(wanted)
        {
            self.tail.give_up();
            self.reclaim.consider(current, book, None);
        }
    }
}
