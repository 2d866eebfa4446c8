//! The outbox file, which may not be usable yet. Opening it is retried until it succeeds.

use std::path::PathBuf;

use crate::endpoint::Digest;
use crate::outbox::{Backlog, Changes, Outbox};

/// The outbox file. See the module documentation.
pub(crate) struct OutboxFile {
    directory: PathBuf,
    digests: Vec<Digest>,
    outbox: Option<Outbox>,
    /// The contents of the file when it was opened, until they are taken.
    backlog: Option<Backlog>,
}

impl OutboxFile {
    /// Opens the outbox for targets with these digests. If that fails, logs an error and retries later, because
    /// delivery of messages is more important.
    pub(crate) fn new(directory: PathBuf, digests: Vec<Digest>) -> Self {
        let mut file = Self { directory, digests, outbox: None, backlog: None };
        if let Err(error) = file.try_open() {
            tracing::error!(
                error,
                "cannot open the webhook outbox; until it can be opened, events are kept in memory only and events lost in \
                 a crash are not detected"
            );
        }
        file
    }

    /// Takes the contents that the file had when it was opened. Returns them once.
    pub(crate) fn take_backlog(&mut self) -> Option<Backlog> {
        self.backlog.take()
    }

    /// Opens the outbox if it is not open. Returns its contents if it was opened now.
    pub(crate) fn open(&mut self) -> Result<Option<Backlog>, String> {
        self.try_open()?;
        Ok(self.take_backlog())
    }

    /// Writes all changes in one transaction.
    pub(crate) fn write(&mut self, changes: &Changes) -> Result<(), String> {
        let Some(outbox) = &mut self.outbox else { return Err("the outbox is not open".to_owned()) };
        outbox.write(changes).map_err(|error| error.to_string())
    }

    /// Marks a clean shutdown and closes the file.
    pub(crate) fn close_clean(self) -> Result<(), String> {
        self.outbox.map_or(Ok(()), Outbox::close_clean).map_err(|error| error.to_string())
    }

    fn try_open(&mut self) -> Result<(), String> {
        if self.outbox.is_none() {
            let (outbox, backlog) = Outbox::open(&self.directory, &self.digests)?;
            (self.outbox, self.backlog) = (Some(outbox), Some(backlog));
        }
        Ok(())
    }
}
