//! Selects one event per stored message from the events of its copies.

use std::collections::VecDeque;

use restante_auth::Grant;
use restante_mail::message::MessageId;
use restante_mailroom::events::Event;

/// The number of messages that are remembered. Between the events of two copies of a message there are few others: only
/// those of messages that arrive at the same time.
const MAX_RECENT_MESSAGES: usize = 64;

/// Selects the first event of each message that a subscriber may get.
///
/// This is the event of the first copy that the grant allows. In the history this event can be missing, because the copy
/// was deleted or because the history contains only some of the copies. Then the first event that is there is selected.
/// A subscriber that resumes may have received the first event before, so for it no other event is selected.
#[derive(Debug)]
pub struct EventSelector {
    /// Whether the subscriber has received earlier events, and with them possibly the first event of a message.
    is_resumed: bool,
    /// The messages of the last events, the most recent first.
    recent: VecDeque<MessageId>,
}

impl EventSelector {
    /// Creates a selector. `is_resumed` is true if the subscriber continues an earlier subscription.
    pub fn new(is_resumed: bool) -> Self {
        Self { is_resumed, recent: VecDeque::new() }
    }

    /// Returns whether this event is selected. Every deletion is selected. Call it once for each event, in their order.
    pub fn selects(&mut self, event: &Event, grant: &Grant) -> bool {
        let Event::Stored(copy, _) = event else { return true };
        if !grant.covers(&copy.mailbox) {
            return false;
        }
        let is_known = self.remember(copy.message);
        let first = event.copies().iter().find(|copy| grant.covers(&copy.mailbox));
        let is_first = first.is_some_and(|first| first.id == copy.id);
        !is_known && (is_first || !self.is_resumed)
    }

    /// Moves a message to the front of the recent ones. Returns whether it was one of them.
    fn remember(&mut self, message: MessageId) -> bool {
        let known = self.recent.iter().position(|recent| *recent == message);
        if let Some(index) = known {
            self.recent.remove(index);
        }
        self.recent.truncate(MAX_RECENT_MESSAGES - 1);
        self.recent.push_front(message);
        known.is_some()
    }
}
