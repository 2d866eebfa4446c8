//! The limit on the number of messages in the whole store: deletes the oldest messages above it, in batches. The time of
//! receipt decides, as for retention: imported messages keep theirs.

use std::time::Duration;

use restante_mail::message::Summary;
use restante_store::{AgeRange, CopyKey, Result};

use crate::retention::{ROUND_INTERVAL, RoundMessages, run_every};
use crate::{DeletionCause, Mailroom};

/// The number of copies that are deleted at once. A store with one writer delays deliveries during a batch, so it is small.
const BATCH_COPIES: usize = 100;
/// How long one round waits in total for subscribers, so that they get every event.
const MAX_SUBSCRIBER_WAIT: Duration = Duration::from_secs(1);

impl Mailroom {
    /// Deletes the oldest messages if there are more than `max_messages`, about a second after they were exceeded, for as
    /// long as the future is polled. Several nodes that share a store may do so at the same time.
    pub async fn run_message_limit(&self, max_messages: usize) {
        let messages = RoundMessages {
            resumed: "the limit on messages is enforced again",
            failed: "cannot delete the messages above storage.maxmessages, retrying every second",
        };
        run_every(ROUND_INTERVAL, messages, || self.enforce_message_limit(max_messages as u64)).await;
    }

    /// Deletes the oldest messages until there are at most `max_messages`.
    async fn enforce_message_limit(&self, max_messages: u64) -> Result<()> {
        let mut wait_budget = MAX_SUBSCRIBER_WAIT;
        while self.inner.store.usage().await?.messages > max_messages {
            let oldest = self.inner.store.oldest(AgeRange::default(), BATCH_COPIES).await?;
            // Counted again after the oldest messages were read. If another node deletes the same messages meanwhile, they
            // are either not counted, or deleting them a second time has no effect.
            let excess = self.inner.store.usage().await?.messages.saturating_sub(max_messages);
            let copies = first_messages(&oldest, usize::try_from(excess).unwrap_or(usize::MAX));
            if copies.is_empty() {
                return Ok(());
            }
            self.remove_copies(copies.iter().map(CopyKey::from).collect(), DeletionCause::Limit).await?;
            wait_budget = self.inner.hub.wait_for_subscribers(wait_budget).await;
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// Returns the copies of the first `limit` messages. If the last of them is incomplete, the next batch has its other copies.
fn first_messages(copies: &[Summary], limit: usize) -> &[Summary] {
    let mut messages = copies.chunk_by(|copy, next| copy.message == next.message);
    &copies[..messages.by_ref().take(limit).map(<[Summary]>::len).sum()]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use jiff::Timestamp;
    use restante_mail::details::Details;
    use restante_mail::message::{Flags, Headline};
    use restante_mail::tags::Tags;
    use restante_store::memory::MemoryStore;
    use restante_store::{Limits, NewCopy, NewMessage, Page, Store};

    use super::*;
    use crate::Settings;
    use crate::hooks::Extensions;

    fn mailroom(store: &Arc<MemoryStore>) -> Mailroom {
        Mailroom::new(Settings::default(), store.clone(), Extensions::default())
    }

    /// Adds a message at this second with a copy in each of these mailboxes.
    async fn add(store: &MemoryStore, second: i64, mailboxes: &[&str]) {
        let copy = |mailbox: &&str| NewCopy {
            mailbox: (*mailbox).to_owned().into(),
            seen: false,
            flags: Flags::default(),
            tags: Tags::default(),
            details: Details::default(),
            trace: Some(Bytes::new()),
        };
        let message = NewMessage {
            received: Timestamp::from_second(second).unwrap(),
            headline: Headline::new("", [], &second.to_string()),
            body: Bytes::new(),
            copies: mailboxes.iter().map(copy).collect(),
        };
        store.append(message).await.unwrap();
    }

    async fn subjects(store: &MemoryStore) -> Vec<String> {
        let messages = store.messages(None, Page::ALL).await.unwrap().messages;
        messages.iter().map(|message| message.first().headline.subject().to_owned()).collect()
    }

    #[tokio::test]
    async fn oldest_messages_above_the_limit_are_deleted() {
        let store = Arc::new(MemoryStore::new(Limits::default()));
        let mailroom = mailroom(&store);
        for second in 1..=5 {
            add(&store, second, if second == 2 { &["ann", "bob"] } else { &["bob"] }).await;
        }
        mailroom.enforce_message_limit(5).await.unwrap();
        assert_eq!(mailroom.counts().deleted_by(DeletionCause::Limit), 0);
        mailroom.enforce_message_limit(3).await.unwrap();
        assert_eq!(subjects(&store).await, ["3", "4", "5"]);
        assert_eq!(
            mailroom.counts().deleted_by(DeletionCause::Limit),
            3,
            "a message is deleted with all of its copies"
        );
    }

    #[tokio::test]
    async fn time_of_receipt_decides_which_messages_are_the_oldest() {
        let store = Arc::new(MemoryStore::new(Limits::default()));
        for second in [50, 10, 40, 20, 30] {
            add(&store, second, &["bob"]).await;
        }
        mailroom(&store).enforce_message_limit(3).await.unwrap();
        assert_eq!(subjects(&store).await, ["50", "40", "30"], "in the order of their ids");
    }

    #[tokio::test]
    async fn messages_with_many_copies_are_deleted_completely() {
        let store = Arc::new(MemoryStore::new(Limits::default()));
        let names: Vec<String> = (0..=2 * BATCH_COPIES).map(|number| format!("mailbox{number}")).collect();
        add(&store, 1, &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
        add(&store, 2, &["bob"]).await;
        mailroom(&store).enforce_message_limit(1).await.unwrap();
        assert_eq!(subjects(&store).await, ["2"]);
        assert_eq!(store.usage().await.unwrap().copies, 1);
    }

    #[tokio::test]
    async fn nodes_do_not_delete_more_than_the_excess() {
        let store = Arc::new(MemoryStore::new(Limits::default()));
        let nodes = [mailroom(&store), mailroom(&store)];
        for second in 1..=350 {
            add(&store, second, &["bob"]).await;
        }
        let (one, other) = tokio::join!(nodes[0].enforce_message_limit(7), nodes[1].enforce_message_limit(7));
        one.and(other).unwrap();
        assert_eq!(subjects(&store).await, ["344", "345", "346", "347", "348", "349", "350"]);
    }
}
