//! Copies of stored messages in another mailbox.

use restante_mail::message::Summary;
use restante_mail::naming::MailboxName;
use restante_store::{CopyKey, MailboxLimits, MessageSelector, NewCopy, NewMessage, Result, StoreError};

use crate::import::only_copy;
use crate::run_to_completion::run_to_completion;
use crate::{CHANGE_BATCH_SIZE, DeletionCause, Inner, Mailroom};

/// The number of messages that are stored together, and the number of bytes above which no further one is added to them.
/// The store commits them together.
const BATCH_MESSAGES: usize = 30;
const BATCH_BYTES: u64 = 1 << 20;

impl Mailroom {
    /// Copies messages to a mailbox, in this order, and publishes them like delivered ones. A new copy has the source, time of
    /// receipt, headline, details, read mark, flags and tags of the old one, and
    /// [`Details::original`](restante_mail::details::Details::original). Its result is `None` if the old one does not exist.
    ///
    /// If one of the messages cannot be copied, the copies of the others are deleted again. Returns
    /// [`StoreError::NoSpace`] if the messages together exceed the limits of the mailbox: the store would evict some of them.
    pub async fn copy(&self, copies: Vec<CopyKey>, target: &MailboxName) -> Result<Vec<Option<Summary>>> {
        self.copy_or_move(copies, target, false).await
    }

    /// Moves messages to a mailbox: copies them like [`Mailroom::copy`], then deletes the old copies and counts them under
    /// [`DeletionCause::Expunged`]. If they cannot be deleted, the new copies are deleted again.
    pub async fn move_copies(&self, copies: Vec<CopyKey>, target: &MailboxName) -> Result<Vec<Option<Summary>>> {
        self.copy_or_move(copies, target, true).await
    }

    async fn copy_or_move(
        &self,
        copies: Vec<CopyKey>,
        target: &MailboxName,
        is_move: bool,
    ) -> Result<Vec<Option<Summary>>> {
        let limits = self.mailbox_limits(target);
        let (inner, target) = (self.inner.clone(), target.relative_to(None));
        let operation = async move {
            check_limits(&target, limits, copies.len() as u64, 0)?;
            let mut stored = Vec::with_capacity(copies.len());
            if let Err(error) = inner.copy_in_batches(&copies, &target, limits, &mut stored).await {
                inner.remove_incomplete(stored.iter().flatten().map(CopyKey::from).collect()).await;
                return Err(error);
            }
            if is_move && let Err(error) = inner.remove_originals(&copies, &stored).await {
                inner.undo_move(&copies, &stored).await;
                return Err(error);
            }
            Ok(stored)
        };
        run_to_completion(operation).await
    }
}

impl Inner {
    /// Copies messages, and adds the results to `stored`. After an error these are the copies that were made.
    async fn copy_in_batches(
        &self,
        copies: &[CopyKey],
        target: &MailboxName,
        limits: MailboxLimits,
        stored: &mut Vec<Option<Summary>>,
    ) -> Result<()> {
        let (mut batch, mut batch_bytes, mut bytes) = (Vec::new(), 0, 0);
        for CopyKey { mailbox, id } in copies {
            let message = match self.store.find(mailbox, MessageSelector::Id(*id)).await? {
                Some(old) => {
                    bytes += old.size;
                    batch_bytes += old.size;
                    check_limits(target, limits, 0, bytes)?;
                    self.load_copy(old, target).await?
                }
                None => None,
            };
            batch.push(message);
            if batch.len() >= BATCH_MESSAGES || batch_bytes >= BATCH_BYTES {
                self.store_copies(std::mem::take(&mut batch), stored).await?;
                batch_bytes = 0;
            }
        }
        self.store_copies(batch, stored).await
    }

    /// Returns the message to be stored for a copy. `None` if the old one does not exist.
    async fn load_copy(&self, old: Summary, target: &MailboxName) -> Result<Option<NewMessage>> {
        let Some(source) = self.store.source(&old.mailbox, old.id).await? else { return Ok(None) };
        let Summary { headline, received, seen, flags, tags, details, message, .. } = old;
        let details = details.with_original(message);
        let copy = NewCopy { mailbox: target.clone(), seen, flags, tags, details, trace: Some(source.trace) };
        Ok(Some(NewMessage { received, headline, body: source.body, copies: vec![copy] }))
    }

    /// Stores messages together. Their UIDs ascend in this order.
    async fn store_copies(&self, batch: Vec<Option<NewMessage>>, stored: &mut Vec<Option<Summary>>) -> Result<()> {
        let exist: Vec<bool> = batch.iter().map(Option::is_some).collect();
        let mut outcomes = self.store_in_order(batch.into_iter().flatten().collect()).await.into_iter();
        let mut result = Ok(());
        for exists in exist {
            let outcome = if exists { outcomes.next() } else { None };
            stored.push(match outcome.map(|copies| copies.and_then(only_copy)).transpose() {
                Ok(copy) => copy,
                Err(error) => {
                    result = Err(error);
                    None
                }
            });
        }
        result
    }

    /// Deletes the old copies of the messages that were copied.
    async fn remove_originals(&self, copies: &[CopyKey], stored: &[Option<Summary>]) -> Result<()> {
        let originals = copies.iter().zip(stored).filter(|(_, copy)| copy.is_some());
        let originals: Vec<CopyKey> = originals.map(|(original, _)| original.clone()).collect();
        for batch in originals.chunks(CHANGE_BATCH_SIZE) {
            let removed = self.store.remove_copies(batch.to_vec()).await?;
            self.publish_deleted(DeletionCause::Expunged, removed);
        }
        Ok(())
    }

    /// Deletes the new copies of the messages whose old copies still exist. A deletion that fails may have been made, for
    /// example if the connection to the store is lost: then the new copy is the only one.
    async fn undo_move(&self, copies: &[CopyKey], stored: &[Option<Summary>]) {
        let mut duplicates = Vec::new();
        for (CopyKey { mailbox, id }, copy) in copies.iter().zip(stored) {
            if let Some(copy) = copy
                && matches!(self.store.find(mailbox, MessageSelector::Id(*id)).await, Ok(Some(_)))
            {
                duplicates.push(CopyKey::from(copy));
            }
        }
        self.remove_incomplete(duplicates).await;
    }

    /// Deletes the copies that were made before an error.
    async fn remove_incomplete(&self, copies: Vec<CopyKey>) {
        for batch in copies.chunks(CHANGE_BATCH_SIZE) {
            match self.store.remove_copies(batch.to_vec()).await {
                Ok(removed) => self.publish_deleted(DeletionCause::Request, removed),
                Err(error) => {
                    tracing::error!(%error, "cannot delete the copies of an incomplete COPY or MOVE; they stay");
                }
            }
        }
    }
}

/// Fails if a mailbox cannot hold this many messages and bytes. The store would evict the first of them.
fn check_limits(mailbox: &MailboxName, limits: MailboxLimits, messages: u64, bytes: u64) -> Result<()> {
    if messages <= limits.messages && bytes <= limits.bytes {
        return Ok(());
    }
    let MailboxLimits { messages: max_messages, bytes: max_bytes } = limits;
    let cause = if messages > max_messages {
        format!("{messages} messages are copied, and mailbox {mailbox} has at most {max_messages}")
    } else {
        format!("messages of {bytes} bytes are copied, and mailbox {mailbox} has at most {max_bytes} bytes")
    };
    Err(StoreError::NoSpace(cause))
}
