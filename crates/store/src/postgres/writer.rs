//! Batches changes of messages and copies: while one batch is being written, the next one fills up. If the next one is
//! full, it does not wait for the one before.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use restante_mail::message::{MessageId, Summary};
use tokio::sync::mpsc::{self, Receiver};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_postgres::Row;

use super::change_tracker::ChangeTracker;
use super::database::{Database, Parameters};
use super::rows::{self, get_column, missing_error, split_position, to_u64};
use crate::feed::{Change, CopyEvent};
use crate::sql_values::{id_to_i64, time_to_nanos, to_i64};
use crate::{Appended, CopyKey, CopyUpdate, Limits, MailboxLimits, NewMessage, Result, UpdateOutcome};

/// The maximum number of batches that are written at the same time.
pub(super) const MAX_BATCHES_IN_FLIGHT: usize = 2;
/// The number of changes that can wait. Further callers wait for a slot.
const QUEUE_CAPACITY: usize = 1024;
/// How long to wait, after a batch, for half as many further changes as that one had. A single message does not wait.
const GATHER_DELAY: Duration = Duration::from_millis(1);
/// If a batch takes longer than this, for example with a very large message, the next one does not wait for it.
const SLOW_BATCH_TIME: Duration = Duration::from_millis(50);
/// The number of changes and of message bytes above which a batch is full. Each batch has 1,000 numbers for its bodies.
const MAX_BATCH_CHANGES: usize = 100;
const MAX_BATCH_BYTES: usize = 8 << 20;

const APPEND: &str = "SELECT * FROM append_messages(
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
        $24
    )";
const REMOVE: &str = "SELECT * FROM remove_copies($1, $2)";
const UPDATE: &str = "SELECT * FROM update_copies($1, $2, $3, $4, $5, $6)";

/// The bit of the marks of a copy that is marked as read.
const SEEN: i16 = 1 << 7;

/// A change of a limited number of messages or copies, and the channel for its result.
pub(super) enum Job {
    Append(Vec<NewMessage>, Reply<Vec<Appended>>),
    Remove(Vec<CopyKey>, Reply<Vec<Summary>>),
    Update(Vec<CopyUpdate>, Reply<Vec<UpdateOutcome>>),
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
    appends: Vec<(Vec<NewMessage>, Reply<Vec<Appended>>)>,
    removals: Vec<(Vec<CopyKey>, Reply<Vec<Summary>>)>,
    updates: Vec<(Vec<CopyUpdate>, Reply<Vec<UpdateOutcome>>)>,
    /// The number of changes: new messages, and copies that are changed or removed.
    len: usize,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, job: Job) {
        match job {
            Job::Append(messages, reply) => {
                self.len += messages.len();
                self.bytes += messages.iter().map(|message| message.body.len()).sum::<usize>();
                self.appends.push((messages, reply));
            }
            Job::Remove(copies, reply) => {
                self.len += copies.len();
                self.removals.push((copies, reply));
            }
            Job::Update(updates, reply) => {
                self.len += updates.len();
                self.updates.push((updates, reply));
            }
        }
    }

    fn is_full(&self) -> bool {
        self.len >= MAX_BATCH_CHANGES || self.bytes >= MAX_BATCH_BYTES
    }
}

impl Writer {
    async fn run(self: Arc<Self>, mut queue: Receiver<Job>) {
        let (mut batch, mut in_flight) = (Batch::default(), JoinSet::new());
        let (mut expected, mut wait_until, mut is_waiting) = (0_usize, Instant::now(), true);
        loop {
            tokio::select! {
                job = queue.recv(), if !batch.is_full() => match job {
                    Some(job) => batch.add(job),
                    None => break,
                },
                Some(written) = in_flight.join_next() => {
                    // Callers that just got a result are likely to send another change.
                    (expected, wait_until) = (batch.len + written.unwrap_or(0) / 2, Instant::now() + GATHER_DELAY);
                }
                () = sleep_until(wait_until), if batch.len > 0 && is_waiting => is_waiting = false,
            }
            while !batch.is_full()
                && let Ok(job) = queue.try_recv()
            {
                batch.add(job);
            }
            let is_due = batch.is_full() || !is_waiting || in_flight.is_empty() && batch.len >= expected;
            if is_due && batch.len > 0 && in_flight.len() < MAX_BATCHES_IN_FLIGHT {
                in_flight.spawn(self.clone().write_batch(std::mem::take(&mut batch)));
                (wait_until, is_waiting) = (Instant::now() + SLOW_BATCH_TIME, true);
            }
        }
        self.write_batch(batch).await;
        in_flight.join_all().await;
    }

    /// Writes a batch. Returns the number of its changes.
    async fn write_batch(self: Arc<Self>, batch: Batch) -> usize {
        let Batch { appends, removals, updates, len, bytes: _ } = batch;
        tokio::join!(self.append(appends), self.remove(removals), self.update(updates));
        len
    }

    async fn append(&self, jobs: Vec<(Vec<NewMessage>, Reply<Vec<Appended>>)>) {
        if jobs.is_empty() {
            return;
        }
        let (mut messages, mut replies) = (Vec::new(), Vec::with_capacity(jobs.len()));
        for (job, reply) in jobs {
            replies.push((job.len(), reply));
            messages.extend(job);
        }
        let mut result = self.append_messages(messages).await.map(Vec::into_iter);
        for (count, reply) in replies {
            let appended = result.as_mut().map_err(|error| error.clone());
            // The caller may have been cancelled. The change stays.
            let _ = reply.send(appended.map(|appended| appended.take(count).collect()));
        }
    }

    /// Stores messages. Returns the result of each.
    async fn append_messages(&self, messages: Vec<NewMessage>) -> Result<Vec<Appended>> {
        let traces = messages.iter().flat_map(|message| message.copies.iter().map(|copy| copy.trace(message.received)));
        let traces: Vec<Bytes> = traces.collect();
        let (rows, lowest_ids, copies) = {
            let columns = CopyColumns::new(&messages, &traces, &self.limits);
            (
                self.call_append(&messages, &traces, &columns).await?,
                columns.lowest_ids,
                columns.mailboxes.into_iter().zip(columns.mailbox_indexes),
            )
        };
        let (first, evicted) = rows.split_first().ok_or_else(|| missing_error("the first row"))?;
        let before: i64 = get_column(first, "number")?;
        // As the database has assigned them.
        let ids =
            lowest_ids.into_iter().zip(before + 1..).map(|(lowest, next)| MessageId::from(to_u64(lowest.max(next))));
        let last_numbers: Vec<i64> = get_column(first, "copy_numbers")?;
        let numbers =
            copies.map(|(mailbox, index)| last_numbers.get(to_index(mailbox)).map(|last| last + i64::from(index)));
        let mut assigned = ids.zip(numbers).zip(&traces);
        let mut all = Vec::with_capacity(messages.len());
        for message in messages {
            let NewMessage { received, headline, body, copies } = message;
            let mut stored: Vec<Summary> = Vec::with_capacity(copies.len());
            for copy in copies {
                let ((id, number), trace) = assigned.next().ok_or_else(|| missing_error("an id"))?;
                let number = rows::to_copy_number(number.ok_or_else(|| missing_error("a number"))?);
                stored.push(Summary {
                    mailbox: copy.mailbox,
                    id,
                    message: stored.first().map_or(id, |first| first.id),
                    number,
                    headline: headline.clone(),
                    received,
                    size: (trace.len() + body.len()) as u64,
                    seen: copy.seen,
                    flags: copy.flags,
                    tags: copy.tags,
                    modseq: id.number(),
                    details: copy.details,
                });
            }
            all.push(Appended { stored, evicted: Vec::new() });
        }
        let stored = all.iter().flat_map(|appended| &appended.stored);
        let mut changes: Vec<Change> = stored
            .map(|summary| Change { position: summary.id.number(), event: CopyEvent::Stored(summary.clone()) })
            .collect();
        for row in evicted {
            let change = rows::parse_change(row)?;
            if let (CopyEvent::Deleted(summary), Some(last)) = (&change.event, all.last_mut()) {
                last.evicted.push(summary.clone());
            }
            changes.push(change);
        }
        self.tracker.record_own_changes(to_u64(before), changes);
        Ok(all)
    }

    /// Calls `append_messages`. `traces` are those of all copies.
    async fn call_append(
        &self,
        messages: &[NewMessage],
        traces: &[Bytes],
        copies: &CopyColumns<'_>,
    ) -> Result<Vec<Row>> {
        let bodies: Vec<&[u8]> = messages.iter().map(|message| &message.body[..]).collect();
        let shared: Vec<bool> = messages.iter().map(|message| message.copies.len() > 1).collect();
        let received: Vec<i64> = messages.iter().map(|message| time_to_nanos(message.received)).collect();
        let headlines: Vec<String> = messages.iter().map(|message| rows::encode_headline(&message.headline)).collect();
        let headlines: Vec<&[u8]> = headlines.iter().map(String::as_bytes).collect();
        let traces: Vec<&[u8]> = traces.iter().map(|trace| &trace[..]).collect();
        let new_bytes: i64 = to_i64(bodies.iter().chain(&traces).map(|bytes| bytes.len()).sum::<usize>());
        let has_marks = copies.marks.iter().any(|marks| *marks != 0);
        let (marks, seen_copies) = (has_marks.then_some(&copies.marks), has_marks.then_some(&copies.seen_copies));
        let projects = copies.projects.iter().any(Option::is_some).then_some(&copies.projects);
        let [caps, mailbox_bytes] = [&copies.caps, &copies.mailbox_bytes]
            .map(|limits| limits.iter().any(|limit| *limit < i64::MAX).then_some(limits));
        let max_bytes: i64 = to_i64(self.limits.bytes);
        let parameters: Parameters<'_> = &[
            &bodies,
            &shared,
            &received,
            &headlines,
            &copies.messages,
            &copies.message_indexes,
            &copies.mailboxes,
            &copies.mailbox_indexes,
            &copies.lowest_ids,
            &copies.sizes,
            &traces,
            &copies.tags,
            &marks,
            &copies.details,
            &copies.names,
            &projects,
            &copies.name_copies,
            &seen_copies,
            &copies.name_bytes,
            &copies.last_copies,
            &caps,
            &mailbox_bytes,
            &new_bytes,
            &max_bytes,
        ];
        self.database.execute(APPEND, parameters).await
    }

    async fn remove(&self, jobs: Vec<(Vec<CopyKey>, Reply<Vec<Summary>>)>) {
        if jobs.is_empty() {
            return;
        }
        let (names, ids) = key_columns(jobs.iter().flat_map(|(copies, _)| copies));
        let rows = self.database.execute(REMOVE, &[&names, &ids]).await;
        let removed = rows.and_then(|rows| self.tracker.record_deletions(&rows));
        let mut removed =
            removed.map(|removed| removed.into_iter().map(|copy| (copy.id, copy)).collect::<BTreeMap<_, _>>());
        for (copies, reply) in jobs {
            // If several callers remove the same copy, the first one gets it.
            let result = removed.as_mut().map_err(|error| error.clone()).map(|removed| take_copies(removed, &copies));
            let _ = reply.send(result);
        }
    }

    async fn update(&self, jobs: Vec<(Vec<CopyUpdate>, Reply<Vec<UpdateOutcome>>)>) {
        if jobs.is_empty() {
            return;
        }
        let updates: Vec<&CopyUpdate> = jobs.iter().flat_map(|(updates, _)| updates).collect();
        let mut result = self.update_copies(&updates).await.map(Vec::into_iter);
        for (updates, reply) in jobs {
            let outcomes = result.as_mut().map_err(|error| error.clone());
            let _ = reply.send(outcomes.map(|outcomes| outcomes.take(updates.len()).collect()));
        }
    }

    /// Changes the marks of copies. Returns the outcome of each update.
    async fn update_copies(&self, updates: &[&CopyUpdate]) -> Result<Vec<UpdateOutcome>> {
        let (names, ids) = key_columns(updates.iter().map(|update| &update.copy));
        let seen = optional_column(updates, |update| update.seen);
        let flags = optional_column(updates, |update| update.flags.map(|flags| i16::from(flags.bits())));
        let tags = optional_column(updates, |update| update.tags.as_ref().map(|tags| tags.encoded().as_bytes()));
        let modseqs = optional_column(updates, |update| update.if_modseq.map(to_i64));
        let parameters: Parameters<'_> = &[&names, &ids, &seen, &flags, &tags, &modseqs];
        let rows = self.database.execute(UPDATE, parameters).await?;
        let (before, rows) = split_position(&rows)?;
        let (mut outcomes, mut changes) = (vec![UpdateOutcome::Missing; updates.len()], Vec::new());
        for row in rows {
            if get_column::<Option<i64>>(row, "number")?.is_some() {
                changes.push(rows::parse_change(row)?);
                continue;
            }
            let has_marks = get_column::<Option<i64>>(row, "modseq")?.is_some();
            let outcome = if has_marks {
                UpdateOutcome::Updated(rows::parse_marks(row)?, rows::parse_changed_marks(row)?)
            } else {
                UpdateOutcome::Conflict
            };
            let position = usize::try_from(rows::get_u64(row, "id")?).unwrap_or(0);
            let slot = position.checked_sub(1).and_then(|index| outcomes.get_mut(index));
            *slot.ok_or_else(|| missing_error("the position of an update"))? = outcome;
        }
        self.tracker.record_own_changes(before, changes);
        Ok(outcomes)
    }
}

/// Returns a value of each update. `None` if no update has one.
fn optional_column<'a, T>(
    updates: &[&'a CopyUpdate],
    value: impl Fn(&'a CopyUpdate) -> Option<T>,
) -> Option<Vec<Option<T>>> {
    let values: Vec<Option<T>> = updates.iter().copied().map(value).collect();
    values.iter().any(Option::is_some).then_some(values)
}

/// Returns the mailboxes and the ids of copies.
fn key_columns<'a>(copies: impl Iterator<Item = &'a CopyKey>) -> (Vec<&'a [u8]>, Vec<i64>) {
    copies.map(|copy| (copy.mailbox.as_str().as_bytes(), id_to_i64(copy.id))).unzip()
}

/// The parameters of `append_messages` for the copies and the mailboxes of a batch. Messages, copies and mailboxes are
/// counted from 1.
#[derive(Default)]
struct CopyColumns<'a> {
    /// The message of each copy.
    messages: Vec<i32>,
    /// The index of each copy in its message, from 0.
    message_indexes: Vec<i32>,
    /// The mailbox of each copy.
    mailboxes: Vec<i32>,
    /// The index of each copy among those for its mailbox, from 1.
    mailbox_indexes: Vec<i32>,
    lowest_ids: Vec<i64>,
    sizes: Vec<i64>,
    tags: Vec<&'a [u8]>,
    /// The flags of each copy, and [`SEEN`] if it is marked as read.
    marks: Vec<i16>,
    details: Vec<&'a [u8]>,
    /// The name of each mailbox.
    names: Vec<&'a [u8]>,
    /// The project of each mailbox.
    projects: Vec<Option<&'a [u8]>>,
    /// The number of copies for each mailbox.
    name_copies: Vec<i64>,
    /// The number of copies for each mailbox that are marked as read.
    seen_copies: Vec<i64>,
    /// The sum of the sizes of the copies for each mailbox.
    name_bytes: Vec<i64>,
    /// The last copy for each mailbox.
    last_copies: Vec<i32>,
    /// The limits of each mailbox.
    caps: Vec<i64>,
    mailbox_bytes: Vec<i64>,
}

impl<'a> CopyColumns<'a> {
    /// Creates the parameters for messages and the traces of their copies.
    fn new(messages: &'a [NewMessage], traces: &[Bytes], limits: &Limits) -> Self {
        let mut columns = Self::default();
        let (mut known_names, mut traces) = (HashMap::new(), traces.iter());
        for (position, message) in (1_i32..).zip(messages) {
            // See `MessageId::next_after`.
            let arrival = time_to_nanos(message.received) / 1000;
            for (message_index, copy) in (0_i32..).zip(&message.copies) {
                let name = copy.mailbox.as_str().as_bytes();
                let next_name = known_names.len();
                let name_index = *known_names.entry(name).or_insert(next_name);
                if name_index == next_name {
                    columns.names.push(name);
                    columns.projects.push(copy.mailbox.project().map(|project| &name[..project.as_str().len()]));
                    columns.name_copies.push(0);
                    columns.seen_copies.push(0);
                    columns.name_bytes.push(0);
                    columns.last_copies.push(0);
                    let MailboxLimits { messages, bytes } = limits.of_mailbox(&copy.mailbox);
                    columns.caps.push(to_i64(messages));
                    columns.mailbox_bytes.push(to_i64(bytes));
                }
                let size: i64 = to_i64(traces.next().map_or(0, Bytes::len) + message.body.len());
                let after_last = columns.lowest_ids.last().map_or(arrival, |last| last + 1);
                columns.messages.push(position);
                columns.message_indexes.push(message_index);
                columns.mailboxes.push(to_position(name_index));
                columns.lowest_ids.push(arrival.max(after_last));
                columns.sizes.push(size);
                columns.tags.push(copy.tags.encoded().as_bytes());
                columns.marks.push(i16::from(copy.flags.bits()) | if copy.seen { SEEN } else { 0 });
                columns.details.push(copy.details.encoded().as_bytes());
                columns.name_copies[name_index] += 1;
                columns.seen_copies[name_index] += i64::from(copy.seen);
                columns.name_bytes[name_index] += size;
                columns.last_copies[name_index] = to_position(columns.messages.len() - 1);
                columns.mailbox_indexes.push(i32::try_from(columns.name_copies[name_index]).unwrap_or(i32::MAX));
            }
        }
        columns
    }
}

/// Converts an index to a position in an array of the database.
fn to_position(index: usize) -> i32 {
    i32::try_from(index + 1).unwrap_or(i32::MAX)
}

/// Converts a position in an array of the database to an index.
fn to_index(position: i32) -> usize {
    usize::try_from(position - 1).unwrap_or(0)
}

/// Takes the copies that `wanted` identifies out of `removed`. Returns them ascending by id.
fn take_copies(removed: &mut BTreeMap<MessageId, Summary>, wanted: &[CopyKey]) -> Vec<Summary> {
    let mut taken: Vec<Summary> = Vec::with_capacity(wanted.len());
    for key in wanted {
        if removed.get(&key.id).is_some_and(|copy| copy.mailbox == key.mailbox) {
            taken.extend(removed.remove(&key.id));
        }
    }
    taken.sort_unstable_by_key(|copy| copy.id);
    taken
}
