//! The messages of a mailbox as they come: those that are there, and then every one that is stored. Each is handed out once,
//! in the order of ids, which is the order of arrival. Whether it is the right one is for others to say.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;
use restante_store::{Page, Result};
use tokio::time::{Instant, sleep_until};

use crate::waiters::Seat;
use crate::{Desk, Mailroom};

/// How many messages are looked up at once, and held.
const LOOK: usize = 100;

/// See the file's documentation. Nothing is asked again and again: when all there is was handed out, the next delivery
/// to the mailbox wakes whoever waits.
pub struct Arrivals {
    desk: Arc<Desk>,
    mailbox: MailboxName,
    /// Taken before the first look, so that nothing comes unnoticed in between.
    seat: Seat,
    /// The last message that was looked up.
    last: MessageId,
    looked_up: VecDeque<Summary>,
    end: Instant,
    /// Behind the end, the last message that counts: mail can come faster than somebody looks at it.
    final_id: Option<MessageId>,
}

impl Mailroom {
    /// The messages of a mailbox behind this one, as they come within this time. Those that are there now are all handed
    /// out, however long that takes.
    pub fn arrivals(&self, mailbox: &MailboxName, after: MessageId, within: Duration) -> Arrivals {
        Arrivals {
            desk: self.desk.clone(),
            mailbox: mailbox.clone(),
            seat: self.desk.waiters.join(mailbox),
            last: after,
            looked_up: VecDeque::new(),
            end: Instant::now() + within,
            final_id: None,
        }
    }
}

impl Arrivals {
    /// The next message; none when the time is over. Whoever stops waiting for it can go on later.
    pub async fn next(&mut self) -> Result<Option<Summary>> {
        loop {
            if let Some(next) = self.looked_up.pop_front() {
                return Ok(Some(next));
            }
            if self.look().await? {
                continue;
            }
            if self.final_id.is_some() {
                return Ok(None);
            }
            // Behind the end comes one more look, because those who wait in a crowd are woken late.
            tokio::select! {
                () = self.seat.news() => {}
                () = sleep_until(self.end) => {}
            }
        }
    }

    /// Looks up what came since the last time; whether there was anything.
    async fn look(&mut self) -> Result<bool> {
        if self.final_id.is_none() && Instant::now() >= self.end {
            self.final_id = Some(self.desk.store.last_id().await?);
        }
        let before = self.final_id.map(|last| last.number().saturating_add(1).into());
        let page = Page { after: Some(self.last), limit: Some(LOOK), before };
        let found = self.desk.store.list(&self.mailbox, page).await?.messages;
        if let Some(newest) = found.last() {
            self.last = newest.id;
        }
        self.looked_up = found.into();
        Ok(!self.looked_up.is_empty())
    }
}
