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
/// Threads for queries. They are started when they are needed. They are not those of the runtime, which would start many
/// more, each with an arena of the allocator.
pub(super) struct ReaderPool {
    connections: Arc<Connections>,
    threads: Mutex<ReaderThreads>,
}

/// The connections of the threads.
struct Connections {
    database: PathBuf,
    cache_bytes: usize,
    /// The connections that are not in use. The last one is used first, because its page cache is the most current.
    /// `None` if the pool is closed.
    idle: Mutex<Option<Vec<Connection>>>,
    /// Locked for reading by every query. [`ReaderPool::pause`] locks it for writing.
    pause_lock: RwLock<()>,
}

/// A query to be run by a thread.
type QueuedQuery = Box<dyn FnOnce() + Send>;

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
        let idle = Mutex::new(Some(Vec::new()));
        Self {
            connections: Arc::new(Connections { database, cache_bytes, idle, pause_lock: RwLock::default() }),
            threads: Mutex::new(ReaderThreads { queries: Some(sender), queue, workers: Vec::new() }),
        }
    }

    /// Runs a query on a thread that may block. Once started, it runs to its end, even if its caller was cancelled.
    pub(super) async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, result) = oneshot::channel();
        let connections = self.connections.clone();
        self.threads.lock().push(Box::new(move || {
            // If the query panics, the caller finds that there is no reply.
            if !reply.is_closed() {
                let _ = reply.send(connections.run(query));
            }
        }))?;
        result.await.unwrap_or_else(|_| Err(StoreError::Broken("a query panicked".to_owned())))
    }

    /// Waits for the current queries, and holds back new ones until the returned guard is dropped.
    pub(super) fn pause(&self) -> RwLockWriteGuard<'_, ()> {
        self.connections.pause_lock.write()
    }

    /// Refuses further queries, and waits until the connections are closed or the deadline passes.
    pub(super) fn close(&self, deadline: Instant) {
        let workers = {
            let mut threads = self.threads.lock();
            threads.queries = None;
            std::mem::take(&mut threads.workers)
        };
        self.connections.idle.lock().take();
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
    loop {
        let next = queue.receiver.lock().recv();
        let Ok(query) = next else { return };
        // A panic is logged by its hook, and drops the connection.
        let _ = catch_unwind(AssertUnwindSafe(query));
        queue.unfinished.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connections {
    /// Runs a query on an idle connection, or on a new one.
    fn run<T>(&self, query: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let _reading = self.pause_lock.read();
        let idle = self.idle.lock().as_mut().and_then(Vec::pop);
        let connection = match idle {
            Some(connection) => connection,
            None => schema::open_reader(&self.database, self.cache_bytes)?,
        };
        let result = query(&connection);
        // After an error, the state of the connection is not known.
        if result.is_ok()
            && let Some(idle) = self.idle.lock().as_mut()
        {
            idle.push(connection);
        }
        result
    }
}
