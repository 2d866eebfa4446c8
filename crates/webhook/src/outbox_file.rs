//! The place of the outbox in the data directory, whether it can be opened yet or not.

use std::path::PathBuf;

use crate::endpoint::Digest;
use crate::outbox::{Backlog, Changes, Outbox};

/// See the file's documentation.
pub(crate) struct OutboxFile {
    directory: PathBuf,
    digests: Vec<Digest>,
    outbox: Option<Outbox>,
    /// What the outbox said when it was opened, until somebody asks.
    backlog: Option<Backlog>,
}

impl OutboxFile {
    /// Opens the outbox for targets with these digests, or leaves that for later. Mail is more important.
    pub(crate) fn new(directory: PathBuf, digests: Vec<Digest>) -> Self {
        let mut shelf = Self { directory, digests, outbox: None, backlog: None };
        if let Err(problem) = shelf.try_open() {
            tracing::error!(
                problem,
                "events that wait for webhooks are in memory only, until their file can be used; what is lost by a crash \
                 before that will not be noticed"
            );
        }
        shelf
    }

    /// What the outbox said when it was opened; once.
    pub(crate) fn take_backlog(&mut self) -> Option<Backlog> {
        self.backlog.take()
    }

    /// Opens the outbox if it is not open, and returns what it says then.
    pub(crate) fn open(&mut self) -> Result<Option<Backlog>, String> {
        self.try_open()?;
        Ok(self.take_backlog())
    }

    /// Writes everything, or nothing.
    pub(crate) fn write(&mut self, changes: &Changes) -> Result<(), String> {
        let Some(outbox) = &mut self.outbox else { return Err("it is not open".to_owned()) };
        outbox.write(changes).map_err(|error| error.to_string())
    }

    /// Closes the outbox after an end in good order.
    pub(crate) fn close_clean(self) -> Result<(), String> {
        self.outbox.map_or(Ok(()), Outbox::close_clean).map_err(|error| error.to_string())
    }

    fn try_open(&mut self) -> Result<(), String> {
        if self.outbox.is_none() {
            let (outbox, past) = Outbox::open(&self.directory, &self.digests)?;
            (self.outbox, self.backlog) = (Some(outbox), Some(past));
        }
        Ok(())
    }
}
