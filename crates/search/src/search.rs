//! Search as the server sees it: its start, what it hears, how it is asked, and its end.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle, available_parallelism};
use std::time::{Duration, Instant};

use restante_mail::message::{MessageId, Summary};
use restante_mail::mime::Mime;
use restante_mail::naming::MailboxName;
use restante_mailroom::hooks::Observer;
use restante_mailroom::{Mailroom, Which};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use crate::filing::Filing;
use crate::index::{self, Asked, Found, Index};
use crate::intake::{Intake, Missed, News};
use crate::librarian::Librarian;
use crate::query::Query;
use crate::question::{Answer, Hit, Question, SearchError};
use crate::shelf::Shelf;
use crate::snippet::{Piece, snippet};

/// How long a question waits for what was stored before it.
const FRESH: Duration = Duration::from_secs(2);
/// How long the index may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many questions are worked on at the same time, on however many processors.
const MAX_AT_ONCE: usize = 4;
/// How many bytes of mail are read for the snippets of one answer.
const MAX_SNIPPETS: u64 = 16 << 20;
/// How often one looks whether the librarian has left.
const LOOK: Duration = Duration::from_millis(5);

/// See the crate's documentation.
pub struct Search {
    intake: Arc<Intake>,
    shelf: Arc<Shelf>,
    turns: Arc<Semaphore>,
    desk: Mutex<Desk>,
}

/// What is needed to start the librarian, and what there is afterwards.
#[derive(Default)]
struct Desk {
    mailroom: Weak<Mailroom>,
    runtime: Option<Handle>,
    librarian: Option<JoinHandle<()>>,
    has_started: bool,
}

/// The index in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that are in it.
    pub indexed: u64,
    /// Changes that are still to be made.
    pub waiting: u64,
}

impl Search {
    /// A search over the mail of a data directory, or over mail in memory. Nothing is opened before [`Search::begin`].
    pub fn new(directory: Option<PathBuf>) -> Self {
        let at_once = available_parallelism().map_or(1, usize::from).clamp(2, MAX_AT_ONCE);
        Self {
            intake: Arc::default(),
            shelf: Arc::new(Shelf::new(directory)),
            turns: Arc::new(Semaphore::new(at_once)),
            desk: Mutex::default(),
        }
    }

    /// Throws away the index of a data directory. While nobody searches, it would only become wrong.
    pub fn forget(directory: &Path) {
        Index::forget(directory);
    }

    /// The server serves from now on. Called once within a runtime, when the mailroom is there, before mail arrives. An index
    /// that lasts is filled from now on; one in memory from the first question on.
    pub fn begin(&self, mailroom: &Arc<Mailroom>) {
        {
            let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
            desk.mailroom = Arc::downgrade(mailroom);
            desk.runtime = Some(Handle::current());
        }
        if self.shelf.is_lasting() {
            self.start();
        }
    }

    /// Asks.
    pub async fn ask(&self, mailroom: &Mailroom, question: Question) -> Result<Answer, SearchError> {
        self.start();
        let is_complete = self.intake.follow(FRESH).await;
        let turn = self.turns.clone().acquire_owned().await;
        let turn = Arc::new(turn.map_err(|error| SearchError::Unavailable(error.to_string()))?);
        let query = question.query.clone();
        let found = self.found(question, turn.clone()).await?;
        let next = found.messages.last().map(|(_, id)| *id).filter(|_| found.is_cut);
        let mut hits = Vec::with_capacity(found.messages.len());
        let (query, mut room) = (Arc::new(query), MAX_SNIPPETS);
        for (mailbox, id) in found.messages {
            let Some(summary) = mailroom.find(&mailbox, Which::Id(id)).await? else {
                self.intake.put(|| News::Deleted(id));
                continue;
            };
            let snippet = match room.checked_sub(summary.size) {
                None => Vec::new(),
                Some(rest) => {
                    room = rest;
                    around_hits(mailroom, &summary, query.clone(), turn.clone()).await?
                }
            };
            hits.push(Hit { summary, snippet });
        }
        Ok(Answer { hits, next, is_complete })
    }

    /// The index in numbers.
    pub fn counts(&self) -> Counts {
        Counts { indexed: self.shelf.count(), waiting: self.intake.waiting() as u64 }
    }

    /// Says goodbye: what waits is put into the index as far as there is time; the rest is found at the next start, and so is
    /// everything when the end is not `in_good_order`, because nobody knows then what is still to come. Blocking.
    pub fn end(&self, patience: Duration, in_good_order: bool) {
        self.intake.close();
        if !in_good_order {
            self.intake.abandon();
        }
        let librarian = self.desk.lock().unwrap_or_else(PoisonError::into_inner).librarian.take();
        let Some(librarian) = librarian else { return };
        let deadline = Instant::now() + patience;
        while !librarian.is_finished() && Instant::now() < deadline {
            thread::sleep(LOOK);
        }
        self.intake.abandon();
        if librarian.is_finished() {
            // It may have ended by a fault of the program, which was told then.
            let _ = librarian.join();
        } else {
            tracing::info!("the search index lacks some messages; the next start adds them");
        }
    }

    /// Starts the librarian, once.
    fn start(&self) {
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(runtime) = desk.runtime.clone().filter(|_| !desk.has_started) else { return };
        desk.has_started = true;
        // What happens from now on is heard of, and what happened before is asked for.
        self.intake.open();
        let filing = Filing::new(self.shelf.clone(), desk.mailroom.clone(), runtime);
        let librarian = Librarian::new(self.intake.clone(), filing);
        match thread::Builder::new().name("librarian".to_owned()).spawn(move || librarian.run()) {
            Ok(thread) => desk.librarian = Some(thread),
            Err(error) => tracing::error!(%error, "no thread for the search index; there is no search"),
        }
    }

    /// Asks the index, away from the network threads.
    async fn found(&self, question: Question, turn: Arc<OwnedSemaphorePermit>) -> Result<Found, SearchError> {
        let index = self.shelf.clone();
        let work = move || {
            let Question { query, mailbox, is_permitted, before, limit } = question;
            index.find(&Asked {
                query: &query,
                mailbox: mailbox.as_ref(),
                is_permitted: &*is_permitted,
                before: before.unwrap_or(MessageId::MAX),
                limit,
                deadline: Instant::now() + PATIENCE,
            })
        };
        match away(turn, work).await? {
            None => Err(SearchError::Unavailable("it is being opened".to_owned())),
            Some(Ok(found)) => Ok(found),
            Some(Err(error)) if index::is_interruption(&error) => Err(SearchError::TooLong),
            Some(Err(error)) => {
                if index::is_damage(&error) {
                    self.intake.miss(Missed::Index);
                }
                Err(SearchError::Unavailable(error.to_string()))
            }
        }
    }
}

impl Observer for Search {
    fn message_stored(&self, summary: &Summary) {
        self.intake.put(|| News::Stored(summary.mailbox.clone(), summary.id));
    }

    fn message_deleted(&self, summary: &Summary) {
        self.intake.put(|| News::Deleted(summary.id));
    }

    fn seen_changed(&self, _: &MailboxName, id: MessageId, seen: bool) {
        self.intake.put(|| News::Seen(id, seen));
    }
}

/// Without a goodbye the librarian leaves as soon as it can.
impl Drop for Search {
    fn drop(&mut self) {
        self.intake.close();
        self.intake.abandon();
    }
}

/// The snippet of a message; empty when it is gone.
async fn around_hits(
    mailroom: &Mailroom,
    summary: &Summary,
    query: Arc<Query>,
    turn: Arc<OwnedSemaphorePermit>,
) -> Result<Vec<Piece>, SearchError> {
    let Some(source) = mailroom.source(&summary.mailbox, summary.id).await? else { return Ok(Vec::new()) };
    away(turn, move || snippet(&Mime::parse(source.to_bytes()).text(), &query.shown())).await
}

/// Does something away from the network threads. The turn goes with the work, which does not end when nobody waits for it any more.
async fn away<T: Send + 'static>(
    turn: Arc<OwnedSemaphorePermit>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SearchError> {
    let work = move || {
        let _turn = turn;
        work()
    };
    spawn_blocking(work).await.map_err(|error| SearchError::Unavailable(error.to_string()))
}
