//! The search for messages whose events were not queued, because a process or a node has died.

use std::sync::atomic::Ordering::Relaxed;

use restante_mail::message::{Message, MessageId, Summary};
use restante_mailroom::Page;
use restante_queue::{AbandonedCheckpoint, NewEntry};
use restante_store::Result;
use tokio::time::Instant;

use super::{MAX_QUEUED_BYTES, Usage, Writer};
use crate::EventKind;
use crate::inbox::DropReason;
use crate::payload::Payload;

/// The maximum number of missed messages that are read at once.
const PAGE_SIZE: usize = 100;

/// A search for messages whose events were not queued.
#[derive(Clone)]
pub(super) struct CatchUp {
    /// The checkpoints from which the search started.
    abandoned: Vec<AbandonedCheckpoint>,
    /// The last message after these nodes had died. Events of later ones are queued by the nodes that store them.
    end: MessageId,
    /// By target. Messages up to this one were read. `None` if all were.
    cursors: Vec<Option<MessageId>>,
    /// Until then, the events of a target wait while it has no room. Later they are dropped. As long as the search has not
    /// ended, a restart repeats it, and can send events again whose entries were deleted meanwhile.
    room_deadline: Instant,
}

impl Writer {
    /// Starts a search from abandoned checkpoints to `end`, unless one is running.
    pub(super) fn start_catch_up(&mut self, abandoned: Vec<AbandonedCheckpoint>, end: MessageId) {
        let from = abandoned.iter().map(|checkpoint| checkpoint.message).min();
        if from.is_some() && self.catch_up.is_none() {
            let cursors = vec![from; self.shared.targets.len()];
            let room_deadline = Instant::now() + self.shared.backoff.max_room_wait;
            self.catch_up = Some(CatchUp { abandoned, end, cursors, room_deadline });
        }
    }

    /// Adds the events of some missed messages. A target without room delays no other one.
    pub(super) async fn catch_up(&mut self) -> Result<()> {
        let Some(mut search) = self.catch_up.clone() else { return Ok(()) };
        if self.shared.is_flushed.load(Relaxed) {
            return Ok(());
        }
        for target in 0..search.cursors.len() {
            let (Some(cursor), room) = (search.cursors[target], self.room(target)) else { continue };
            if room > 0 || search.room_deadline <= Instant::now() {
                search.cursors[target] = self.add_missed(target, room, cursor, search.end).await?;
                // There may be more.
                self.shared.request_count();
            }
        }
        if search.cursors.iter().any(Option::is_some) {
            self.catch_up = Some(search);
        } else {
            let queue = self.context.queue.clone();
            self.context.access(async move { queue.delete_abandoned(search.abandoned).await }).await?;
            self.catch_up = None;
        }
        Ok(())
    }

    /// Returns the number of events for which a target has room.
    fn room(&self, target: usize) -> usize {
        let Usage { entries, bytes } = self.usage[target];
        if bytes < MAX_QUEUED_BYTES { self.shared.settings.max_queued.saturating_sub(entries) } else { 0 }
    }

    /// Adds the events of some messages above `cursor` for a target, or drops them if there is no room. Returns the last of
    /// these messages. `None` if there are no more.
    async fn add_missed(
        &self,
        target: usize,
        room: usize,
        cursor: MessageId,
        end: MessageId,
    ) -> Result<Option<MessageId>> {
        let limit = if room > 0 { room.min(PAGE_SIZE) } else { PAGE_SIZE };
        let (mailroom, page) =
            (self.context.mailroom.clone(), Page { limit: Some(limit), before: None, after: Some(cursor) });
        let mut messages = self.context.access(async move { mailroom.messages(None, page).await }).await?.messages;
        messages.retain(|message| message.id() <= end);
        let entries = self.missed_events(target, &messages);
        if room > 0 {
            self.add(entries).await?;
        } else {
            // Some of them may be in the queue.
            for _ in entries {
                self.shared.targets[target].count_dropped(DropReason::Full);
            }
        }
        Ok(messages.last().map(Message::id))
    }

    fn missed_events(&self, target: usize, messages: &[Message]) -> Vec<NewEntry> {
        // An import causes no events.
        let received = messages.iter().filter(|message| message.first().details.is_received());
        let is_missed = |copy: &&Summary| {
            copy.id > self.since[target]
                && self.shared.targets[target].matches(EventKind::Stored, copy.mailbox.as_str())
        };
        let missed = received.flat_map(Message::copies).filter(is_missed);
        missed.map(|copy| self.new_entry(target, copy, &Payload::new(EventKind::Stored, copy))).collect()
    }
}
