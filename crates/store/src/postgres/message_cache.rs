//! The cache of messages as a whole. A message is valid until one of its mailboxes changes.

use restante_cache::{Cache, CacheValue};
use restante_mail::message::Message;

use super::mailbox_generations::MailboxGenerations;
use crate::MessageSelector;

/// See the module documentation.
pub(super) struct MessageCache {
    messages: Cache<MessageSelector, CachedMessage>,
}

/// A message, and the last generation of all mailboxes before it was read.
#[derive(Clone)]
struct CachedMessage {
    message: Message,
    generation: u64,
}

impl MessageCache {
    /// Creates a cache with a limit in bytes.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { messages: Cache::new(max_bytes) }
    }

    /// Returns a message, if it has not changed since it was read.
    pub(super) fn get(&self, selector: MessageSelector, generations: &MailboxGenerations) -> Option<Message> {
        let CachedMessage { message, generation } = self.messages.get(&selector, 0)?;
        let is_unchanged = match selector {
            MessageSelector::Id(_) => message.mailboxes().all(|mailbox| generations.generation(mailbox) <= generation),
            // Any new message replaces it.
            MessageSelector::Latest => generations.last_generation() == generation,
        };
        is_unchanged.then_some(message)
    }

    /// Inserts a message that was read after `generation` was the last generation.
    pub(super) fn insert(&self, selector: MessageSelector, message: Message, generation: u64) {
        self.messages.insert(selector, 0, CachedMessage { message, generation });
    }
}

impl CacheValue for CachedMessage {
    fn bytes(&self) -> usize {
        let copies = self.message.copies().iter();
        let text = copies.map(|copy| size_of_val(copy) + copy.tags.encoded().len() + copy.details.encoded().len());
        self.message.first().headline.text_len() + text.sum::<usize>()
    }
}
