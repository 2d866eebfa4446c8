//! The messages of one mailbox, or of all, in order of arrival: first those that exist, then each one that is stored. Each
//! message is returned once. Ids ascend in order of arrival. The caller decides whether a message is the one it waits for.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use restante_mail::message::{Message, MessageId};
use restante_mail::naming::{MailboxName, Project};
use restante_store::{Page, Result};
use tokio::time::{Instant, sleep_until};

use crate::events::TopicReceiver;
use crate::{Inner, Mailroom};

/// The number of messages that one query returns and that are buffered.
const LOOKUP_BATCH_SIZE: usize = 100;
/// The maximum number of existing messages of all mailboxes that one stream returns: the newest ones. Messages that arrive
/// later are not counted.
const MAX_EXISTING_MESSAGES: usize = 10_000;

/// The messages that [`Arrivals`] returns.
#[derive(Clone, Debug)]
pub enum ArrivalSource {
    /// Those of one mailbox. They contain only the copy in this mailbox.
    Mailbox(MailboxName),
    /// Those of all mailboxes, or of all in a project.
    All(Option<Project>),
}

/// A stream of messages, made by [`Mailroom::arrivals`]. It does not poll the store: once all existing messages were
/// returned, the next delivery wakes it.
pub struct Arrivals {
    inner: Arc<Inner>,
    source: ArrivalSource,
    /// Registered before the first query, so that no delivery in between is missed.
    deliveries: TopicReceiver,
    /// The last copy that a query returned.
    last_id: MessageId,
    buffered: VecDeque<Message>,
    deadline: Instant,
    /// Set when the deadline has passed: the last message to return. Without it, messages that arrive faster than the
    /// caller reads them would keep the stream open for ever.
    final_id: Option<MessageId>,
    /// Set when the number of existing messages is known to be within the limit.
    is_bounded: bool,
    has_waited: bool,
}

impl Mailroom {
    /// Returns the messages of a source after the id `after` that exist or are stored within `within`. Messages that exist
    /// now are returned even if that takes longer: those of one mailbox all, others up to the newest 10,000. The names of
    /// mailboxes are relative if that of the source is, or to its project.
    pub fn arrivals(&self, source: ArrivalSource, after: MessageId, within: Duration) -> Arrivals {
        let mailbox = match &source {
            ArrivalSource::Mailbox(mailbox) => Some(mailbox.clone()),
            ArrivalSource::All(_) => None,
        };
        Arrivals {
            inner: self.inner.clone(),
            // A mailbox has its own limit.
            is_bounded: mailbox.is_some(),
            deliveries: self.inner.hub.listen(mailbox),
            source,
            last_id: after,
            buffered: VecDeque::new(),
            deadline: Instant::now() + within,
            final_id: None,
            has_waited: false,
        }
    }
}

impl Arrivals {
    /// Returns the next message, or `None` after the deadline. Cancel safe: no message is lost if the future is
    /// dropped.
    pub async fn next(&mut self) -> Result<Option<Message>> {
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
            self.has_waited = true;
            // There is one more query after the deadline.
            tokio::select! {
                () = self.deliveries.message_stored() => {}
                () = sleep_until(self.deadline) => {}
            }
        }
    }

    /// Returns true if all existing messages were returned before the deadline, and the stream waited for more.
    pub fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// Queries the messages that were stored since the last query. Returns false if there are none.
    async fn fetch_batch(&mut self) -> Result<bool> {
        if self.final_id.is_none() && Instant::now() >= self.deadline {
            self.final_id = Some(self.inner.store.last_id().await?);
        }
        let mut found = self.query_batch().await?;
        if !self.is_bounded {
            self.is_bounded = true;
            // A page that is not full contains all messages.
            if found.len() >= LOOKUP_BATCH_SIZE && self.skip_old_messages().await? {
                found = self.query_batch().await?;
            }
        }
        if let Some(newest) = found.last().and_then(|message| message.copies().last()) {
            self.last_id = newest.id;
        }
        self.buffered = found.into();
        Ok(!self.buffered.is_empty())
    }
    /// Returns the next messages after the last query.
    async fn query_batch(&self) -> Result<Vec<Message>> {
        let before = self.final_id.map(|last| last.number().saturating_add(1).into());
        let page = Page { after: Some(self.last_id), limit: Some(LOOKUP_BATCH_SIZE), before };
        Ok(match &self.source {
            ArrivalSource::Mailbox(mailbox) => Message::group(self.inner.list(mailbox, page).await?.messages),
            ArrivalSource::All(project) => self.inner.messages(project.as_ref(), page).await?.messages,
        })
    }

    /// Continues with the oldest of the newest `MAX_EXISTING_MESSAGES` if there are more after the last query. Returns
    /// whether messages are skipped.
    async fn skip_old_messages(&mut self) -> Result<bool> {
        let (limit, ArrivalSource::All(project)) = (MAX_EXISTING_MESSAGES, &self.source) else { return Ok(false) };
        if self.inner.store.usage().await?.messages <= limit as u64 {
            return Ok(false);
        }
        let page = Page { after: None, before: None, limit: Some(limit) };
        let newest = self.inner.store.messages(project.as_ref(), page).await?.messages;
        let Some(first) = newest.first().filter(|_| newest.len() >= limit) else { return Ok(false) };
        let skipped_up_to = first.id().number().saturating_sub(1).into();
        let skips = skipped_up_to > self.last_id;
        self.last_id = self.last_id.max(skipped_up_to);
        Ok(skips)
    }
}
