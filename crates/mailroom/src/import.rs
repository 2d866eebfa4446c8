//! Import of a message: it is stored without a delivery.

use bytes::Bytes;
use jiff::Timestamp;
use restante_mail::details::{DetailFields, Details};
use restante_mail::message::{Flags, Headline, Summary};
use restante_mail::mime::summarize;
use restante_mail::naming::MailboxName;
use restante_mail::tags::Tags;
use restante_store::{Appended, NewCopy, NewMessage, Result, StoreError};

use crate::run_to_completion::run_to_completion;
use crate::{DeletionCause, Inner, Mailroom};

/// A message for [`Mailroom::import`].
#[derive(Clone, Debug)]
pub struct Import {
    /// The mailbox.
    pub mailbox: MailboxName,
    /// The time of receipt. A time in the future becomes the current time, because it would prolong the retention of the
    /// message.
    pub received: Timestamp,
    /// Whether it is marked as read.
    pub seen: bool,
    /// The flags.
    pub flags: Flags,
    /// The tags.
    pub tags: Tags,
    /// The source. It is stored without any change.
    pub message: Bytes,
}

impl Mailroom {
    /// Stores a message without a delivery: hooks and the policy are not asked, and the source gets no trace lines. Sender,
    /// recipients and subject are from the header, and there is no envelope. Publishes the message like a delivered one.
    ///
    /// Returns [`StoreError::NoSpace`] if the message is larger than the mailbox may be. Once the store was called, the change
    /// completes and is published, even if the future is dropped.
    pub async fn import(&self, import: Import) -> Result<Summary> {
        check_size(import.message.len() as u64, &import.mailbox, self.mailbox_limits(&import.mailbox).bytes)?;
        let message = import.into_message(Timestamp::now());
        let inner = self.inner.clone();
        let operation = async move { only_copy(inner.store_message(message).await?) };
        run_to_completion(operation).await
    }
}

impl Import {
    fn into_message(self, now: Timestamp) -> NewMessage {
        let Self { mailbox, received, seen, flags, tags, message: body } = self;
        let (header, preview) = summarize(&body);
        let from = header.from.as_deref().unwrap_or("<>");
        let to = header.to.iter().flatten().map(String::as_str);
        let headline = Headline::new(from, to, &header.subject);
        let details = Details::new(&DetailFields::of_source(&header, &preview));
        let copy =
            NewCopy { mailbox: mailbox.relative_to(None), seen, flags, tags, details, trace: Some(Bytes::new()) };
        let received = received.clamp(Timestamp::UNIX_EPOCH, now);
        NewMessage { received, headline, body, copies: vec![copy] }
    }
}

impl Inner {
    /// Stores a message and publishes it. Returns its copies.
    pub(crate) async fn store_message(&self, message: NewMessage) -> Result<Vec<Summary>> {
        let _guard = self.hub.begin_delivery();
        let body = message.body.clone();
        Ok(self.publish_appended(self.store.append(message).await?, &body))
    }

    /// Stores messages in this order and publishes them. Returns the copies of each.
    pub(crate) async fn store_in_order(&self, messages: Vec<NewMessage>) -> Vec<Result<Vec<Summary>>> {
        let _guard = self.hub.begin_delivery();
        let bodies: Vec<Bytes> = messages.iter().map(|message| message.body.clone()).collect();
        let appended = self.store.append_in_order(messages).await;
        appended.into_iter().zip(&bodies).map(|(appended, body)| Ok(self.publish_appended(appended?, body))).collect()
    }

    fn publish_appended(&self, appended: Appended, body: &Bytes) -> Vec<Summary> {
        self.counters.count_stored(body.len(), appended.stored.len());
        self.publish_stored(&appended.stored, body);
        self.publish_deleted(DeletionCause::Limit, appended.evicted);
        appended.stored
    }
}

/// Fails if a source is larger than its mailbox may be. The store would evict the message at once.
fn check_size(size: u64, mailbox: &MailboxName, max_bytes: u64) -> Result<()> {
    if size <= max_bytes {
        return Ok(());
    }
    let cause = format!("the message has {size} bytes, and mailbox {mailbox} has at most {max_bytes}");
    Err(StoreError::NoSpace(cause))
}

/// Returns the copy of a message that was stored in one mailbox.
pub(crate) fn only_copy(mut stored: Vec<Summary>) -> Result<Summary> {
    stored.pop().ok_or_else(|| StoreError::Broken("the store returned no copy of a message".to_owned()))
}
