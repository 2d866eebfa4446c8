//! Selects one event per stored message from the events of its copies.

use std::collections::VecDeque;

use restante_auth::Grant;
use restante_mail::message::MessageId;
use restante_mailroom::events::Event;

/// The number of messages that are remembered. The events of the copies of a message are adjacent, unless many messages
/// arrive at once.
const MAX_RECENT_MESSAGES: usize = 64;

/// Selects the first event of each message that a subscriber may get.
///
/// This is the event of the first copy that the grant allows. In the history this event can be missing, because the copy
/// was deleted or because the history contains only some of the copies. Then the first event that is there is selected.
/// A subscriber that resumes may have received the first event before, so for it no other event is selected.
#[derive(Debug)]
pub(super) struct MessageSelector {
    /// Whether the subscriber has received earlier events, and with them possibly the first event of a message.
    is_resumed: bool,
    /// The last messages whose event was selected.
    recent: VecDeque<MessageId>,
}

impl MessageSelector {
    pub(super) fn new(is_resumed: bool) -> Self {
        Self { is_resumed, recent: VecDeque::new() }
    }

    /// Returns whether this event is selected. Every deletion is selected. Call it once for each event, in their order.
    pub(super) fn selects(&mut self, event: &Event, grant: &Grant) -> bool {
        let Event::Stored(copy, _) = event else { return true };
        if !grant.covers(&copy.mailbox) || self.recent.contains(&copy.message) {
            return false;
        }
        let first = event.copies().iter().find(|copy| grant.covers(&copy.mailbox));
        if self.is_resumed && first.is_some_and(|first| first.id != copy.id) {
            return false;
        }
        self.recent.truncate(MAX_RECENT_MESSAGES - 1);
        self.recent.push_front(copy.message);
        true
    }
}
