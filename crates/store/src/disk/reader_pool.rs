//! The threads of queries. They have separate connections, may block on the disk, and never delay the writer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use restante_worker::Worker;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::schema;
use crate::{Result, StoreError};

/// The number of threads, and so of queries that run at the same time. More would not make a disk faster.
const MAX_READERS: usize = 4;
/// Threads for queries, each with a connection. They are started when they are needed. They are not those of the runtime,
/// which would start many more, each with an arena of the allocator.
pub(super) struct ReaderPool {
    connector: Arc<Connector>,
    threads: Mutex<ReaderThreads>,
}

/// What the threads need to open connections.
struct Connector {
    database: PathBuf,
    cache_bytes: usize,
    /// Locked for reading by every query. [`ReaderPool::pause`] locks it for writing.
    pause_lock: RwLock<()>,
}

/// A query to be run by a thread, which passes its connection.
type QueuedQuery = Box<dyn FnOnce(&mut Option<Connection>) + Send>;

struct ReaderThreads {
    /// `None` if the pool is closed.
    queries: Option<Sender<QueuedQuery>>,
    queue: Arc<QueryQueue>,
    workers: Vec<Worker>,
}

/// The queue that the threads share.
struct QueryQueue {
    receiver: Mutex<Receiver<QueuedQuery>>,
    /// The number of queries that wait or run.
    unfinished: AtomicUsize,
}

impl ReaderPool {
    pub(super) fn new(database: PathBuf, cache_bytes: usize) -> Self {
        let cache_bytes = cache_bytes / MAX_READERS;
        let (sender, receiver) = channel();
        let queue = Arc::new(QueryQueue { receiver: Mutex::new(receiver), unfinished: AtomicUsize::new(0) });
        Self {
            connector: Arc::new(Connector { database, cache_bytes, pause_lock: RwLock::default() }),
            threads: Mutex::new(ReaderThreads { queries: Some(sender), queue, workers: Vec::new() }),
        }
    }

    /// Runs a query on a thread that may block. Once started, it runs to its end, even if its caller was cancelled.
    pub(super) async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, result) = oneshot::channel();
        let connector = self.connector.clone();
        self.threads.lock().push(Box::new(move |connection| {
            // If the query panics, the caller finds that there is no reply.
            if !reply.is_closed() {
                let _ = reply.send(connector.run(connection, query));
            }
        }))?;
        result.await.unwrap_or_else(|_| Err(StoreError::Broken("a query panicked".to_owned())))
    }

    /// Waits for the current queries, and holds back new ones until the returned guard is dropped.
    pub(super) fn pause(&self) -> RwLockWriteGuard<'_, ()> {
        self.connector.pause_lock.write()
    }

    /// Refuses further queries, and waits until the connections are closed or the deadline passes.
    pub(super) fn close(&self, deadline: Instant) {
        let workers = {
            let mut threads = self.threads.lock();
            threads.queries = None;
            std::mem::take(&mut threads.workers)
        };
        for worker in workers {
            worker.wait_until(deadline);
        }
    }
}

impl ReaderThreads {
    /// Adds a query to the queue. Starts a thread for it if the others are busy and there are few.
    fn push(&mut self, query: QueuedQuery) -> Result<()> {
        let Some(queries) = &self.queries else {
            return Err(StoreError::Unavailable("the store is closed".to_owned()));
        };
        let unfinished = self.queue.unfinished.load(Ordering::Relaxed);
        if unfinished >= self.workers.len() && self.workers.len() < MAX_READERS {
            let queue = self.queue.clone();
            match Worker::spawn("reader", move || run_queries(&queue)) {
                Ok(worker) => self.workers.push(worker),
                Err(error) if self.workers.is_empty() => {
                    return Err(StoreError::Unavailable(format!("cannot start a thread: {error}")));
                }
                // The others run the query.
                Err(_) => {}
            }
        }
        self.queue.unfinished.fetch_add(1, Ordering::Relaxed);
        queries.send(query).map_err(|_| StoreError::Unavailable("the store is closed".to_owned()))
    }
}

/// Runs queries until the pool is closed.
fn run_queries(queue: &QueryQueue) {
    let mut connection = None;
    loop {
        let next = queue.receiver.lock().recv();
        let Ok(query) = next else { return };
        if catch_unwind(AssertUnwindSafe(|| query(&mut connection))).is_err() {
            connection = None;
        }
        queue.unfinished.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connector {
    /// Runs a query, and opens a connection if there is none.
    fn run<T>(&self, connection: &mut Option<Connection>, query: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let _reading = self.pause_lock.read();
        let opened = match connection.take() {
            Some(opened) => opened,
            None => schema::open_reader(&self.database, self.cache_bytes)?,
        };
        let result = query(&opened);
        // After an error, the state of the connection is not known.
        *connection = Some(opened).filter(|_| result.is_ok());
        result
    }
}
