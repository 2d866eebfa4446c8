//! Reads messages from the store and writes them to the index, for the indexer and for `catch_up`. They decide what is
//! read and written, and when.

use std::iter::Peekable;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures_util::future::join_all;
use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::naming::MailboxName;
use restante_mailroom::{Mailroom, MessageSelector, StoreError};
use thiserror::Error;
use tokio::runtime::Handle;

use crate::index::{Changes, Entry, Index, is_damage};
use crate::index_file::IndexFile;

/// The number of bytes of messages that are written in one transaction.
const BATCH_BYTES: usize = 2 << 20;
/// The maximum number of messages that are read at the same time, and of their bytes. A larger message is read alone.
const MAX_CONCURRENT_READS: usize = 8;
const MAX_READ_BYTES: u64 = 1 << 20;

/// A message in the store, with its body if it is in memory.
pub(crate) type StoredMessage = (Summary, Option<Bytes>);

/// Access to the index and to the mailroom.
pub(crate) struct IndexOperations {
    pub(crate) index_file: Arc<IndexFile>,
    /// Weak, so that the mailroom can be dropped at shutdown. It is upgraded only during a call.
    mailroom: Weak<Mailroom>,
    runtime: Handle,
    /// True if a message could not be read, so that the index is incomplete.
    pub(crate) has_gap: bool,
}

/// An error while updating the index.
#[derive(Debug, Error)]
pub(crate) enum IndexingError {
    #[error(transparent)]
    Index(#[from] rusqlite::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The last attempt to open or rebuild the index failed.
    #[error("the index is not open")]
    NoIndex,
    #[error("too little free disk space")]
    DiskFull,
    /// The mailroom no longer exists.
    #[error("the server is shutting down")]
    ShutDown,
}

impl IndexingError {
    /// Returns true if the index file is damaged.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Index(error) if is_damage(error))
    }
}

impl IndexOperations {
    /// Creates the operations for an index and a mailroom. `runtime` runs the futures of the mailroom.
    pub(crate) fn new(index_file: Arc<IndexFile>, mailroom: Weak<Mailroom>, runtime: Handle) -> Self {
        Self { index_file, mailroom, runtime, has_gap: false }
    }

    /// Adds messages that are not in the index, together with other changes.
    pub(crate) fn add_all(&mut self, messages: Vec<StoredMessage>, changes: Changes) -> Result<(), IndexingError> {
        let (mut changes, mut bytes) = (changes, 0);
        let mut messages = messages.into_iter().peekable();
        while messages.peek().is_some() {
            let chunk = next_chunk(&mut messages);
            for entry in self.read_entries(chunk)? {
                bytes += entry.source.len();
                changes.added.push(entry);
            }
            if bytes > BATCH_BYTES {
                bytes = 0;
                self.write(Changes { added: std::mem::take(&mut changes.added), ..Changes::default() })?;
            }
        }
        self.write(changes)
    }

    /// Applies changes to the index. Fails if the disk is almost full.
    pub(crate) fn write(&self, changes: Changes) -> Result<(), IndexingError> {
        if changes.is_empty() {
            return Ok(());
        }
        if !self.index_file.has_disk_space() {
            return Err(IndexingError::DiskFull);
        }
        self.with_index(|index| index.write(changes))
    }

    /// Runs `work` on the index.
    pub(crate) fn with_index<T>(
        &self,
        work: impl FnOnce(&mut Index) -> rusqlite::Result<T>,
    ) -> Result<T, IndexingError> {
        Ok(self.index_file.with_index(work).ok_or(IndexingError::NoIndex)??)
    }

    /// Runs a query of the mailroom and blocks until it is done. It is a task of the runtime, so that threads which it
    /// starts do not inherit the low priority of this thread.
    pub(crate) fn with_mailroom<T, F>(&self, query: impl FnOnce(Arc<Mailroom>) -> F) -> Result<T, IndexingError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let mailroom = self.mailroom.upgrade().ok_or(IndexingError::ShutDown)?;
        // Boxed, so that the task is compiled once for each type of result.
        let query: Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>> = Box::pin(query(mailroom));
        let task = self.runtime.spawn(query);
        match self.runtime.block_on(task) {
            Ok(result) => Ok(result?),
            Err(error) => error.try_into_panic().map_or(Err(IndexingError::ShutDown), |panic| resume_unwind(panic)),
        }
    }

    /// Returns true if other servers change the store too.
    pub(crate) fn is_shared(&self) -> bool {
        self.mailroom.upgrade().is_some_and(|mailroom| mailroom.is_shared())
    }

    /// Returns the current summary of a message, or `None` if it was deleted.
    pub(crate) fn find(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Summary>, IndexingError> {
        let mailbox = mailbox.clone();
        self.with_mailroom(async move |mailroom| mailroom.find(&mailbox, MessageSelector::Id(id)).await)
    }

    /// Reads the sources of messages at the same time, because each read switches to another thread and back. Deleted
    /// messages are left out. A message that cannot be read is logged and left out.
    fn read_entries(&mut self, messages: Vec<StoredMessage>) -> Result<Vec<Entry>, IndexingError> {
        let mut entries = Vec::with_capacity(messages.len());
        let mut without_body = Vec::new();
        for (summary, body) in messages {
            match body {
                Some(body) => {
                    let trace = summary.details.trace(&summary.mailbox, summary.received);
                    entries.push(Entry { summary, source: Source { trace, body } });
                }
                None => without_body.push(summary),
            }
        }
        if without_body.is_empty() {
            return Ok(entries);
        }
        let results = self.with_mailroom(async move |mailroom| {
            let read = without_body.into_iter().map(|summary| {
                let mailroom = mailroom.clone();
                async move {
                    let source = mailroom.source(&summary.mailbox, summary.id).await;
                    (summary, source)
                }
            });
            Ok(join_all(read).await)
        })?;
        for (summary, result) in results {
            match result {
                Ok(source) => entries.extend(source.map(|source| Entry { summary, source })),
                Err(error @ StoreError::Broken(_)) => {
                    let Summary { mailbox, id, .. } = summary;
                    tracing::warn!(%error, %mailbox, %id, "cannot read a message, it is not in the search index");
                    self.has_gap = true;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(entries)
    }
}

/// Takes messages that are read at the same time: a few, unless they are large.
fn next_chunk(messages: &mut Peekable<impl Iterator<Item = StoredMessage>>) -> Vec<StoredMessage> {
    let (mut chunk, mut bytes) = (Vec::new(), 0_u64);
    while chunk.len() < MAX_CONCURRENT_READS
        && let Some(message) = messages.next_if(|(next, _)| chunk.is_empty() || bytes + next.size <= MAX_READ_BYTES)
    {
        bytes += message.0.size;
        chunk.push(message);
    }
    chunk
}
