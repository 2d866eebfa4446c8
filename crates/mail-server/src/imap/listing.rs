//! The lists of messages of mailboxes, and a cache for large ones.

use std::sync::Arc;

use restante_cache::{Cache, CacheValue};
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_mailroom::Mailroom;
use restante_proto::imap::{Listed, ListedMessage};
use restante_store::{IndexEntry, StoreError, Version};

/// The number of messages that are listed at once.
const PAGE_SIZE: usize = 20_000;
/// The memory for lists that were read.
const MAX_CACHED_BYTES: usize = 64 << 20;
/// Smaller lists are not cached.
const MIN_CACHED_MESSAGES: usize = 1000;

/// The lists of large mailboxes that were opened last. Programs open the same mailbox again and again.
#[derive(Debug)]
pub struct ListCache(Cache<MailboxName, CachedList>);

/// A cached list. Its clones share the messages.
#[derive(Clone, Debug)]
struct CachedList(Listed);

impl CacheValue for CachedList {
    fn bytes(&self) -> usize {
        let bytes = |message: &ListedMessage| size_of::<ListedMessage>() + message.marks.tags.encoded().len();
        self.0.messages.iter().map(bytes).sum()
    }
}

impl Default for ListCache {
    fn default() -> Self {
        Self(Cache::new(MAX_CACHED_BYTES))
    }
}

impl ListCache {
    /// Lists a mailbox.
    pub(super) async fn list(&self, mailroom: &Mailroom, mailbox: &MailboxName) -> Result<Listed, StoreError> {
        let Version(version) = mailroom.version(mailbox).await?;
        if let Some(CachedList(listed)) = self.0.get(mailbox, version) {
            return Ok(listed);
        }
        let listed = list_mailbox(mailroom, mailbox, MessageId::ZERO).await?;
        // A change during the listing would give the mailbox another version.
        if listed.messages.len() >= MIN_CACHED_MESSAGES && mailroom.version(mailbox).await? == Version(version) {
            self.0.insert(mailbox.clone(), version, CachedList(listed.clone()));
        }
        Ok(listed)
    }
}

/// Lists the messages of a mailbox after an id.
pub(super) async fn list_mailbox(
    mailroom: &Mailroom,
    mailbox: &MailboxName,
    after: MessageId,
) -> Result<Listed, StoreError> {
    let (mut listed, mut messages, mut last) = (Listed::default(), Vec::new(), after);
    loop {
        let index = mailroom.index(mailbox, last, PAGE_SIZE).await?;
        (listed.next_uid, listed.highest_modseq) = (index.next_number, index.highest_modseq);
        let count = index.entries.len();
        messages.extend(index.entries.into_iter().map(listed_message));
        match messages.last() {
            Some(message) if count == PAGE_SIZE => last = message.id,
            _ => break,
        }
    }
    listed.messages = Arc::new(messages);
    Ok(listed)
}

fn listed_message(entry: IndexEntry) -> ListedMessage {
    let IndexEntry { id, number, received, size, marks } = entry;
    ListedMessage { id, uid: number, received, size, marks }
}

#[cfg(test)]
mod tests {
    use restante_mail::message::Flags;
    use restante_mailroom::hooks::Extensions;
    use restante_mailroom::{CopyKey, DeletionCause, Import, Settings};
    use restante_store::Limits;
    use restante_store::memory::MemoryStore;

    use super::*;

    /// A list is read again after every change.
    #[tokio::test]
    async fn large_lists_are_cached() {
        let limits = Limits::default();
        let mailroom = Mailroom::new(Settings::default(), Arc::new(MemoryStore::new(limits)), Extensions::default());
        let bob = MailboxName::from("bob".to_owned());
        let import = || Import {
            mailbox: bob.clone(),
            received: jiff::Timestamp::UNIX_EPOCH,
            seen: false,
            flags: Flags::default(),
            tags: restante_mail::tags::Tags::default(),
            message: bytes::Bytes::from_static(b"Subject: Hi\r\n\r\n"),
        };
        let cache = ListCache::default();
        for count in 1..=MIN_CACHED_MESSAGES {
            mailroom.import(import()).await.unwrap();
            if count + 1 == MIN_CACHED_MESSAGES {
                let [first, second] =
                    [cache.list(&mailroom, &bob).await.unwrap(), cache.list(&mailroom, &bob).await.unwrap()];
                assert_eq!(first, second);
                assert!(!Arc::ptr_eq(&first.messages, &second.messages), "a small list is cached");
            }
        }
        let first = cache.list(&mailroom, &bob).await.unwrap();
        assert_eq!(first.messages.len(), MIN_CACHED_MESSAGES);
        assert!(Arc::ptr_eq(&first.messages, &cache.list(&mailroom, &bob).await.unwrap().messages));
        let copy = CopyKey { mailbox: bob.clone(), id: first.messages[0].id };
        mailroom.set_seen(&bob, copy.id, true).await.unwrap();
        let marked = cache.list(&mailroom, &bob).await.unwrap();
        assert!(marked.messages[0].marks.seen && marked.highest_modseq > first.highest_modseq);
        mailroom.remove_copies(vec![copy], DeletionCause::Request).await.unwrap();
        let removed = cache.list(&mailroom, &bob).await.unwrap();
        assert_eq!(removed.messages[..], marked.messages[1..]);
        mailroom.import(import()).await.unwrap();
        assert_eq!(cache.list(&mailroom, &bob).await.unwrap().messages.len(), MIN_CACHED_MESSAGES);
    }
}
