//! The public interface of the search: start, events from the mailroom, requests, and shutdown.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::mime::Mime;
use restante_mail::naming::MailboxName;
use restante_mailroom::events::MarkChange;
use restante_mailroom::hooks::Observer;
use restante_mailroom::store_error_log::StoreErrorLog;
use restante_mailroom::{Mailroom, MessageSelector, StoreError};
use restante_worker::Worker;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::excerpt::{ExcerptPart, excerpt};
use crate::index::{self, Index, IndexQuery, Matches};
use crate::index_file::IndexFile;
use crate::index_operations::IndexOperations;
use crate::index_queue::{IndexEvent, IndexQueue, Resync};
use crate::indexer::Indexer;
use crate::query::Query;
use crate::request::{FoundIds, Hit, SearchError, SearchRequest, SearchResults};

/// How long a request waits until messages stored before it are in the index.
const FRESHNESS_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a request waits until the index is open. A busy disk can delay its creation.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit of a query of the index.
const INDEX_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a request waits for a permit.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit for the excerpts of one request. Messages that are not reached in time have none.
const EXCERPTS_TIMEOUT: Duration = Duration::from_secs(2);
/// The time limit of a whole request, including the queries of the store.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of concurrent searches, on any number of cores.
const MAX_CONCURRENT_SEARCHES: usize = 4;
/// The maximum number of message bytes that are read for the excerpts of one request.
const MAX_EXCERPT_SOURCE_BYTES: u64 = 16 << 20;

/// Searches the messages of a mailroom. See the crate documentation.
pub struct Search {
    queue: Arc<IndexQueue>,
    index_file: Arc<IndexFile>,
    permits: Arc<Semaphore>,
    indexer: Mutex<IndexerState>,
    unreadable: Arc<StoreErrorLog>,
}

/// What is needed to start the indexer, and its thread afterwards.
#[derive(Default)]
struct IndexerState {
    mailroom: Weak<Mailroom>,
    runtime: Option<Handle>,
    worker: Option<Worker>,
    has_started: bool,
}

/// The size of the index and of its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of messages in the index.
    pub indexed: u64,
    /// The number of changes that are not yet in the index.
    pub waiting: u64,
}

impl Search {
    /// Creates a search with an index in a data directory, or in memory. Nothing is opened before [`Search::start`].
    pub fn new(directory: Option<PathBuf>) -> Self {
        let permit_count = available_parallelism().map_or(1, usize::from).clamp(2, MAX_CONCURRENT_SEARCHES);
        Self {
            queue: Arc::default(),
            index_file: Arc::new(IndexFile::new(directory)),
            permits: Arc::new(Semaphore::new(permit_count)),
            indexer: Mutex::default(),
            unreadable: Arc::default(),
        }
    }

    /// Deletes the index of a data directory. An index that is not updated would become wrong.
    pub fn delete_index(directory: &Path) {
        Index::delete_files(directory);
    }

    /// Connects the search to its mailroom. Call it once, within a runtime, before messages arrive. An index in a data
    /// directory is filled from now on, one in memory from the first request on.
    pub fn start(&self, mailroom: &Arc<Mailroom>) {
        {
            let mut state = self.indexer.lock();
            state.mailroom = Arc::downgrade(mailroom);
            state.runtime = Some(Handle::current());
        }
        if self.index_file.is_persistent() {
            self.start_indexer();
        }
    }

    /// Runs a search. Dropping the future cancels it and releases its permit.
    pub async fn find(&self, mailroom: &Mailroom, request: SearchRequest) -> Result<SearchResults, SearchError> {
        self.start_indexer();
        timeout(REQUEST_TIMEOUT, self.find_inner(mailroom, request)).await.unwrap_or(Err(SearchError::Timeout))
    }

    /// Runs a search that returns only the ids of copies. They are not checked against the store, so some of them may have
    /// been deleted. Dropping the future cancels it and releases its permit.
    pub async fn find_ids(&self, mailroom: &Mailroom, request: SearchRequest) -> Result<FoundIds, SearchError> {
        self.start_indexer();
        let find = async {
            let is_complete = self.wait_until_ready(mailroom).await?;
            let (Matches { messages, next }, _) = self.query_index(request, &self.acquire_permit().await?).await?;
            Ok(FoundIds { ids: messages.into_iter().map(|found| found.id).collect(), next, is_complete })
        };
        timeout(REQUEST_TIMEOUT, find).await.unwrap_or(Err(SearchError::Timeout))
    }

    /// Returns the size of the index and of its queue.
    pub fn counts(&self) -> Counts {
        Counts { indexed: self.index_file.count(), waiting: self.queue.pending() as u64 }
    }

    /// Stops the indexer. Queued events are applied until `timeout` has passed; the next start adds the rest. If
    /// `is_clean` is false, further changes may follow, so the next start compares the whole index. Blocks.
    pub fn shut_down(&self, timeout: Duration, is_clean: bool) {
        self.queue.inbox.close();
        if !is_clean {
            self.queue.inbox.stop();
        }
        let worker = self.indexer.lock().worker.take();
        let Some(worker) = worker else { return };
        let has_ended = worker.wait_until(Instant::now() + timeout);
        self.queue.inbox.stop();
        if has_ended {
            // If the thread has panicked, that was logged then.
            let _ = worker.join();
        } else {
            tracing::info!("the search index is incomplete, the next start adds the missing messages");
        }
    }

    /// Starts the indexing thread, unless it was started before.
    fn start_indexer(&self) {
        let mut state = self.indexer.lock();
        let Some(runtime) = state.runtime.clone().filter(|_| !state.has_started) else { return };
        state.has_started = true;
        // From now on changes cause events. Earlier ones are found by a comparison with the store.
        self.queue.open();
        let operations = IndexOperations::new(self.index_file.clone(), state.mailroom.clone(), runtime);
        let indexer = Indexer::new(self.queue.clone(), operations);
        match Worker::spawn("indexer", move || indexer.run()) {
            Ok(worker) => state.worker = Some(worker),
            Err(error) => tracing::error!(%error, "cannot start the indexing thread, search is not available"),
        }
    }

    async fn find_inner(&self, mailroom: &Mailroom, request: SearchRequest) -> Result<SearchResults, SearchError> {
        let is_complete = self.wait_until_ready(mailroom).await?;
        let permit = self.acquire_permit().await?;
        let query = request.query.clone();
        let (matches, mut known) = self.query_index(request, &permit).await?;
        let next = matches.next;
        let mut summaries = Vec::with_capacity(matches.messages.len());
        for found in matches.messages {
            // The store is the source of truth.
            let summary = match known.remove(&found.id) {
                Some(summary) => Some(summary),
                None => mailroom.find(&found.mailbox, MessageSelector::Id(found.id)).await?,
            };
            if summary.as_ref().is_none_or(|summary| !found.agrees_with(summary)) {
                self.queue.push(|| IndexEvent::Recheck(found.mailbox, found.id));
            }
            summaries.extend(summary.filter(|summary| query.may_match(summary)));
        }
        let excerpts = make_excerpts(mailroom, &summaries, query, &permit, &self.unreadable).await?;
        let hits = summaries.into_iter().zip(excerpts).map(|(summary, excerpt)| Hit { summary, excerpt });
        Ok(SearchResults { hits: hits.collect(), next, is_complete })
    }

    /// Waits until the index is open and contains the messages stored before. Returns false if they take too long.
    async fn wait_until_ready(&self, mailroom: &Mailroom) -> Result<bool, SearchError> {
        let is_complete = self.wait_until_fresh(mailroom).await?;
        let opened = timeout(OPEN_TIMEOUT, self.index_file.wait_until_open()).await;
        opened.map_err(|_| SearchError::Unavailable("it is still being opened".to_owned()))?;
        Ok(is_complete)
    }

    /// Waits until messages stored before are in the index. Returns false if that takes too long.
    async fn wait_until_fresh(&self, mailroom: &Mailroom) -> Result<bool, SearchError> {
        let deadline = Instant::now() + FRESHNESS_TIMEOUT;
        // Events of a shared store arrive with a delay, also those of this server.
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

    /// Queries the index on a blocking thread. Also returns the summaries that were read for it.
    async fn query_index(
        &self,
        request: SearchRequest,
        permit: &SearchPermit,
    ) -> Result<(Matches, HashMap<MessageId, Summary>), SearchError> {
        let index = self.index_file.clone();
        let mailroom = self.indexer.lock().mailroom.clone();
        let (runtime, unreadable) = (Handle::current(), self.unreadable.clone());
        let work = move |caller| {
            let SearchRequest { query, mailbox, is_permitted, before, limit, one_per_message } = request;
            let (store_error, known) = (RefCell::new(None), RefCell::new(HashMap::new()));
            // A copy that does not match any more says nothing about the other copies.
            let message_of = |mailbox: &MailboxName, id| {
                let found = runtime.block_on(mailroom.upgrade()?.find(mailbox, MessageSelector::Id(id)));
                let summary = found.map_err(|error| store_error.replace(Some(error))).ok().flatten()?;
                let message = query.may_match(&summary).then_some(summary.message);
                known.borrow_mut().insert(id, summary);
                message
            };
            let matches_message = |mailbox: &MailboxName, id| {
                let mailroom = mailroom.upgrade()?;
                let result = runtime.block_on(matches_message(&mailroom, &query, mailbox, id, &unreadable));
                result.map_err(|error| store_error.replace(Some(error))).ok()
            };
            let matches = index.find(&IndexQuery {
                query: &query,
                mailbox: mailbox.as_ref(),
                is_permitted: &*is_permitted,
                before: before.unwrap_or(MessageId::MAX),
                limit,
                matches_message: &matches_message,
                message_of: one_per_message.then_some(&message_of),
                deadline: Instant::now() + INDEX_TIMEOUT,
                caller,
            });
            store_error.take().map_or(Ok((matches, known.into_inner())), Err)
        };
        let (matches, known) = permit.run_blocking(work).await??;
        match matches {
            None => Err(SearchError::Unavailable("it is being rebuilt".to_owned())),
            Some(Ok(matches)) => Ok((matches, known)),
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

/// Returns true if a stored message matches a query.
async fn matches_message(
    mailroom: &Mailroom,
    query: &Query,
    mailbox: &MailboxName,
    id: MessageId,
    unreadable: &StoreErrorLog,
) -> Result<bool, StoreError> {
    let Some(summary) = mailroom.find(mailbox, MessageSelector::Id(id)).await? else { return Ok(false) };
    if !query.needs_source() {
        return Ok(query.matches(&summary, None));
    }
    let Some(source) = read_source(mailroom, mailbox, id, unreadable).await? else { return Ok(false) };
    Ok(query.matches(&summary, Some(&Mime::parse(source.to_bytes()))))
}

/// Reads the source of a message. Returns `None` if the message was deleted, or is damaged, which is logged.
async fn read_source(
    mailroom: &Mailroom,
    mailbox: &MailboxName,
    id: MessageId,
    unreadable: &StoreErrorLog,
) -> Result<Option<Source>, StoreError> {
    let result = mailroom.source(mailbox, id).await;
    if let Err(error @ StoreError::Broken(_)) = &result {
        unreadable.log(&format!("cannot search the content of message {id} in mailbox {mailbox}"), None, error);
        return Ok(None);
    }
    result
}

impl Observer for Search {
    fn message_stored(&self, summary: &Summary) {
        self.queue.push(|| IndexEvent::Stored(summary.clone(), None));
    }

    fn message_stored_with_body(&self, summary: &Summary, body: &Bytes) {
        self.queue.push(|| IndexEvent::Stored(summary.clone(), Some(body.clone())));
    }

    fn message_deleted(&self, summary: &Summary) {
        self.queue.push(|| IndexEvent::Deleted(summary.id));
    }

    fn mark_changed(&self, change: &MarkChange) {
        // The index does not contain the flags.
        if change.changed.seen || change.changed.tags {
            self.queue.push(|| IndexEvent::MarkChanged(change.id, change.marks.clone()));
        }
    }

    fn events_missed(&self) {
        self.queue.request_resync(Resync::Everything);
    }
}

/// Without [`Search::shut_down`] the indexer stops as soon as it can.
impl Drop for Search {
    fn drop(&mut self) {
        self.queue.inbox.close();
        self.queue.inbox.stop();
    }
}

/// The permit to run one search.
struct SearchPermit {
    permit: Arc<OwnedSemaphorePermit>,
    /// Dropped when the caller no longer waits for the result.
    caller: Arc<()>,
}

impl SearchPermit {
    /// Runs `work` on a blocking thread. The work keeps the permit until it ends, even if the caller is gone. It can
    /// check its argument to find that out.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(Weak<()>) -> T + Send + 'static,
    ) -> Result<T, SearchError> {
        let (permit, caller) = (self.permit.clone(), Arc::downgrade(&self.caller));
        // Boxed, so that the task is compiled once for each type of result.
        let work: Box<dyn FnOnce() -> T + Send> = Box::new(move || {
            let _permit = permit;
            work(caller)
        });
        spawn_blocking(work).await.map_err(|error| SearchError::Unavailable(error.to_string()))
    }
}

/// Builds the excerpts of messages. An excerpt is empty if the message was deleted or is damaged, or if a limit was reached.
async fn make_excerpts(
    mailroom: &Mailroom,
    summaries: &[Summary],
    query: Query,
    permit: &SearchPermit,
    unreadable: &StoreErrorLog,
) -> Result<Vec<Vec<ExcerptPart>>, SearchError> {
    let (mut sources, mut bytes_left) = (Vec::with_capacity(summaries.len()), MAX_EXCERPT_SOURCE_BYTES);
    for summary in summaries {
        let Some(remaining) = bytes_left.checked_sub(summary.size) else {
            sources.push(None);
            continue;
        };
        bytes_left = remaining;
        sources.push(read_source(mailroom, &summary.mailbox, summary.id, unreadable).await?);
    }
    let work = move |caller: Weak<()>| {
        let (phrases, deadline) = (query.highlight_phrases(), Instant::now() + EXCERPTS_TIMEOUT);
        let has_time = || Instant::now() < deadline && caller.strong_count() > 0;
        let excerpts = sources.into_iter().map(|source| match source {
            Some(source) if has_time() => excerpt(&Mime::parse(source.to_bytes()).text(), &phrases),
            _ => Vec::new(),
        });
        excerpts.collect()
    };
    permit.run_blocking(work).await
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use restante_mailroom::Settings;
    use restante_mailroom::hooks::Extensions;
    use restante_store::Limits;
    use restante_store::memory::MemoryStore;

    use super::*;

    fn mailroom() -> Arc<Mailroom> {
        let store = Arc::new(MemoryStore::new(Limits::default()));
        Arc::new(Mailroom::new(Settings::default(), store, Extensions::default()))
    }

    fn request() -> SearchRequest {
        SearchRequest {
            query: Query::parse("", Timestamp::now()).unwrap(),
            mailbox: None,
            is_permitted: Box::new(|_| true),
            before: None,
            limit: 1,
            one_per_message: false,
        }
    }

    /// On a busy machine, opening the index takes longer than the wait for new messages.
    #[tokio::test(start_paused = true)]
    async fn search_waits_until_the_index_is_open() {
        // The indexer is not started.
        let (search, mailroom) = (Search::new(None), mailroom());
        let open_index = async {
            tokio::time::sleep(FRESHNESS_TIMEOUT + Duration::from_secs(1)).await;
            search.index_file.open().unwrap();
        };
        let (results, ()) = tokio::join!(search.find(&mailroom, request()), open_index);
        assert!(results.as_ref().is_ok_and(|results| !results.is_complete), "{results:?}");

        search.index_file.take_index();
        let refused = search.find(&mailroom, request()).await;
        assert!(matches!(refused, Err(SearchError::Unavailable(_))), "{refused:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn limits_concurrent_searches_and_cancels_dropped_ones() {
        let (search, mailroom) = (Search::new(None), mailroom());
        search.start(&mailroom);
        let permit_count = search.permits.available_permits();
        let mut permits = Vec::new();
        for _ in 0..permit_count {
            permits.push(search.acquire_permit().await.unwrap());
        }
        let refused = search.find(&mailroom, request()).await;
        assert!(matches!(refused, Err(SearchError::Busy)), "{refused:?}");

        // Work of a caller that is gone runs until it checks for that.
        let (started_sender, started) = std::sync::mpsc::channel();
        let permit = permits.pop().unwrap();
        let dropped = tokio::spawn(async move {
            let work = move |caller: Weak<()>| {
                started_sender.send(()).unwrap();
                while caller.strong_count() > 0 {
                    std::thread::sleep(Duration::from_millis(5));
                }
            };
            permit.run_blocking(work).await
        });
        spawn_blocking(move || started.recv().unwrap()).await.unwrap();
        assert_eq!(search.permits.available_permits(), 0);
        dropped.abort();
        let results = search.find(&mailroom, request()).await;
        assert!(results.is_ok(), "{results:?}");
    }
}
