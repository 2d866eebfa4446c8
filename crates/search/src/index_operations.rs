//! Reads messages from the store and writes them to the index, for the indexer and for `catch_up`. They decide what is
//! read and written, and when.

use std::sync::{Arc, Weak};

use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::mime::Mime;
use restante_mail::naming::MailboxName;
use restante_mailroom::{Mailroom, MessageSelector, StoreError};
use rusqlite::Error;
use tokio::runtime::Handle;

use crate::index::{Changes, Entry, Index, is_damage};
use crate::index_file::IndexFile;

/// The number of bytes of text that are written in one transaction.
const BATCH_BYTES: usize = 4 << 20;

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
pub(crate) enum IndexingError {
    /// The index failed.
    Index(Error),
    /// The store failed.
    Store(StoreError),
    /// The index is not open: the last attempt to open or rebuild it failed.
    NoIndex,
    /// The disk is almost full.
    DiskFull,
    /// The server is shutting down, and the mailroom no longer exists.
    ShutDown,
}

impl IndexingError {
    /// Returns true if the index file is damaged.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Index(error) if is_damage(error))
    }
}

impl From<Error> for IndexingError {
    fn from(error: Error) -> Self {
        Self::Index(error)
    }
}

impl From<StoreError> for IndexingError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl IndexOperations {
    /// Creates the operations for an index and a mailroom. `runtime` runs the futures of the mailroom.
    pub(crate) fn new(index_file: Arc<IndexFile>, mailroom: Weak<Mailroom>, runtime: Handle) -> Self {
        Self { index_file, mailroom, runtime, has_gap: false }
    }

    /// Adds messages that are not in the index.
    pub(crate) fn add_all(&mut self, summaries: Vec<Summary>) -> Result<(), IndexingError> {
        let (mut added, mut bytes) = (Vec::new(), 0);
        for summary in summaries {
            self.add_to_batch(summary, &mut added, &mut bytes)?;
        }
        self.write(Changes { added, ..Changes::default() })
    }

    /// Adds a message to the current batch, and writes the batch if it is large enough.
    pub(crate) fn add_to_batch(
        &mut self,
        summary: Summary,
        added: &mut Vec<Entry>,
        bytes: &mut usize,
    ) -> Result<(), IndexingError> {
        let Some(source) = self.source(&summary)? else { return Ok(()) };
        let entry = Entry::new(summary, &Mime::parse(source.to_bytes()));
        *bytes += entry.bytes();
        added.push(entry);
        if *bytes > BATCH_BYTES {
            *bytes = 0;
            self.write(Changes { added: std::mem::take(added), ..Changes::default() })?;
        }
        Ok(())
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

    /// Runs a query of the mailroom and blocks until it is done.
    pub(crate) fn with_mailroom<T>(
        &self,
        query: impl AsyncFnOnce(&Mailroom) -> Result<T, StoreError>,
    ) -> Result<T, IndexingError> {
        let mailroom = self.mailroom.upgrade().ok_or(IndexingError::ShutDown)?;
        Ok(self.runtime.block_on(query(&mailroom))?)
    }

    /// Returns true if other servers change the store too.
    pub(crate) fn is_shared(&self) -> bool {
        self.mailroom.upgrade().is_some_and(|mailroom| mailroom.is_shared())
    }

    /// Returns the current summary of a message, or `None` if it was deleted.
    pub(crate) fn find(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Summary>, IndexingError> {
        self.with_mailroom(async |mailroom| mailroom.find(mailbox, MessageSelector::Id(id)).await)
    }

    /// Returns the source of a message, or `None` if it was deleted. A message that cannot be read is logged and
    /// skipped.
    fn source(&mut self, summary: &Summary) -> Result<Option<Source>, IndexingError> {
        match self.with_mailroom(async |mailroom| mailroom.source(&summary.mailbox, summary.id).await) {
            Err(IndexingError::Store(error @ StoreError::Broken(_))) => {
                let Summary { mailbox, id, .. } = summary;
                tracing::warn!(%error, %mailbox, %id, "cannot read a message, it is not in the search index");
                self.has_gap = true;
                Ok(None)
            }
            source => source,
        }
    }
}
