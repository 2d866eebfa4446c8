//! The one thread that changes a data directory. Everything that waits for it goes into one transaction (group commit):
//! while that one is on its way to the disk, the next jobs gather, so there is no timer, and a lone message waits for
//! nobody.
//!
//! The order of a commit is what makes it safe:
//!
//! 1. the records are written behind the end of the last segment;
//! 2. they are synced;
//! 3. the rows that name them are committed, which SQLite syncs;
//! 4. whoever asked is told.
//!
//! A failure in 1 leaves garbage that the next record overwrites. After one in 2 or 3 nobody knows what is on the disk:
//! connection and segment are given up, the books are read anew, and the next record goes to a new segment, so that
//! bytes which a half-done commit may name stay what they are.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use restante_mail::message::MessageId;
use rusqlite::Connection;
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;

use super::books::Books;
use super::changes::{Changes, Entries};
use super::checkpoint::{self, Checkpoints};
use super::directory::{Directory, Lock};
use super::job::Job;
use super::reclaim::Reclaim;
use super::record::Record;
use super::rows::nanoseconds;
use super::segment::{Location, Tail};
use super::{Durability, OpenError, Settings, Shared, schema, trouble};
use crate::{Result, StoreError};

/// The most jobs and bytes of mail that share a transaction.
const MAX_JOBS: usize = 256;
const MAX_BYTES: usize = 16 << 20;

pub(super) struct Writer {
    directory: Directory,
    settings: Settings,
    pub(super) shared: Arc<Shared>,
    /// None after an error that leaves the state of the file in doubt.
    database: Option<Connection>,
    pub(super) books: Books,
    tail: Tail,
    checkpoints: Checkpoints,
    pub(super) reclaim: Reclaim,
    /// Whether the store was not closed when it was used last.
    pub(super) unclean: bool,
    _lock: Lock,
}

impl Writer {
    pub(super) fn open(
        directory: Directory,
        settings: Settings,
        shared: Arc<Shared>,
        lock: Lock,
    ) -> Result<Self, OpenError> {
        let unclean = directory.has_log();
        let checkpoints = Checkpoints::new(directory.database(), shared.segments.clone(), settings.durability)
            .map_err(|error| OpenError::Database(format!("no thread for its log: {error}")))?;
        let database = connect(&directory, &settings, &checkpoints)?;
        let books = Books::load(&database).map_err(|error| OpenError::Database(error.to_string()))?;
        shared.publish(books.counters.usage);
        let (last, end) = books.segments.last_key_value().map_or((0, 0), |(id, book)| (*id, book.end));
        let tail = Tail::new(shared.segments.clone(), settings.segment_bytes, last, end);
        let reclaim = Reclaim::new(&books);
        let database = Some(database);
        Ok(Self { directory, settings, shared, database, books, tail, checkpoints, reclaim, unclean, _lock: lock })
    }

    /// Works until nobody can ask any more.
    pub(super) fn run(mut self, mut queue: Receiver<Job>) {
        self.recover();
        let mut batches = 0_u64;
        loop {
            // Reclaiming takes its turn when there is nothing else to do, and now and then when there is.
            if self.reclaim.is_due() && (queue.is_empty() || batches.is_multiple_of(8)) {
                self.reclaim_some();
            }
            let mut jobs = Vec::new();
            match queue.try_recv() {
                Ok(job) => jobs.push(job),
                Err(TryRecvError::Disconnected) => return,
                Err(TryRecvError::Empty) if self.reclaim.is_due() => continue,
                Err(TryRecvError::Empty) => match queue.blocking_recv() {
                    Some(job) => jobs.push(job),
                    None => return,
                },
            }
            // Whoever is about to ask may come along, if there is anybody else to run at all.
            std::thread::yield_now();
            let mut bytes = jobs[0].bytes();
            while jobs.len() < MAX_JOBS && bytes < MAX_BYTES {
                let Ok(job) = queue.try_recv() else { break };
                bytes += job.bytes();
                jobs.push(job);
            }
            self.work_off(jobs);
            self.tidy_up();
            batches += 1;
        }
    }

    /// One transaction for all; one for each when there is no room for all of them. A mail that does not fit must not
    /// take others with it, and a deletion may make room.
    fn work_off(&mut self, mut jobs: Vec<Job>) {
        // A mistake of ours costs these jobs an error; the store has to live on.
        let committed = catch_unwind(AssertUnwindSafe(|| self.commit(&mut jobs))).unwrap_or_else(|_| {
            self.shared.recent().end([]);
            self.tail.give_up();
            Err(StoreError::Broken("the writer panicked".to_owned()))
        });
        match committed {
            Err(StoreError::NoSpace(_)) if jobs.len() > 1 => {
                for job in jobs {
                    self.work_off(vec![job]);
                }
            }
            outcome => {
                for job in jobs {
                    job.settle(outcome.clone());
                }
            }
        }
    }

    fn commit(&mut self, jobs: &mut [Job]) -> Result<()> {
        self.ready()?;
        let (records, ids) = stage(jobs, self.books.counters.last_id);
        self.transact(&records, |changes, database, locations| {
            let mut written = ids.iter().zip(locations);
            for job in jobs {
                job.apply(changes, database, &mut written)?;
            }
            Ok(())
        })
    }

    /// Opens the database again after an error, and reads the books as they are on the disk.
    pub(super) fn ready(&mut self) -> Result<()> {
        if self.database.is_none() {
            let database = connect(&self.directory, &self.settings, &self.checkpoints)?;
            self.books = Books::load(&database)?;
            self.shared.publish(self.books.counters.usage);
            self.database = Some(database);
            tracing::info!("the store works again");
        }
        Ok(())
    }

    /// Writes records, and makes the changes that name them: all of it, durably, or nothing.
    pub(super) fn transact(
        &mut self,
        records: &[Record],
        apply: impl FnOnce(&mut Changes<'_>, &Connection, &[Location]) -> Result<()>,
    ) -> Result<()> {
        let locations = self.tail.append(records).map_err(|error| trouble::of_segment("writing mail", &error))?;
        // What is taken out here is put back only when all went well: a transaction that did not ends with its connection.
        let database = self.database.take().ok_or_else(|| StoreError::Broken("no database".to_owned()))?;
        let mut changes = Changes::new(&self.books, &self.shared, self.settings.limits);
        let all_of_it = || {
            if self.settings.durability == Durability::Full && !records.is_empty() {
                self.tail.sync().map_err(|error| trouble::of_segment("syncing mail", &error))?;
            }
            database.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            for at in &locations {
                changes.written(*at);
            }
            apply(&mut changes, &database, &locations)?;
            changes.close(&database, self.tail.segment)?;
            database.prepare_cached("COMMIT")?.execute([])?;
            Ok(())
        };
        if let Err(error) = all_of_it() {
            self.shared.recent().end([]);
            self.tail.give_up();
            self.reclaim.leftovers = true;
            return Err(error);
        }
        let entries = changes.into_entries();
        self.database = Some(database);
        self.enter(entries);
        // Only now is it settled that no commit which seemed to fail can come back and name them.
        if self.reclaim.leftovers {
            self.remove_leftovers();
        }
        Ok(())
    }

    /// Enters what was committed into the books.
    fn enter(&mut self, entries: Entries) {
        let Entries { counters, segments, mailboxes, released } = entries;
        for at in released {
            self.reclaim.hollow.entry(at.segment).or_default().push(at);
        }
        let messages = self.books.counters.usage.messages;
        self.reclaim.rows_went += messages.saturating_sub(counters.usage.messages);
        self.books.counters = counters;
        for (id, book) in segments {
            if book.live == 0 && id != self.tail.segment {
                self.books.segments.remove(&id);
                self.reclaim.dead.push(id);
            } else {
                self.books.segments.insert(id, book);
                self.reclaim.consider(id, book, self.tail.segment);
            }
        }
        // A segment that is full is no longer the last one, and may be sparse already.
        if self.reclaim.tail != self.tail.segment {
            let full = std::mem::replace(&mut self.reclaim.tail, self.tail.segment);
            if let Some(book) = self.books.segments.get(&full) {
                self.reclaim.consider(full, *book, self.tail.segment);
            }
        }
        self.shared.recent().end(mailboxes);
        self.shared.publish(counters.usage);
    }

    /// What can wait until the answers are given.
    pub(super) fn tidy_up(&mut self) {
        if let Some(database) = &self.database {
            self.checkpoints.keep_up(database, self.tail.segment);
        }
        self.bury_the_dead();
    }

    /// Makes sure that everything which was acknowledged is on the disk, however relaxed we are; false when it could not
    /// be done now.
    pub(super) fn settle_down(&self) -> bool {
        let synced = self.tail.sync().inspect_err(|error| tracing::error!(%error, "mail cannot be synced"));
        synced.is_ok() && self.database.as_ref().is_some_and(checkpoint::bring_home)
    }

    pub(super) fn database(&self) -> Option<&Connection> {
        self.database.as_ref()
    }

    pub(super) fn durability(&self) -> Durability {
        self.settings.durability
    }

    pub(super) fn tail(&self) -> u64 {
        self.tail.segment
    }
}

/// The records of all new messages, and the ids of their copies.
fn stage(jobs: &[Job], mut last_id: MessageId) -> (Vec<Record>, Vec<Vec<MessageId>>) {
    let mut records = Vec::new();
    let mut ids = Vec::new();
    for job in jobs {
        let Job::Append(message, _) = job else { continue };
        let mut given = Vec::with_capacity(message.copies.len());
        for _ in &message.copies {
            last_id = MessageId::following(last_id, message.received);
            given.push(last_id);
        }
        records.push(Record::new(nanoseconds(message.received), &given, &message.copies, message.body.clone()));
        ids.push(given);
    }
    (records, ids)
}

fn connect(directory: &Directory, settings: &Settings, checkpoints: &Checkpoints) -> Result<Connection, OpenError> {
    let mut database = schema::open_writer(&directory.database(), settings.durability, settings.cache_bytes / 2)?;
    checkpoints.watch(&mut database)?;
    Ok(database)
}
