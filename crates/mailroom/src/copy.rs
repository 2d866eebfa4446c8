//! Copies of stored messages in another mailbox.

use futures_util::future::join_all;
use restante_mail::message::Summary;
use restante_mail::naming::MailboxName;
use restante_store::{CopyKey, MessageSelector, NewCopy, NewMessage, Result};

use crate::import::{check_size, only_copy};
use crate::run_to_completion::run_to_completion;
use crate::{CHANGE_BATCH_SIZE, DeletionCause, Inner, Mailroom};

/// The number of messages that are stored concurrently, and the number of bytes above which no further one is added to them.
/// The store commits concurrent changes together.
const BATCH_MESSAGES: usize = 30;
const BATCH_BYTES: u64 = 8 << 20;

impl Mailroom {
    /// Copies messages to a mailbox, in this order, and publishes them like delivered ones. A new copy has the source, time of
    /// receipt, headline, details, read mark, flags and tags of the old one. Its result is `None` if the old one does not exist.
    ///
    /// If one of the messages cannot be copied, the copies of the others are deleted again. Returns
    /// [`StoreError::NoSpace`](crate::StoreError::NoSpace) if a message is larger than the mailbox may be.
    pub async fn copy(&self, copies: Vec<CopyKey>, target: &MailboxName) -> Result<Vec<Option<Summary>>> {
        let max_bytes = self.mailbox_limits(target).bytes;
        let (inner, target) = (self.inner.clone(), target.relative_to(None));
        let operation = async move {
            let mut stored = Vec::with_capacity(copies.len());
            match inner.copy_in_batches(&copies, &target, max_bytes, &mut stored).await {
                Ok(()) => Ok(stored),
                Err(error) => {
                    inner.remove_incomplete(stored.iter().flatten().map(CopyKey::from).collect()).await;
                    Err(error)
                }
            }
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
        max_bytes: u64,
        stored: &mut Vec<Option<Summary>>,
    ) -> Result<()> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for copy in copies {
            let message = self.load_copy(copy, target, max_bytes).await?;
            bytes += message.as_ref().map_or(0, |message| message.body.len() as u64);
            batch.push(message);
            if batch.len() >= BATCH_MESSAGES || bytes >= BATCH_BYTES {
                self.store_copies(std::mem::take(&mut batch), stored).await?;
                bytes = 0;
            }
        }
        self.store_copies(batch, stored).await
    }

    /// Returns the message to be stored for a copy. `None` if the old one does not exist.
    async fn load_copy(&self, copy: &CopyKey, target: &MailboxName, max_bytes: u64) -> Result<Option<NewMessage>> {
        let CopyKey { mailbox, id } = copy;
        let Some(old) = self.store.find(mailbox, MessageSelector::Id(*id)).await? else { return Ok(None) };
        check_size(old.size, target, max_bytes)?;
        let Some(source) = self.store.source(mailbox, *id).await? else { return Ok(None) };
        let Summary { headline, received, seen, flags, tags, details, .. } = old;
        let copy = NewCopy { mailbox: target.clone(), seen, flags, tags, details, trace: Some(source.trace) };
        Ok(Some(NewMessage { received, headline, body: source.body, copies: vec![copy] }))
    }

    /// Stores messages concurrently. They get ascending ids, because the store receives them in this order.
    async fn store_copies(&self, batch: Vec<Option<NewMessage>>, stored: &mut Vec<Option<Summary>>) -> Result<()> {
        let store = async |message: Option<NewMessage>| match message {
            Some(message) => only_copy(self.store_message(message).await?).map(Some),
            None => Ok(None),
        };
        let mut result = Ok(());
        for outcome in join_all(batch.into_iter().map(store)).await {
            match outcome {
                Ok(copy) => stored.push(copy),
                Err(error) => result = Err(error),
            }
        }
        result
    }

    /// Deletes the copies that were made before an error.
    async fn remove_incomplete(&self, copies: Vec<CopyKey>) {
        for batch in copies.chunks(CHANGE_BATCH_SIZE) {
            match self.store.remove_copies(batch.to_vec()).await {
                Ok(removed) => self.publish_deleted(DeletionCause::Request, removed),
                Err(error) => tracing::error!(%error, "cannot delete the copies of an incomplete COPY; they stay"),
            }
        }
    }
}
