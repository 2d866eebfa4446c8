//! The state of a relay that requests, senders and the forwarder share.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use jiff::Timestamp;
use parking_lot::Mutex;
use restante_mail::message::{MessageId, Summary};
use restante_mailroom::Mailroom;
use restante_queue::{NewEntry, Queue, StateCount, TargetState};
use restante_store::Result;
use tokio::sync::Notify;

use crate::delivery_load::DeliveryLoad;
use crate::entry::{Content, EntryRecipient, Origin};
use crate::message;
use crate::settings::{Settings, Target};

/// See the module documentation.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) queue: Arc<dyn Queue>,
    /// The states of the targets, in the order of the settings.
    pub(crate) states: Vec<Arc<TargetState>>,
    /// Notified when a message is stored.
    pub(crate) message_stored: Notify,
    pub(crate) delivery_load: DeliveryLoad,
    /// Entries that were not sent because their message is in a loop.
    pub(crate) loops: AtomicU64,
    /// Recipients that matched a rule and that the target does not allow.
    pub(crate) recipients_not_allowed: AtomicU64,
    /// The number of entries, when it was last read.
    pub(crate) entry_counts: Mutex<Vec<StateCount>>,
}

impl Shared {
    pub(crate) fn new(settings: Settings, queue: Arc<dyn Queue>) -> Self {
        let states = settings.targets.iter().map(|target| Arc::new(TargetState::new(target.name.clone()))).collect();
        Self {
            settings,
            queue,
            states,
            message_stored: Notify::new(),
            delivery_load: DeliveryLoad::new(Instant::now()),
            loops: AtomicU64::new(0),
            recipients_not_allowed: AtomicU64::new(0),
            entry_counts: Mutex::default(),
        }
    }

    /// Returns the cursor of the forwarder if this node forwards.
    pub(crate) async fn acquire_cursor(&self, mailroom: &Mailroom) -> Result<Option<MessageId>> {
        self.queue.acquire_cursor(mailroom.last_id().await?).await
    }

    /// Makes a sender of the target look for due entries.
    pub(crate) fn wake_target(&self, name: &str) {
        if let Some(state) = self.states.iter().find(|state| state.name == name) {
            state.wake.notify_one();
        }
    }

    pub(crate) fn new_entry(
        &self,
        copy: &Summary,
        target: &Target,
        recipients: Vec<String>,
        origin: Origin,
    ) -> NewEntry {
        let now = Timestamp::now();
        let recipients = recipients.into_iter().map(EntryRecipient::new).collect();
        let sender = message::envelope_sender(target, copy);
        NewEntry {
            message: copy.message,
            mailbox: copy.mailbox.clone(),
            target: target.name.clone(),
            key: None,
            payload: Content { copy: copy.id.number(), sender, recipients, origin }.encode(),
            created: now,
            expires: self.expiry(now),
        }
    }

    pub(crate) fn expiry(&self, now: Timestamp) -> Timestamp {
        now.checked_add(self.settings.give_up_after).unwrap_or(Timestamp::MAX)
    }
}
