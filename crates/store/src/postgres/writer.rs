//! Batches changes of single messages: while one batch is being written, the next one fills up. If the next one is
//! full, it does not wait for the one before.

use std::sync::Arc;
use std::time::Duration;

use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use tokio::sync::mpsc::{self, Receiver};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_postgres::Row;

use super::change_tracker::ChangeTracker;
use super::database::{Database, Parameters};
use super::rows::{self, get_column, missing_error, split_position, to_u64};
use crate::feed::{Change, Event};
use crate::sql_values::{id_to_i64, time_to_nanos, to_i64};
use crate::{Appended, Limits, NewMessage, Result};

/// The maximum number of batches that are written at the same time.
pub(super) const MAX_BATCHES_IN_FLIGHT: usize = 2;
/// The number of changes that can wait. Further callers wait for a slot.
const QUEUE_CAPACITY: usize = 1024;
/// How long to wait, after a batch, for half as many changes as that one had. A single message does not wait.
const GATHER_DELAY: Duration = Duration::from_millis(1);
/// If a batch takes longer than this, for example with a very large message, the next one does not wait for it.
const SLOW_BATCH_TIME: Duration = Duration::from_millis(50);
/// The maximum number of changes and of message bytes in one batch. Each batch has 1,000 numbers for its bodies.
const MAX_BATCH_JOBS: usize = 100;
const MAX_BATCH_BYTES: usize = 8 << 20;

const APPEND: &str = "SELECT * FROM append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
const REMOVE: &str = "SELECT * FROM remove($1, $2)";
const SET_SEEN: &str = "SELECT * FROM mark($1, $2, $3)";

/// A change of one message, and the channel for its result.
pub(super) enum Job {
    Append(NewMessage, Reply<Appended>),
    Remove(MailboxName, MessageId, Reply<Option<Summary>>),
    SetSeen(MailboxName, MessageId, bool, Reply<bool>),
}

pub(super) type Reply<T> = oneshot::Sender<Result<T>>;

/// Starts the writer. It ends when all senders are dropped.
pub(super) fn start(database: &Arc<Database>, tracker: &Arc<ChangeTracker>, limits: Limits) -> mpsc::Sender<Job> {
    let (sender, queue) = mpsc::channel(QUEUE_CAPACITY);
    let writer = Writer { database: database.clone(), tracker: tracker.clone(), limits };
    tokio::spawn(Arc::new(writer).run(queue));
    sender
}

struct Writer {
    database: Arc<Database>,
    tracker: Arc<ChangeTracker>,
    limits: Limits,
}

/// Changes that are written together.
#[derive(Default)]
struct Batch {
    appends: Vec<(NewMessage, Reply<Appended>)>,
    removals: Vec<(MailboxName, MessageId, Reply<Option<Summary>>)>,
    seen_flags: Vec<(MailboxName, MessageId, bool, Reply<bool>)>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, job: Job) {
        match job {
            Job::Append(message, reply) => {
                self.bytes += message.body.len();
                self.appends.push((message, reply));
            }
            Job::Remove(mailbox, id, reply) => self.removals.push((mailbox, id, reply)),
            Job::SetSeen(mailbox, id, seen, reply) => self.seen_flags.push((mailbox, id, seen, reply)),
        }
    }

    fn len(&self) -> usize {
        self.appends.len() + self.removals.len() + self.seen_flags.len()
    }

    fn is_full(&self) -> bool {
        self.len() >= MAX_BATCH_JOBS || self.bytes >= MAX_BATCH_BYTES
    }
}

impl Writer {
    async fn run(self: Arc<Self>, mut queue: Receiver<Job>) {
        let (mut batch, mut in_flight) = (Batch::default(), JoinSet::new());
        let (mut expected, mut wait_until, mut is_waiting) = (0, Instant::now(), true);
        loop {
            tokio::select! {
                job = queue.recv(), if !batch.is_full() => match job {
                    Some(job) => batch.add(job),
                    None => break,
                },
                Some(_) = in_flight.join_next() => wait_until = Instant::now() + GATHER_DELAY,
                () = sleep_until(wait_until), if batch.len() > 0 && is_waiting => is_waiting = false,
            }
            while !batch.is_full()
                && let Ok(job) = queue.try_recv()
            {
                batch.add(job);
            }
            let is_due = batch.is_full() || !is_waiting || in_flight.is_empty() && batch.len() >= expected;
            if is_due && batch.len() > 0 && in_flight.len() < MAX_BATCHES_IN_FLIGHT {
                // Callers that just got a result are likely to send another change.
                expected = batch.len() / 2;
                in_flight.spawn(self.clone().write_batch(std::mem::take(&mut batch)));
                (wait_until, is_waiting) = (Instant::now() + SLOW_BATCH_TIME, true);
            }
        }
        self.write_batch(batch).await;
        in_flight.join_all().await;
    }

    async fn write_batch(self: Arc<Self>, batch: Batch) {
        let Batch { appends, removals, seen_flags, bytes: _ } = batch;
        tokio::join!(self.append(appends), self.remove(removals), self.set_seen(seen_flags));
    }

    async fn append(&self, jobs: Vec<(NewMessage, Reply<Appended>)>) {
        if jobs.is_empty() {
            return;
        }
        let (messages, replies): (Vec<NewMessage>, Vec<_>) = jobs.into_iter().unzip();
        match self.append_messages(messages).await {
            Ok(appended) => {
                for (reply, appended) in replies.into_iter().zip(appended) {
                    // The caller may have been cancelled. The change stays.
                    let _ = reply.send(Ok(appended));
                }
            }
            Err(error) => replies.into_iter().for_each(|reply| drop(reply.send(Err(error.clone())))),
        }
    }

    /// Stores messages. Returns the result of each.
    async fn append_messages(&self, messages: Vec<NewMessage>) -> Result<Vec<Appended>> {
        let rows = self.call_append(&messages).await?;
        let (first, evicted) = rows.split_first().ok_or_else(|| missing_error("the first row"))?;
        let mut ids = get_column::<Vec<i64>>(first, "ids")?.into_iter().map(to_u64).map(MessageId::from);
        let mut all = Vec::with_capacity(messages.len());
        for message in messages {
            let NewMessage { received, headline, body, copies, tags } = message;
            let mut appended = Appended::default();
            for copy in copies {
                let id = ids.next().ok_or_else(|| missing_error("an id"))?;
                let size = (copy.trace(received).len() + body.len()) as u64;
                let headline = headline.clone();
                appended.stored.push(Summary {
                    mailbox: copy.mailbox,
                    id,
                    headline,
                    received,
                    size,
                    seen: false,
                    message: id,
                    number: 0,
                    tags: tags.clone(),
                    details: copy.details,
                });
            }
            all.push(appended);
        }
        let stored = all.iter().flat_map(|appended| &appended.stored);
        let mut changes: Vec<Change> = stored
            .map(|summary| Change { position: summary.id.number(), event: Event::Stored(summary.clone()) })
            .collect();
        for row in evicted {
            let change = rows::parse_change(row)?;
            if let (Event::Deleted(summary), Some(last)) = (&change.event, all.last_mut()) {
                last.evicted.push(summary.clone());
            }
            changes.push(change);
        }
        self.tracker.record_own_changes(rows::get_u64(first, "number")?, changes);
        Ok(all)
    }

    async fn call_append(&self, messages: &[NewMessage]) -> Result<Vec<Row>> {
        let bodies: Vec<&[u8]> = messages.iter().map(|message| &message.body[..]).collect();
        let lengths: Vec<i64> = bodies.iter().map(|body| to_i64(body.len())).collect();
        let shared: Vec<bool> = messages.iter().map(|message| message.copies.len() > 1).collect();
        let received: Vec<i64> = messages.iter().map(|message| time_to_nanos(message.received)).collect();
        let headlines: Vec<String> = messages.iter().map(|message| rows::encode_headline(&message.headline)).collect();
        let headlines: Vec<&[u8]> = headlines.iter().map(String::as_bytes).collect();
        let copies = || {
            (1_i32..).zip(messages).flat_map(|(index, message)| message.copies.iter().map(move |copy| (index, copy)))
        };
        let indexes: Vec<i32> = copies().map(|(index, _)| index).collect();
        let names: Vec<&[u8]> = copies().map(|(_, copy)| copy.mailbox.as_str().as_bytes()).collect();
        let traces: Vec<bytes::Bytes> = copies().map(|(_, copy)| copy.trace.clone().unwrap()).collect();
        let traces: Vec<&[u8]> = traces.iter().map(|x| &x[..]).collect();
        let new_bytes: i64 = to_i64(bodies.iter().chain(&traces).map(|bytes| bytes.len()).sum::<usize>());
        let (cap, bound): (i64, i64) = (to_i64(self.limits.messages_per_mailbox), to_i64(self.limits.bytes));
        let parameters: Parameters<'_> =
            &[&bodies, &lengths, &shared, &received, &headlines, &indexes, &names, &traces, &new_bytes, &cap, &bound];
        self.database.execute(APPEND, parameters).await
    }

    async fn remove(&self, jobs: Vec<(MailboxName, MessageId, Reply<Option<Summary>>)>) {
        if jobs.is_empty() {
            return;
        }
        let names: Vec<&[u8]> = jobs.iter().map(|(name, ..)| name.as_str().as_bytes()).collect();
        let ids: Vec<i64> = jobs.iter().map(|(_, id, _)| id_to_i64(*id)).collect();
        let rows = self.database.execute(REMOVE, &[&names, &ids]).await;
        let mut removed = rows.and_then(|rows| self.tracker.record_deletions(&rows));
        for (mailbox, id, reply) in jobs {
            // If several callers remove the same message, the first one gets it.
            let result = removed.as_mut().map_err(|error| error.clone()).map(|removed| {
                let index = removed.iter().position(|summary| summary.id == id && summary.mailbox == mailbox)?;
                Some(removed.swap_remove(index))
            });
            let _ = reply.send(result);
        }
    }

    async fn set_seen(&self, jobs: Vec<(MailboxName, MessageId, bool, Reply<bool>)>) {
        if jobs.is_empty() {
            return;
        }
        let result = self.update_seen_flags(&jobs).await;
        for (mailbox, id, _, reply) in jobs {
            let existing = result.as_ref().map_err(Clone::clone);
            let _ = reply.send(existing.map(|existing| existing.contains(&(mailbox, id_to_i64(id)))));
        }
    }

    /// Marks messages. Returns those that exist.
    async fn update_seen_flags(
        &self,
        jobs: &[(MailboxName, MessageId, bool, Reply<bool>)],
    ) -> Result<Vec<(MailboxName, i64)>> {
        let names: Vec<&[u8]> = jobs.iter().map(|(name, ..)| name.as_str().as_bytes()).collect();
        let ids: Vec<i64> = jobs.iter().map(|(_, id, ..)| id_to_i64(*id)).collect();
        let flags: Vec<bool> = jobs.iter().map(|(_, _, seen, _)| *seen).collect();
        let rows = self.database.execute(SET_SEEN, &[&names, &ids, &flags]).await?;
        let (before, rows) = split_position(&rows)?;
        let (mut existing, mut changes) = (Vec::new(), Vec::new());
        for row in rows {
            match get_column::<Option<i64>>(row, "number")? {
                Some(_) => changes.push(rows::parse_change(row)?),
                None => existing.push((rows::get_mailbox(row, "mailbox")?, get_column(row, "id")?)),
            }
        }
        self.tracker.record_own_changes(before, changes);
        Ok(existing)
    }
}
