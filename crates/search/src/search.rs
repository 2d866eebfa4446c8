//! Search as the server sees it: its start, what it hears, how it is asked, and its end.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use restante_mail::message::{MessageId, Summary};
use restante_mail::mime::Mime;
use restante_mail::naming::MailboxName;
use restante_mailroom::hooks::Observer;
use restante_mailroom::{Mailroom, MessageSelector};
use restante_worker::Worker;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::index::{self, Index, IndexQuery, Matches};
use crate::index_file::IndexFile;
use crate::index_operations::IndexOperations;
use crate::index_queue::{IndexEvent, IndexQueue, Resync};
use crate::indexer::Indexer;
use crate::query::Query;
use crate::request::{Hit, SearchError, SearchRequest, SearchResults};
use crate::snippet::{SnippetPart, snippet};

/// How long a question waits for what was stored before it.
const FRESHNESS_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the index may take to answer.
const INDEX_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a question waits for its turn.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the snippets of one answer may take to be made. Messages whose turn does not come by then have none.
const SNIPPETS_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a question takes in all, at most, whatever the store does.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How many questions are worked on at the same time, on however many processors.
const MAX_CONCURRENT_SEARCHES: usize = 4;
/// How many bytes of mail are read for the snippets of one answer.
const MAX_SNIPPET_SOURCE_BYTES: u64 = 16 << 20;

/// See the crate's documentation.
pub struct Search {
    queue: Arc<IndexQueue>,
    index_file: Arc<IndexFile>,
    permits: Arc<Semaphore>,
    indexer: Mutex<IndexerState>,
}

/// What is needed to start the librarian, and what there is afterwards.
#[derive(Default)]
struct IndexerState {
    mailroom: Weak<Mailroom>,
    runtime: Option<Handle>,
    worker: Option<Worker>,
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
        let at_once = available_parallelism().map_or(1, usize::from).clamp(2, MAX_CONCURRENT_SEARCHES);
        Self {
            queue: Arc::default(),
            index_file: Arc::new(IndexFile::new(directory)),
            permits: Arc::new(Semaphore::new(at_once)),
            indexer: Mutex::default(),
        }
    }

    /// Throws away the index of a data directory. While nobody searches, it would only become wrong.
    pub fn delete_index(directory: &Path) {
        Index::delete_files(directory);
    }

    /// The server serves from now on. Called once within a runtime, when the mailroom is there, before mail arrives. An index
    /// that lasts is filled from now on; one in memory from the first question on.
    pub fn start(&self, mailroom: &Arc<Mailroom>) {
        {
            let mut desk = self.indexer.lock().unwrap_or_else(PoisonError::into_inner);
            desk.mailroom = Arc::downgrade(mailroom);
            desk.runtime = Some(Handle::current());
        }
        if self.index_file.is_persistent() {
            self.start_indexer();
        }
    }

    /// Asks. Who does not wait for the answer any longer drops the future, and gives way to others.
    pub async fn find(&self, mailroom: &Mailroom, question: SearchRequest) -> Result<SearchResults, SearchError> {
        self.start_indexer();
        timeout(REQUEST_TIMEOUT, self.find_inner(mailroom, question)).await.unwrap_or(Err(SearchError::Timeout))
    }

    /// The index in numbers.
    pub fn counts(&self) -> Counts {
        Counts { indexed: self.index_file.count(), waiting: self.queue.pending() as u64 }
    }

    /// Says goodbye: what waits is put into the index as far as there is time; the rest is found at the next start, and so is
    /// everything when the end is not `in_good_order`, because nobody knows then what is still to come. Blocking.
    pub fn shut_down(&self, patience: Duration, in_good_order: bool) {
        self.queue.close();
        if !in_good_order {
            self.queue.abandon();
        }
        let librarian = self.indexer.lock().unwrap_or_else(PoisonError::into_inner).worker.take();
        let Some(librarian) = librarian else { return };
        let has_ended = librarian.wait_until(Instant::now() + patience);
        self.queue.abandon();
        if has_ended {
            // It may have ended by a fault of the program, which was told then.
            let _ = librarian.join();
        } else {
            tracing::info!("the search index lacks some messages; the next start adds them");
        }
    }

    /// Starts the librarian, once.
    fn start_indexer(&self) {
        let mut desk = self.indexer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(runtime) = desk.runtime.clone().filter(|_| !desk.has_started) else { return };
        desk.has_started = true;
        // What happens from now on is heard of, and what happened before is asked for.
        self.queue.open();
        let filing = IndexOperations::new(self.index_file.clone(), desk.mailroom.clone(), runtime);
        let librarian = Indexer::new(self.queue.clone(), filing);
        match Worker::spawn("librarian", move || librarian.run()) {
            Ok(worker) => desk.worker = Some(worker),
            Err(error) => tracing::error!(%error, "no thread for the search index; there is no search"),
        }
    }

    async fn find_inner(&self, mailroom: &Mailroom, question: SearchRequest) -> Result<SearchResults, SearchError> {
        let is_complete = self.wait_until_fresh(mailroom).await?;
        let turn = self.acquire_permit().await?;
        let query = question.query.clone();
        let found = self.query_index(question, &turn).await?;
        let next = found.messages.last().map(|(_, id, _)| *id).filter(|_| found.has_more);
        let mut summaries = Vec::with_capacity(found.messages.len());
        for (mailbox, id, seen) in found.messages {
            // The store is the truth.
            let summary = mailroom.find(&mailbox, MessageSelector::Id(id)).await?;
            if summary.as_ref().is_none_or(|summary| summary.seen != seen) {
                self.queue.push(|| IndexEvent::Recheck(mailbox, id));
            }
            summaries.extend(summary.filter(|summary| query.may_match(summary.seen)));
        }
        let snippets = make_snippets(mailroom, &summaries, query, &turn).await?;
        let hits = summaries.into_iter().zip(snippets).map(|(summary, snippet)| Hit { summary, snippet });
        Ok(SearchResults { hits: hits.collect(), next, is_complete })
    }

    /// Waits until what was stored before is in the index. Whether it is in time.
    async fn wait_until_fresh(&self, mailroom: &Mailroom) -> Result<bool, SearchError> {
        let deadline = Instant::now() + FRESHNESS_TIMEOUT;
        // Of what is in a shared store, one hears a moment later, whoever put it there.
        if mailroom.is_shared() && !self.queue.wait_for_id(mailroom.last_id().await?, FRESHNESS_TIMEOUT).await {
            return Ok(false);
        }
        Ok(self.queue.wait_until_indexed(deadline.saturating_duration_since(Instant::now())).await)
    }

    async fn acquire_permit(&self) -> Result<SearchPermit, SearchError> {
        let permit =
            timeout(QUEUE_TIMEOUT, self.permits.clone().acquire_owned()).await.map_err(|_| SearchError::Busy)?;
        let permit = permit.map_err(|error| SearchError::Unavailable(error.to_string()))?;
        Ok(SearchPermit { permit: Arc::new(permit), caller: Arc::new(()) })
    }

    /// Asks the index, away from the network threads.
    async fn query_index(&self, question: SearchRequest, turn: &SearchPermit) -> Result<Matches, SearchError> {
        let index = self.index_file.clone();
        let work = move |asker| {
            let SearchRequest { query, mailbox, is_permitted, before, limit } = question;
            index.find(&IndexQuery {
                query: &query,
                mailbox: mailbox.as_ref(),
                is_permitted: &*is_permitted,
                before: before.unwrap_or(MessageId::MAX),
                limit,
                deadline: Instant::now() + INDEX_TIMEOUT,
                caller: asker,
            })
        };
        match turn.run_blocking(work).await? {
            None => Err(SearchError::Unavailable("it is being opened".to_owned())),
            Some(Ok(found)) => Ok(found),
            Some(Err(error)) if index::is_interruption(&error) => Err(SearchError::Timeout),
            Some(Err(error)) => {
                if index::is_damage(&error) {
                    self.queue.request_resync(Resync::Rebuild);
                }
                Err(SearchError::Unavailable(error.to_string()))
            }
        }
    }
}

impl Observer for Search {
    fn message_stored(&self, summary: &Summary) {
        self.queue.push(|| IndexEvent::Stored(summary.mailbox.clone(), summary.id));
    }

    fn message_deleted(&self, summary: &Summary) {
        self.queue.push(|| IndexEvent::Deleted(summary.id));
    }

    fn seen_changed(&self, _: &MailboxName, id: MessageId, seen: bool) {
        self.queue.push(|| IndexEvent::SeenChanged(id, seen));
    }

    fn events_missed(&self) {
        self.queue.request_resync(Resync::Everything);
    }
}

/// Without a goodbye the librarian leaves as soon as it can.
impl Drop for Search {
    fn drop(&mut self) {
        self.queue.close();
        self.queue.abandon();
    }
}

/// The right to work on a question.
struct SearchPermit {
    permit: Arc<OwnedSemaphorePermit>,
    /// Goes when nobody waits for the answer any longer.
    caller: Arc<()>,
}

impl SearchPermit {
    /// Does something away from the network threads. The permit goes with the work, which does not end by itself when nobody
    /// waits for it any more; by what it is given it can find out.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(Weak<()>) -> T + Send + 'static,
    ) -> Result<T, SearchError> {
        let (permit, asker) = (self.permit.clone(), Arc::downgrade(&self.caller));
        let work = move || {
            let _permit = permit;
            work(asker)
        };
        spawn_blocking(work).await.map_err(|error| SearchError::Unavailable(error.to_string()))
    }
}

/// The snippets of messages; empty where a message is gone, or where it would take too much.
async fn make_snippets(
    mailroom: &Mailroom,
    summaries: &[Summary],
    query: Query,
    turn: &SearchPermit,
) -> Result<Vec<Vec<SnippetPart>>, SearchError> {
    let (mut sources, mut room) = (Vec::with_capacity(summaries.len()), MAX_SNIPPET_SOURCE_BYTES);
    for summary in summaries {
        let Some(rest) = room.checked_sub(summary.size) else {
            sources.push(None);
            continue;
        };
        room = rest;
        sources.push(mailroom.source(&summary.mailbox, summary.id).await?);
    }
    let work = move |asker: Weak<()>| {
        let (shown, deadline) = (query.highlight_phrases(), Instant::now() + SNIPPETS_TIMEOUT);
        let has_time = || Instant::now() < deadline && asker.strong_count() > 0;
        let made = sources.into_iter().map(|source| match source {
            Some(source) if has_time() => snippet(&Mime::parse(source.to_bytes()).text(), &shown),
            _ => Vec::new(),
        });
        made.collect()
    };
    turn.run_blocking(work).await
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use restante_mailroom::Settings;
    use restante_mailroom::hooks::Extensions;
    use restante_store::Limits;
    use restante_store::memory::MemoryStore;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn who_has_to_wait_too_long_is_told_and_who_left_is_not_waited_for() {
        let search = Search::new(None);
        let store = Arc::new(MemoryStore::new(Limits::default()));
        let mailroom = Arc::new(Mailroom::new(Settings::default(), store, Extensions::default()));
        search.start(&mailroom);
        let question = || SearchRequest {
            query: Query::parse("", Timestamp::now()).unwrap(),
            mailbox: None,
            is_permitted: Box::new(|_| true),
            before: None,
            limit: 1,
        };
        let at_once = search.permits.available_permits();
        let mut turns = Vec::new();
        for _ in 0..at_once {
            turns.push(search.acquire_permit().await.unwrap());
        }
        let refused = search.find(&mailroom, question()).await;
        assert!(matches!(refused, Err(SearchError::Busy)), "{refused:?}");

        // Work for somebody who leaves goes on until it looks.
        let (begun, told) = std::sync::mpsc::channel();
        let turn = turns.pop().unwrap();
        let leaving = tokio::spawn(async move {
            let work = move |asker: Weak<()>| {
                begun.send(()).unwrap();
                while asker.strong_count() > 0 {
                    std::thread::sleep(Duration::from_millis(5));
                }
            };
            turn.run_blocking(work).await
        });
        spawn_blocking(move || told.recv().unwrap()).await.unwrap();
        assert_eq!(search.permits.available_permits(), 0);
        leaving.abort();
        let answer = search.find(&mailroom, question()).await;
        assert!(answer.is_ok(), "{answer:?}");
    }
}
