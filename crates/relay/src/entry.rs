//! Entries of the queue: one message, to be sent to some recipients through one target.

use std::ops::Deref;
use std::time::Duration;

/// The state of a recipient.
pub use restante_api_types::RelayRecipientState as RecipientState;
use restante_queue::{EntryState, QueueKind};
use restante_store::{Result, StoreError};
use serde::{Deserialize, Serialize};

/// The queue of the relay.
pub const QUEUE: QueueKind = QueueKind {
    name: "relay",
    file_name: "relay.db",
    application_id: 0x7272_6c79, // "rrly"
    // The delay between attempts is at most 15 minutes.
    max_delay: Duration::from_mins(30),
    is_synced: true,
    // It contains the recipients and their states.
    max_finished_payload: usize::MAX,
    retried_payload,
};

/// The maximum number of entries in a final state.
pub const MAX_FINISHED: usize = 10_000;

/// An entry of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    queued: restante_queue::Entry,
    /// What is sent.
    pub content: Content,
}

impl Entry {
    /// Decodes an entry. An entry expires without a change of its recipients: those that still wait have failed.
    pub(crate) fn decode(queued: restante_queue::Entry) -> Result<Self> {
        let mut content = Content::decode(&queued.payload)?;
        if queued.state == EntryState::Failed {
            content.replace_state(RecipientState::Waiting, RecipientState::Failed);
        }
        Ok(Self { queued, content })
    }
}

impl Deref for Entry {
    type Target = restante_queue::Entry;

    fn deref(&self) -> &Self::Target {
        &self.queued
    }
}

/// What an entry sends. It is the payload of the entry in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The id of the copy whose source is sent. Its mailbox is that of the entry.
    pub copy: u64,
    /// The sender of the envelope. Empty for the null reverse-path.
    pub sender: String,
    /// The recipients. Not empty.
    pub recipients: Vec<EntryRecipient>,
    /// Why it is sent.
    pub origin: Origin,
}

impl Content {
    /// Encodes the payload.
    pub fn encode(&self) -> Vec<u8> {
        // Texts and numbers can always be serialized.
        serde_json::to_vec(self).unwrap_or_default()
    }

    fn decode(payload: &[u8]) -> Result<Self> {
        let unreadable = |error| StoreError::Broken(format!("the payload of a relay entry is unreadable: {error}"));
        serde_json::from_slice(payload).map_err(unreadable)
    }

    /// Returns the addresses of the recipients that it still has to be sent to.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &str> {
        let waiting = self.recipients.iter().filter(|recipient| recipient.state == RecipientState::Waiting);
        waiting.map(|recipient| recipient.address.as_str())
    }

    pub(crate) fn replace_state(&mut self, from: RecipientState, to: RecipientState) {
        for recipient in self.recipients.iter_mut().filter(|recipient| recipient.state == from) {
            recipient.state = to;
        }
    }
}

/// Lets failed recipients wait again. Returns `None` if no recipient waits then.
fn retried_payload(payload: &[u8]) -> Option<Vec<u8>> {
    let mut content = Content::decode(payload).ok()?;
    content.replace_state(RecipientState::Failed, RecipientState::Waiting);
    content.waiting().next()?;
    Some(content.encode())
}

/// Why a message is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A client requested it.
    Release {
        /// The name of its user or token, if authentication is configured.
        by: Option<String>,
        /// The text before the subject. It is empty, or printable ASCII.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        subject_prefix: String,
    },
    /// A rule matched.
    Forward,
}

impl Origin {
    /// Returns the text that is added before the subject, or an empty one.
    pub(crate) fn subject_prefix(&self) -> &str {
        match self {
            Self::Release { subject_prefix, .. } => subject_prefix,
            Self::Forward => "",
        }
    }
}

/// A recipient of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryRecipient {
    /// The address.
    pub address: String,
    /// The state.
    pub state: RecipientState,
    /// The last reply about this recipient. Empty before the first attempt.
    pub reply: String,
}

impl EntryRecipient {
    /// Returns the recipient of a new entry.
    pub fn new(address: String) -> Self {
        Self { address, state: RecipientState::Waiting, reply: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_stored_names() {
        let names = RecipientState::ALL.map(|state| serde_json::to_string(&state).unwrap());
        assert_eq!(names, [r#""waiting""#, r#""delivered""#, r#""failed""#]);
    }

    #[test]
    fn failed_recipients_are_retried() {
        use RecipientState::{Delivered, Failed, Waiting};
        let content = |states: &[RecipientState]| {
            let recipient = |state: &RecipientState| EntryRecipient {
                state: *state,
                ..EntryRecipient::new("ann@x.org".to_owned())
            };
            let recipients = states.iter().map(recipient).collect();
            Content { copy: 7, sender: String::new(), recipients, origin: Origin::Forward }
        };
        let table: [(&[RecipientState], Option<&[RecipientState]>); 4] = [
            (&[Waiting], Some(&[Waiting])),
            (&[Delivered, Failed], Some(&[Delivered, Waiting])),
            (&[Failed, Waiting], Some(&[Waiting, Waiting])),
            (&[Delivered, Delivered], None),
        ];
        for (states, expected) in table {
            let retried = (QUEUE.retried_payload)(&content(states).encode());
            assert_eq!(retried, expected.map(|states| content(states).encode()), "{states:?}");
        }
        assert_eq!((QUEUE.retried_payload)(b"["), None, "it is unreadable");
    }
}
