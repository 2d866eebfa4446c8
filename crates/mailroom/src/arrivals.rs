//! The messages of a mailbox as they come: those that are there, and then every one that is stored. Each is handed out once,
//! in the order of ids, which is the order of arrival. Whether it is the right one is for others to say.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use restante_store::{Page, Result};
use tokio::time::{Instant, sleep_until};

use crate::wait_registry::Ticket;
use crate::{Inner, Mailroom};

/// How many messages are looked up at once, and held.
const LOOKUP_BATCH_SIZE: usize = 100;

/// See the file's documentation. Nothing is asked again and again: when all there is was handed out, the next delivery
/// to the mailbox wakes whoever waits.
pub struct Arrivals {
    inner: Arc<Inner>,
    mailbox: MailboxName,
    /// Taken before the first look, so that nothing comes unnoticed in between.
    ticket: Ticket,
    /// The last message that was looked up.
    last_id: MessageId,
    buffered: VecDeque<Summary>,
    deadline: Instant,
    /// Behind the end, the last message that counts: mail can come faster than somebody looks at it.
    final_id: Option<MessageId>,
}

impl Mailroom {
    /// The messages of a mailbox behind this one, as they come within this time. Those that are there now are all handed
    /// out, however long that takes.
    pub fn arrivals(&self, mailbox: &MailboxName, after: MessageId, within: Duration) -> Arrivals {
        Arrivals {
            inner: self.inner.clone(),
            mailbox: mailbox.clone(),
            ticket: self.inner.wait_registry.register(mailbox),
            last_id: after,
            buffered: VecDeque::new(),
            deadline: Instant::now() + within,
            final_id: None,
        }
    }
}

impl Arrivals {
    /// The next message; none when the time is over. Whoever stops waiting for it can go on later.
    pub async fn next(&mut self) -> Result<Option<Summary>> {
        loop {
            if let Some(next) = self.buffered.pop_front() {
                return Ok(Some(next));
            }
            if self.fetch_batch().await? {
                continue;
            }
            if self.final_id.is_some() {
                return Ok(None);
            }
            // Behind the end comes one more look, because those who wait in a crowd are woken late.
            tokio::select! {
                () = self.ticket.notified() => {}
                () = sleep_until(self.deadline) => {}
            }
        }
    }

    /// Looks up what came since the last time; whether there was anything.
    async fn fetch_batch(&mut self) -> Result<bool> {
        if self.final_id.is_none() && Instant::now() >= self.deadline {
            self.final_id = Some(self.inner.store.last_id().await?);
        }
        let before = self.final_id.map(|last| last.number().saturating_add(1).into());
        let page = Page { after: Some(self.last_id), limit: Some(LOOKUP_BATCH_SIZE), before };
        let found = self.inner.store.list(&self.mailbox, page).await?.messages;
        if let Some(newest) = found.last() {
            self.last_id = newest.id;
        }
        self.buffered = found.into();
        Ok(!self.buffered.is_empty())
    }
}
