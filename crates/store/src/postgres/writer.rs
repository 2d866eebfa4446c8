//! Changes of single messages, gathered: while one batch is on its way to the database, the next one fills up. When so many wait that
//! it is full, it need not wait for the one before.

use std::sync::Arc;
use std::time::Duration;

use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use tokio::sync::mpsc::{self, Receiver};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_postgres::Row;

use super::database::{Database, Parameters};
use super::follower::Follower;
use super::rows::{self, missing, opening, unsigned, value};
use crate::feed::{Change, Event};
use crate::numbers::{integer, key, nanoseconds};
use crate::{Appended, Limits, NewMessage, Result};

/// How many batches are under way at once.
pub(super) const LANES: usize = 2;
/// How many changes may wait before those who ask have to wait themselves.
const QUEUE: usize = 1024;
/// How long it is waited, after a batch, for half as many changes as that one had. A lone message waits for nobody.
const GATHERING: Duration = Duration::from_millis(1);
/// When a batch takes so long, as one with a very large message does, the next one need not wait for it.
const SLOW: Duration = Duration::from_millis(50);
/// The most changes and bytes of mail in one batch. The table of bodies has room for a thousand.
const MAX_JOBS: usize = 100;
const MAX_BYTES: usize = 8 << 20;

const APPEND: &str = "SELECT * FROM append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
const REMOVE: &str = "SELECT * FROM remove($1, $2)";
const MARK: &str = "SELECT * FROM mark($1, $2, $3)";

/// A change of one message, and the way back to whoever wants it.
pub(super) enum Job {
    Append(NewMessage, Reply<Appended>),
    Remove(MailboxName, MessageId, Reply<Option<Summary>>),
    Mark(MailboxName, MessageId, bool, Reply<bool>),
}

pub(super) type Reply<T> = oneshot::Sender<Result<T>>;

/// Starts the writer, which ends when nobody can ask any more.
pub(super) fn start(database: &Arc<Database>, follower: &Arc<Follower>, limits: Limits) -> mpsc::Sender<Job> {
    let (sender, queue) = mpsc::channel(QUEUE);
    let writer = Writer { database: database.clone(), follower: follower.clone(), limits };
    tokio::spawn(Arc::new(writer).run(queue));
    sender
}

struct Writer {
    database: Arc<Database>,
    follower: Arc<Follower>,
    limits: Limits,
}

/// What goes to the database together.
#[derive(Default)]
struct Batch {
    appends: Vec<(NewMessage, Reply<Appended>)>,
    removals: Vec<(MailboxName, MessageId, Reply<Option<Summary>>)>,
    marks: Vec<(MailboxName, MessageId, bool, Reply<bool>)>,
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
            Job::Mark(mailbox, id, seen, reply) => self.marks.push((mailbox, id, seen, reply)),
        }
    }

    fn len(&self) -> usize {
        self.appends.len() + self.removals.len() + self.marks.len()
    }

    fn is_full(&self) -> bool {
        self.len() >= MAX_JOBS || self.bytes >= MAX_BYTES
    }
}

impl Writer {
    async fn run(self: Arc<Self>, mut queue: Receiver<Job>) {
        let (mut batch, mut underway) = (Batch::default(), JoinSet::new());
        let (mut expected, mut patience, mut is_patient) = (0, Instant::now(), true);
        loop {
            tokio::select! {
                job = queue.recv(), if !batch.is_full() => match job {
                    Some(job) => batch.add(job),
                    None => break,
                },
                Some(_) = underway.join_next() => patience = Instant::now() + GATHERING,
                () = sleep_until(patience), if batch.len() > 0 && is_patient => is_patient = false,
            }
            while !batch.is_full()
                && let Ok(job) = queue.try_recv()
            {
                batch.add(job);
            }
            let is_next = batch.is_full() || !is_patient || underway.is_empty() && batch.len() >= expected;
            if is_next && batch.len() > 0 && underway.len() < LANES {
                // Those who have just been answered are likely to come again.
                expected = batch.len() / 2;
                underway.spawn(self.clone().make(std::mem::take(&mut batch)));
                (patience, is_patient) = (Instant::now() + SLOW, true);
            }
        }
        self.make(batch).await;
        underway.join_all().await;
    }

    async fn make(self: Arc<Self>, batch: Batch) {
        let Batch { appends, removals, marks, bytes: _ } = batch;
        tokio::join!(self.append(appends), self.remove(removals), self.mark(marks));
    }

    async fn append(&self, jobs: Vec<(NewMessage, Reply<Appended>)>) {
        if jobs.is_empty() {
            return;
        }
        let (messages, replies): (Vec<NewMessage>, Vec<_>) = jobs.into_iter().unzip();
        match self.stored(messages).await {
            Ok(appended) => {
                for (reply, appended) in replies.into_iter().zip(appended) {
                    // Whoever asked may have gone; what was done is done.
                    let _ = reply.send(Ok(appended));
                }
            }
            Err(error) => replies.into_iter().for_each(|reply| drop(reply.send(Err(error.clone())))),
        }
    }

    /// Stores messages; what became of each.
    async fn stored(&self, messages: Vec<NewMessage>) -> Result<Vec<Appended>> {
        let rows = self.send(&messages).await?;
        let (first, evicted) = rows.split_first().ok_or_else(|| missing("the first row"))?;
        let mut ids = value::<Vec<i64>>(first, "ids")?.into_iter().map(unsigned).map(MessageId::from);
        let mut all = Vec::with_capacity(messages.len());
        for message in messages {
            let NewMessage { received, headline, body, copies } = message;
            let mut appended = Appended::default();
            for copy in copies {
                let id = ids.next().ok_or_else(|| missing("an id"))?;
                let size = (copy.trace.len() + body.len()) as u64;
                let headline = headline.clone();
                appended.stored.push(Summary { mailbox: copy.mailbox, id, headline, received, size, seen: false });
            }
            all.push(appended);
        }
        let stored = all.iter().flat_map(|appended| &appended.stored);
        let mut changes: Vec<Change> = stored
            .map(|summary| Change { number: summary.id.number(), event: Event::Stored(summary.clone()) })
            .collect();
        for row in evicted {
            let change = rows::change(row)?;
            if let (Event::Deleted(summary), Some(last)) = (&change.event, all.last_mut()) {
                last.evicted.push(summary.clone());
            }
            changes.push(change);
        }
        self.follower.know(rows::number(first, "number")?, changes);
        Ok(all)
    }

    async fn send(&self, messages: &[NewMessage]) -> Result<Vec<Row>> {
        let mails: Vec<&[u8]> = messages.iter().map(|message| &message.body[..]).collect();
        let lengths: Vec<i64> = mails.iter().map(|mail| integer(mail.len())).collect();
        let shared: Vec<bool> = messages.iter().map(|message| message.copies.len() > 1).collect();
        let received: Vec<i64> = messages.iter().map(|message| nanoseconds(message.received)).collect();
        let headlines: Vec<String> = messages.iter().map(|message| rows::headline_text(&message.headline)).collect();
        let headlines: Vec<&[u8]> = headlines.iter().map(String::as_bytes).collect();
        let copies = || (1_i32..).zip(messages).flat_map(|(place, of)| of.copies.iter().map(move |copy| (place, copy)));
        let places: Vec<i32> = copies().map(|(place, _)| place).collect();
        let names: Vec<&[u8]> = copies().map(|(_, copy)| copy.mailbox.as_str().as_bytes()).collect();
        let traces: Vec<&[u8]> = copies().map(|(_, copy)| &copy.trace[..]).collect();
        let new_bytes: i64 = integer(mails.iter().chain(&traces).map(|bytes| bytes.len()).sum::<usize>());
        let (cap, bound): (i64, i64) = (integer(self.limits.messages_per_mailbox), integer(self.limits.bytes));
        let parameters: Parameters<'_> =
            &[&mails, &lengths, &shared, &received, &headlines, &places, &names, &traces, &new_bytes, &cap, &bound];
        self.database.change(APPEND, parameters).await
    }

    async fn remove(&self, jobs: Vec<(MailboxName, MessageId, Reply<Option<Summary>>)>) {
        if jobs.is_empty() {
            return;
        }
        let names: Vec<&[u8]> = jobs.iter().map(|(name, ..)| name.as_str().as_bytes()).collect();
        let ids: Vec<i64> = jobs.iter().map(|(_, id, _)| key(*id)).collect();
        let rows = self.database.change(REMOVE, &[&names, &ids]).await;
        let mut gone = rows.and_then(|rows| self.follower.hear(&rows));
        for (mailbox, id, reply) in jobs {
            // Of several who want the same message gone, the first one gets it.
            let answer = gone.as_mut().map_err(|error| error.clone()).map(|gone| {
                let place = gone.iter().position(|summary| summary.id == id && summary.mailbox == mailbox)?;
                Some(gone.swap_remove(place))
            });
            let _ = reply.send(answer);
        }
    }

    async fn mark(&self, jobs: Vec<(MailboxName, MessageId, bool, Reply<bool>)>) {
        if jobs.is_empty() {
            return;
        }
        let answer = self.marked(&jobs).await;
        for (mailbox, id, _, reply) in jobs {
            let was_there = answer.as_ref().map_err(Clone::clone);
            let _ = reply.send(was_there.map(|there| there.contains(&(mailbox, key(id)))));
        }
    }

    /// Marks messages; those that were there.
    async fn marked(&self, jobs: &[(MailboxName, MessageId, bool, Reply<bool>)]) -> Result<Vec<(MailboxName, i64)>> {
        let names: Vec<&[u8]> = jobs.iter().map(|(name, ..)| name.as_str().as_bytes()).collect();
        let ids: Vec<i64> = jobs.iter().map(|(_, id, ..)| key(*id)).collect();
        let wishes: Vec<bool> = jobs.iter().map(|(_, _, seen, _)| *seen).collect();
        let rows = self.database.change(MARK, &[&names, &ids, &wishes]).await?;
        let (before, rows) = opening(&rows)?;
        let (mut there, mut changes) = (Vec::new(), Vec::new());
        for row in rows {
            match value::<Option<i64>>(row, "number")? {
                Some(_) => changes.push(rows::change(row)?),
                None => there.push((rows::mailbox(row, "mailbox")?, value(row, "id")?)),
            }
        }
        self.follower.know(before, changes);
        Ok(there)
    }
}
