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
//! A failure in 1, or in 3 before the commit itself, leaves garbage that the next record overwrites. After one in 2 or in
//! the commit nobody knows what is on the disk: connection and segment are given up, the books are read anew, and the next
//! record goes to a new segment, so that bytes which a half-done commit may name stay what they are.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use restante_mail::message::MessageId;
use restante_sqlite::ErrorKind;
use rusqlite::Connection;
use tokio::sync::mpsc::Receiver;
use tokio::sync::mpsc::error::TryRecvError;

use super::books::Books;
use super::changes::{Changes, Entries};
use super::checkpoint::{Checkpoints, sync_log};
use super::directory::{Directory, Identity, Lock};
use super::error::of_segment;
use super::job::Job;
use super::reclaim::Reclaim;
use super::record::Record;
use super::segment::Location;
use super::tail::Tail;
use super::{Durability, OpenError, Settings, Shared, schema};
use crate::numbers::nanoseconds;
use crate::{Result, StoreError};

/// The most jobs and bytes of mail that share a transaction.
const MAX_JOBS: usize = 256;
const MAX_BYTES: usize = 16 << 20;

pub(super) struct Writer {
    pub(super) directory: Directory,
    pub(super) settings: Settings,
    pub(super) shared: Arc<Shared>,
    /// None after an error that leaves the state of the file in doubt.
    pub(super) database: Option<Connection>,
    /// Which file that is.
    pub(super) identity: Identity,
    pub(super) books: Books,
    pub(super) tail: Tail,
    pub(super) checkpoints: Checkpoints,
    pub(super) reclaim: Reclaim,
    /// The last look at files and room, if it found them in order.
    pub(super) checked: Option<Checked>,
    /// Whether the end of the last segment may not have reached the disk.
    pub(super) end_in_doubt: bool,
    _lock: Lock,
}

/// A look at files and room that found them in order.
pub(super) struct Checked {
    pub(super) at: Instant,
    /// What may be written before the next look.
    pub(super) room: u64,
}

/// Why a transaction did not happen.
pub(super) enum Failure {
    /// Nothing is changed, that much is sure: it may be tried again.
    Undone(StoreError),
    /// It may have happened after all: whoever tries again may do it twice.
    InDoubt(StoreError),
}

impl Failure {
    pub(super) fn into_error(self) -> StoreError {
        match self {
            Self::Undone(error) | Self::InDoubt(error) => error,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Undone(error)
    }
}

impl Writer {
    pub(super) fn open(
        directory: Directory,
        settings: Settings,
        shared: Arc<Shared>,
        lock: Lock,
    ) -> Result<Self, OpenError> {
        // A log says that the store was not closed when it was used last. With relaxed durability, a database can be closed
        // before the mail that it names is on the disk.
        let end_in_doubt = directory.log_bytes() > 0 || settings.durability == Durability::Relaxed;
        directory.make_database(&shared.segments)?;
        let checkpoints = Checkpoints::new(directory.database(), shared.segments.clone(), settings.durability)
            .map_err(|error| OpenError::Database(format!("no thread for its log: {error}")))?;
        let database = connect(&directory, &settings, &checkpoints)?;
        let identity = directory.database_identity().map_err(|error| OpenError::Database(error.to_string()))?;
        let books = Books::load(&database)?;
        books.check(&database)?;
        let (last, end) = books.segments.last_key_value().map_or((0, 0), |(id, book)| (*id, book.end));
        let tail = Tail::new(shared.segments.clone(), settings.segment_bytes, last, end);
        let mut reclaim = Reclaim::default();
        reclaim.look_around(&books, tail.current());
        let database = Some(database);
        Ok(Self {
            directory,
            settings,
            shared,
            database,
            identity,
            books,
            tail,
            checkpoints,
            reclaim,
            checked: None,
            end_in_doubt,
            _lock: lock,
        })
    }

    /// Works until nobody can ask any more.
    pub(super) fn run(mut self, mut queue: Receiver<Job>) {
        self.guarded(Self::recover);
        let mut batches = 0_u64;
        while let Some(job) = self.next_job(&mut queue, batches) {
            // Whoever is about to ask may come along, if there is anybody else to run at all.
            std::thread::yield_now();
            let mut bytes = job.bytes();
            let mut jobs = vec![job];
            while jobs.len() < MAX_JOBS && bytes < MAX_BYTES {
                let Ok(job) = queue.try_recv() else { break };
                bytes += job.bytes();
                jobs.push(job);
            }
            self.work_off(jobs);
            self.tidy_up();
            batches += 1;
        }
        // What closes the database syncs it; nobody else syncs the mail that it names when durability is relaxed.
        self.tail.give_up();
    }

    /// Waits for a job. Meanwhile space is reclaimed; and now and then also when there are jobs enough.
    fn next_job(&mut self, queue: &mut Receiver<Job>, batches: u64) -> Option<Job> {
        if self.reclaim.is_due() && batches.is_multiple_of(8) {
            self.guarded(Self::reclaim_some);
        }
        loop {
            match queue.try_recv() {
                Ok(job) => return Some(job),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if self.reclaim.is_due() => self.guarded(Self::reclaim_some),
                Err(TryRecvError::Empty) => {
                    self.shared.pulse.rest();
                    return queue.blocking_recv();
                }
            }
        }
    }

    /// A mistake of ours in what nobody waits for is told, and not tried again; the store has to live on.
    fn guarded(&mut self, work: fn(&mut Self)) {
        self.shared.pulse.beat(Instant::now());
        if catch_unwind(AssertUnwindSafe(|| work(self))).is_err() {
            self.after_a_panic();
            self.reclaim.give_up();
        }
    }

    fn after_a_panic(&mut self) {
        self.shared.recent().end([]);
        self.tail.give_up();
    }

    /// One transaction for all; one for each when that fails and surely nothing has happened. A mail that does not fit, or
    /// that cannot be stored for another reason of its own, must not take others with it; and a deletion may make room.
    fn work_off(&mut self, mut jobs: Vec<Job>) {
        self.shared.pulse.beat(Instant::now());
        // A mistake of ours costs these jobs an error; the store has to live on.
        let committed = catch_unwind(AssertUnwindSafe(|| self.commit(&mut jobs))).unwrap_or_else(|_| {
            self.after_a_panic();
            Err(Failure::InDoubt(StoreError::Broken("the writer panicked".to_owned())))
        });
        if committed.is_err() {
            self.checked = None;
        }
        let outcome = match committed {
            Ok(()) => Ok(()),
            Err(Failure::Undone(error)) if jobs.len() > 1 => {
                if matches!(error, StoreError::NoSpace(_)) {
                    self.make_room();
                }
                for job in jobs {
                    self.work_off(vec![job]);
                }
                return;
            }
            Err(failure) => Err(failure.into_error()),
        };
        // A deletion that succeeds says nothing about new mail.
        if outcome.is_err() || jobs.iter().any(Job::needs_room) {
            self.shared.note(outcome.as_ref().err());
        }
        for job in jobs {
            job.settle(outcome.clone());
        }
    }

    fn commit(&mut self, jobs: &mut [Job]) -> Result<(), Failure> {
        self.ready()?;
        if jobs.iter().any(Job::needs_room) {
            self.check_ground(jobs.iter().map(|job| job.bytes() as u64).sum())?;
        }
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
            self.checked = None;
            self.check_identity()?;
            let database = connect(&self.directory, &self.settings, &self.checkpoints)?;
            let books = Books::load(&database)?;
            books.check(&database)?;
            self.books = books;
            self.database = Some(database);
        }
        Ok(())
    }

    /// Writes records, and makes the changes that name them: all of it, durably, or nothing.
    pub(super) fn transact(
        &mut self,
        records: &[Record],
        apply: impl FnOnce(&mut Changes<'_>, &Connection, &[Location]) -> Result<()>,
    ) -> Result<(), Failure> {
        let locations = self.tail.append(records).map_err(|error| {
            self.reclaim.leftovers = true;
            of_segment("writing mail", &error)
        })?;
        if self.settings.durability == Durability::Full
            && !records.is_empty()
            && let Err(error) = self.tail.sync()
        {
            self.tail.give_up();
            self.reclaim.leftovers = true;
            return Err(of_segment("syncing mail", &error).into());
        }
        // What is taken out here is put back only when all went well: a transaction that did not ends with its connection.
        let database = self.database.take().ok_or_else(|| StoreError::Broken("no database".to_owned()))?;
        let mut changes = Changes::new(&self.books, &self.shared, self.settings.limits);
        let prepare = || {
            database.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            for at in &locations {
                changes.written(*at);
            }
            apply(&mut changes, &database, &locations)?;
            changes.close(&database, self.tail.current())
        };
        if let Err(error) = prepare() {
            self.shared.recent().end([]);
            self.tail.take_back(&locations);
            return Err(error.into());
        }
        if let Err(error) = database.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([])) {
            self.shared.recent().end([]);
            self.tail.give_up();
            self.reclaim.leftovers = true;
            let full = ErrorKind::classify(&error) == ErrorKind::Full;
            return Err(if full { Failure::Undone(error.into()) } else { Failure::InDoubt(error.into()) });
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
            self.reclaim.graves.hollow.entry(at.segment).or_default().push(at);
        }
        let messages = self.books.counters.usage.messages;
        self.reclaim.rows_went += messages.saturating_sub(counters.usage.messages);
        self.books.counters = counters;
        let current = self.tail.current();
        let last = self.books.segments.last_key_value().map(|(id, _)| *id);
        for (id, book) in segments {
            if book.live == 0 && Some(id) != current {
                self.books.segments.remove(&id);
                self.reclaim.graves.dead.push(id);
            } else {
                self.books.segments.insert(id, book);
                self.reclaim.consider(id, book, current);
            }
        }
        // A segment that is no longer the one that is written may be sparse already.
        if let Some(last) = last
            && let Some(book) = self.books.segments.get(&last)
        {
            self.reclaim.consider(last, *book, current);
        }
        self.leave_an_empty_tail();
        self.shared.recent().end(mailboxes);
    }

    /// What can wait until the answers are given.
    pub(super) fn tidy_up(&mut self) {
        let Some(database) = &self.database else { return };
        let graves = std::mem::take(&mut self.reclaim.graves);
        self.checkpoints.keep_up(database, self.tail.segment, graves);
        if self.checkpoints.is_too_long() {
            self.begin_the_log_anew();
        }
    }

    /// Cuts the log off, while nobody reads.
    pub(super) fn begin_the_log_anew(&mut self) {
        // The database must not name on the disk what is not there yet.
        if let Some(database) = &self.database
            && self.tail.sync().is_ok()
        {
            let _alone = self.shared.readers.pause();
            self.checkpoints.begin_anew(database);
        }
    }

    /// Makes sure that everything which was committed is on the disk, however relaxed we were.
    pub(super) fn settle_down(&self) -> std::io::Result<()> {
        self.shared.segments.sync(self.tail.segment)?;
        sync_log(&self.directory.database())
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
            last_id = MessageId::next_after(last_id, message.received);
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
