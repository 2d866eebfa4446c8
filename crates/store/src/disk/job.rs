//! The jobs of the writer, and the channels for their results.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use rusqlite::Connection;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;

use super::changes::Changes;
use super::record::PreparedCopy;
use super::segment::Location;
use crate::{Appended, CopyKey, CopyUpdate, NewMessage, Result, UpdateOutcome};

/// A change of the store.
pub(super) enum Job {
    Append(NewMessage, Reply<Appended>),
    Update(Vec<CopyUpdate>, Reply<Vec<UpdateOutcome>>),
    RemoveCopies(Vec<CopyKey>, Reply<Vec<Summary>>),
    Purge(MailboxName, MessageId, usize, Reply<Vec<Summary>>),
    Expire(Timestamp, usize, Reply<Vec<Summary>>),
    /// Changes nothing. Fails if a new message could not be stored.
    Check(Reply<()>),
    /// Commits the open transaction, so that queries find its changes.
    Commit(Reply<()>),
}

/// The channel for the result of a job. The result is set in the transaction, and sent when the job is finished.
pub(super) struct Reply<T> {
    result: Option<T>,
    sender: oneshot::Sender<Result<T>>,
}

impl<T> Reply<T> {
    pub(super) fn new() -> (Self, oneshot::Receiver<Result<T>>) {
        let (sender, receiver) = oneshot::channel();
        (Self { result: None, sender }, receiver)
    }

    fn send(self, outcome: Result<()>) {
        let Self { result, sender } = self;
        let result = match (outcome, result) {
            (Ok(()), Some(result)) => Ok(result),
            (Ok(()), None) => Err(crate::StoreError::Broken("the writer did not run the job".to_owned())),
            (Err(error), _) => Err(error),
        };
        // The caller may have been cancelled. The change stays.
        let _ = sender.send(result);
    }
}

impl Job {
    /// Returns the number of message bytes that the job adds.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Append(message, _) => message.body.len(),
            _ => 0,
        }
    }

    /// Returns whether the job is refused if the disk is full.
    pub(super) fn needs_space(&self) -> bool {
        matches!(self, Self::Append(..) | Self::Check(_))
    }

    /// Returns whether the job is finished before its transaction is committed, because the record of the new message is
    /// synced.
    pub(super) fn is_deferred(&self) -> bool {
        matches!(self, Self::Append(..))
    }

    /// Returns whether the job is finished only after its commit is synced. Messages that expired are found again after a
    /// crash.
    pub(super) fn needs_sync(&self) -> bool {
        !matches!(self, Self::Append(..) | Self::Expire(..) | Self::Commit(_))
    }

    /// Makes the change in the database. Every new message takes its copies and its location from `written`.
    pub(super) fn apply<'a>(
        &mut self,
        changes: &mut Changes<'_>,
        database: &Connection,
        written: &mut impl Iterator<Item = (&'a [PreparedCopy], &'a Location)>,
    ) -> Result<()> {
        if !self.is_deferred() {
            changes.use_clock_for_versions();
        }
        match self {
            Self::Append(message, reply) => {
                if let Some((copies, at)) = written.next() {
                    reply.result = Some(changes.append(database, message, copies, *at)?);
                }
            }
            Self::Update(updates, reply) => reply.result = Some(changes.update_copies(database, updates)?),
            Self::RemoveCopies(copies, reply) => reply.result = Some(changes.remove_copies(database, copies)?),
            Self::Purge(mailbox, last, limit, reply) => {
                reply.result = Some(changes.purge(database, mailbox, *last, *limit)?);
            }
            Self::Expire(deadline, limit, reply) => {
                reply.result = Some(changes.expire(database, *deadline, *limit)?);
            }
            Self::Check(reply) => reply.result = Some(Changes::test_write(database)?),
            Self::Commit(reply) => reply.result = Some(()),
        }
        Ok(())
    }

    /// Sends the result, or the error of the transaction.
    pub(super) fn finish(self, outcome: Result<()>) {
        match self {
            Self::Append(_, reply) => reply.send(outcome),
            Self::Update(_, reply) => reply.send(outcome),
            Self::RemoveCopies(_, reply) | Self::Purge(_, _, _, reply) | Self::Expire(_, _, reply) => {
                reply.send(outcome);
            }
            Self::Check(reply) | Self::Commit(reply) => reply.send(outcome),
        }
    }
}

/// The result of waiting for a job.
pub(super) enum Received {
    Job(Job),
    /// No job has arrived in time.
    Timeout,
    /// There are no more jobs.
    Closed,
}

/// Waits for a job. Without a timeout, waits until there is one.
pub(super) fn receive(queue: &mut Receiver<Job>, timeout: Option<Duration>) -> Received {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let waker = Waker::from(Arc::new(UnparkOnWake(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match queue.poll_recv(&mut context) {
            Poll::Ready(Some(job)) => return Received::Job(job),
            Poll::Ready(None) => return Received::Closed,
            Poll::Pending => {}
        }
        match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
            None => thread::park(),
            Some(Duration::ZERO) => return Received::Timeout,
            Some(remaining) => thread::park_timeout(remaining),
        }
    }
}

/// Wakes a thread that waits for a job.
struct UnparkOnWake(Thread);

impl Wake for UnparkOnWake {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
