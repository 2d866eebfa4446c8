//! Changes of the marks of copies: whether they are read, their flags and their tags.

use std::sync::Arc;

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_mail::tags::Tags;
use restante_store::{CopyKey, CopyUpdate, MessageSelector, Result, Store, UpdateOutcome};

use crate::events::MarkChange;
use crate::run_to_completion::run_to_completion;
use crate::{CHANGE_BATCH_SIZE, Inner, Mailroom};

impl Mailroom {
    /// Changes the marks of copies in batches, and publishes the changes. Returns the outcomes in the order of the updates.
    /// After an error some of the updates may have been made.
    pub async fn update_copies(&self, updates: Vec<CopyUpdate>) -> Result<Vec<UpdateOutcome>> {
        let inner = self.inner.clone();
        let operation = async move {
            let mut outcomes = Vec::with_capacity(updates.len());
            for batch in updates.chunks(CHANGE_BATCH_SIZE) {
                outcomes.extend(inner.update_copies(batch).await?);
            }
            Ok(outcomes)
        };
        run_to_completion(operation).await
    }

    /// Marks a message as read or unread. Returns false if it does not exist.
    pub async fn set_seen(&self, mailbox: &MailboxName, id: MessageId, seen: bool) -> Result<bool> {
        let copy = CopyKey { mailbox: mailbox.clone(), id };
        Ok(self.mark_copies(vec![copy], seen).await? > 0)
    }

    /// Marks copies as read or unread. Returns how many of them existed. After an error some of them are marked.
    pub async fn mark_copies(&self, copies: Vec<CopyKey>, seen: bool) -> Result<usize> {
        self.update_each(copies, |copy| CopyUpdate { seen: Some(seen), ..CopyUpdate::new(copy) }).await
    }

    /// Sets the tags of copies. Returns how many of them exist. After an error some of them may have the new tags.
    pub async fn set_tags(&self, copies: Vec<CopyKey>, tags: Tags) -> Result<usize> {
        self.update_each(copies, |copy| CopyUpdate { tags: Some(tags.clone()), ..CopyUpdate::new(copy) }).await
    }

    /// Makes an update of each of these copies. Returns how many of them existed.
    async fn update_each(&self, copies: Vec<CopyKey>, update: impl FnMut(CopyKey) -> CopyUpdate) -> Result<usize> {
        let outcomes = self.update_copies(copies.into_iter().map(update).collect()).await?;
        Ok(outcomes.iter().filter(|outcome| outcome.updated().is_some()).count())
    }

    /// Changes the tags of copies to those that `update` returns. It gets the current tags: if a copy is changed meanwhile, it
    /// is called again. After an error some of the copies may have the new tags.
    pub async fn update_tags(
        &self,
        copies: Vec<CopyKey>,
        update: impl Fn(&Tags) -> Tags + Send + Sync + 'static,
    ) -> Result<()> {
        let inner = self.inner.clone();
        let operation = async move {
            for batch in copies.chunks(CHANGE_BATCH_SIZE) {
                let mut remaining = batch.to_vec();
                while !remaining.is_empty() {
                    remaining = inner.try_update_tags(remaining, &update).await?;
                }
            }
            Ok(())
        };
        run_to_completion(operation).await
    }
}

impl Inner {
    /// Makes these updates together, and publishes the changes.
    async fn update_copies(&self, updates: &[CopyUpdate]) -> Result<Vec<UpdateOutcome>> {
        let outcomes = self.store.update_copies(updates.to_vec()).await?;
        let changes =
            updates.iter().zip(&outcomes).filter_map(|(update, outcome)| MarkChange::of_update(update, outcome));
        self.publish_marks(&changes.collect::<Vec<_>>());
        Ok(outcomes)
    }

    /// Changes the tags of copies to those that `update` returns. Returns the copies that were changed meanwhile.
    async fn try_update_tags(
        &self,
        copies: Vec<CopyKey>,
        update: &(impl Fn(&Tags) -> Tags + Sync),
    ) -> Result<Vec<CopyKey>> {
        let find = |store: Arc<dyn Store>, CopyKey { mailbox, id }: CopyKey| async move {
            store.find(&mailbox, MessageSelector::Id(id)).await
        };
        let (found, last_error) = self.change_each(copies, find).await;
        last_error.map_or(Ok(()), Err)?;
        let mut updates = Vec::new();
        for copy in found.into_iter().flatten() {
            let tags = update(&copy.tags);
            if tags != copy.tags {
                let (tags, if_modseq) = (Some(tags), Some(copy.modseq));
                updates.push(CopyUpdate { tags, if_modseq, ..CopyUpdate::new((&copy).into()) });
            }
        }
        if updates.is_empty() {
            return Ok(Vec::new());
        }
        let outcomes = self.update_copies(&updates).await?;
        let changed = updates.into_iter().zip(outcomes).filter(|(_, outcome)| *outcome == UpdateOutcome::Conflict);
        Ok(changed.map(|(update, _)| update.copy).collect())
    }
}
