//! The messages of a mailbox as they come: those that are there, and then every one that is stored. Each is handed out once,
//! in the order of ids, which is the order of arrival. Whether it is the right one is for others to say.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
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
    /// The end by a clock that cannot be set, and by the one that messages are received by.
    end: Instant,
    ends: Timestamp,
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
            ends: Timestamp::now().saturating_add(within).unwrap_or(Timestamp::MAX),
        }
    }
}

impl Arrivals {
    /// The next message; none when the time is over. Whoever stops waiting for it can go on later.
    pub async fn next(&mut self) -> Result<Option<Summary>> {
        let mut is_over = false;
        loop {
            if let Some(next) = self.looked_up.pop_front() {
                // Mail can come faster than somebody looks at it.
                return Ok((next.received <= self.ends).then_some(next));
            }
            if self.look().await? {
                continue;
            }
            if is_over {
                return Ok(None);
            }
            // Behind the end comes one more look, because those who wait in a crowd are woken late.
            is_over = tokio::select! {
                () = self.seat.news() => false,
                () = sleep_until(self.end) => true,
            };
        }
    }

    /// Looks up what came since the last time; whether there was anything.
    async fn look(&mut self) -> Result<bool> {
        let page = Page { after: Some(self.last), limit: Some(LOOK), before: None };
        let found = self.desk.store.list(&self.mailbox, page).await?.messages;
        if let Some(newest) = found.last() {
            self.last = newest.id;
        }
        self.looked_up = found.into();
        Ok(!self.looked_up.is_empty())
    }
}
