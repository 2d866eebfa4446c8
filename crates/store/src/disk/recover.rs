//! After the process or the machine ended without closing the store: whether the last segment holds what the database
//! names. It does when everything was synced; with relaxed durability, or a disk that does not keep its word, a power
//! failure can take the end of it. What is not there any more is taken off the books, and told in the log.

use std::fs::File;

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use rusqlite::Connection;

use super::record::View;
use super::rows::{self, number};
use super::segment::{Location, Segments, Sweep};
use super::writer::Writer;
use crate::Result;

impl Writer {
    /// What is done once, when the store is open already.
    pub(super) fn recover(&mut self) {
        if self.unclean
            && let Err(error) = self.check_the_end()
        {
            tracing::error!(%error, "the last segment cannot be checked");
        }
        // What the database says of files must be on the disk before any of them goes.
        if self.settle_down() {
            self.remove_leftovers();
        } else {
            self.reclaim.leftovers = true;
        }
    }

    /// Looks at the last segment, and forgets messages that are not whole.
    fn check_the_end(&mut self) -> Result<()> {
        let Some((&segment, book)) = self.books.segments.last_key_value() else { return Ok(()) };
        if is_whole(&self.shared.segments, segment, book.end) {
            return Ok(());
        }
        let Some(database) = self.database() else { return Ok(()) };
        let lost = broken_copies(database, &self.shared.segments, segment)?;
        let count = lost.len();
        if count == 0 {
            return Ok(());
        }
        self.transact(&[], |changes, database, _| {
            for (mailbox, id) in &lost {
                changes.remove(database, mailbox, *id)?;
            }
            Ok(())
        })?;
        tracing::error!(segment, "the end of the last segment did not reach the disk: {count} messages are lost");
        Ok(())
    }
}

fn is_whole(segments: &Segments, segment: u64, end: u64) -> bool {
    let Ok(file) = File::open(segments.path(segment)) else { return false };
    let mut sweep = Sweep { segment, file, offset: 0, end };
    loop {
        match sweep.next() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// All copies whose record in this segment cannot be read. It looks at every row there is, but only when it has to.
fn broken_copies(database: &Connection, segments: &Segments, segment: u64) -> Result<Vec<(MailboxName, MessageId)>> {
    let mut statement = database.prepare("SELECT mailbox, id, offset, length FROM copies WHERE segment = ?1")?;
    let rows = statement.query_map([segment], |row| {
        let at = Location { segment, offset: number(row, 2)?, length: number(row, 3)? };
        Ok((rows::mailbox(row, 0)?, MessageId::from(number(row, 1)?), at))
    })?;
    let mut broken = Vec::new();
    for row in rows {
        let (mailbox, id, at) = row?;
        let whole = segments.read(at).ok().and_then(|bytes| View::of(&bytes).ok()).is_some();
        if !whole {
            broken.push((mailbox, id));
        }
    }
    Ok(broken)
}
