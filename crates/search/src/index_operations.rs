//! What the librarian and whoever compares index and store have in common: reading from the store, writing into the index, and what
//! can go wrong with either. What is read and written when is not decided here.

use std::sync::{Arc, Weak};

use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::mime::Mime;
use restante_mail::naming::MailboxName;
use restante_mailroom::{Mailroom, MessageSelector, StoreError};
use rusqlite::Error;
use tokio::runtime::Handle;

use crate::index::{Changes, Entry, Index, is_damage};
use crate::index_file::IndexFile;

/// How many bytes of texts are written at once.
const BATCH_BYTES: usize = 4 << 20;

/// See the file's documentation.
pub(crate) struct IndexOperations {
    pub(crate) index_file: Arc<IndexFile>,
    /// Those who ask the mailroom hold it for the moment only, so that it can go when the server ends.
    mailroom: Weak<Mailroom>,
    runtime: Handle,
    /// Whether a message could not be read, so that the index is not all that it should be.
    pub(crate) has_gap: bool,
}

/// Why something could not be done.
pub(crate) enum IndexingError {
    /// The index.
    Index(Error),
    /// The store.
    Store(StoreError),
    /// The shelf is empty: the index could not be opened or made again the last time.
    NoIndex,
    /// The disk is as good as full.
    DiskFull,
    /// The server ends, and there is no mailroom any more.
    ShutDown,
}

impl IndexingError {
    /// Whether the index makes no sense.
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
    /// Between a shelf and a mailroom, which is asked within a runtime.
    pub(crate) fn new(shelf: Arc<IndexFile>, mailroom: Weak<Mailroom>, runtime: Handle) -> Self {
        Self { index_file: shelf, mailroom, runtime, has_gap: false }
    }

    /// Puts messages into the index that it does not have.
    pub(crate) fn add_all(&mut self, summaries: Vec<Summary>) -> Result<(), IndexingError> {
        let (mut added, mut bytes) = (Vec::new(), 0);
        for summary in summaries {
            self.add_to_batch(summary, &mut added, &mut bytes)?;
        }
        self.write(Changes { added, ..Changes::default() })
    }

    /// Adds a message to those that are written next, and writes them when they are many.
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

    /// Changes the index.
    pub(crate) fn write(&self, changes: Changes) -> Result<(), IndexingError> {
        if changes.is_empty() {
            return Ok(());
        }
        if !self.index_file.has_disk_space() {
            return Err(IndexingError::DiskFull);
        }
        self.with_index(|index| index.write(changes))
    }

    /// Does something with the index.
    pub(crate) fn with_index<T>(
        &self,
        work: impl FnOnce(&mut Index) -> rusqlite::Result<T>,
    ) -> Result<T, IndexingError> {
        Ok(self.index_file.with_index(work).ok_or(IndexingError::NoIndex)??)
    }

    /// Asks the mailroom something.
    pub(crate) fn with_mailroom<T>(
        &self,
        question: impl AsyncFnOnce(&Mailroom) -> Result<T, StoreError>,
    ) -> Result<T, IndexingError> {
        let mailroom = self.mailroom.upgrade().ok_or(IndexingError::ShutDown)?;
        Ok(self.runtime.block_on(question(&mailroom))?)
    }

    /// Whether others change the store as well.
    pub(crate) fn is_shared(&self) -> bool {
        self.mailroom.upgrade().is_some_and(|mailroom| mailroom.is_shared())
    }

    /// A message's summary as it is now, if it is still there.
    pub(crate) fn find(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Summary>, IndexingError> {
        self.with_mailroom(async |mailroom| mailroom.find(mailbox, MessageSelector::Id(id)).await)
    }

    /// A message's source, if it is still there. One that cannot be read is left out.
    fn source(&mut self, summary: &Summary) -> Result<Option<Source>, IndexingError> {
        match self.with_mailroom(async |mailroom| mailroom.source(&summary.mailbox, summary.id).await) {
            Err(IndexingError::Store(error @ StoreError::Broken(_))) => {
                tracing::warn!(%error, mailbox = %summary.mailbox, id = %summary.id, "a message cannot be searched");
                self.has_gap = true;
                Ok(None)
            }
            source => source,
        }
    }
}
