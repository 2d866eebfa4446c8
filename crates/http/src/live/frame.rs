//! The JSON of an event, and whom it is for. It is rendered once, as a record of version 2, whoever listens: version 1 is a
//! part of it.

use bytes::Bytes;
use restante_access::Grant;
use restante_mailroom::events::{Event, Told};

use crate::response::{json, message_json};

const STORED: &[u8] = b"{\"variant\":\"message-stored\",\"identifier\":null,\"header\":";
const STORED_END: &[u8] = b"}";
const DELETED: &[u8] = b"{\"variant\":\"message-deleted\",\"identifier\":{";
const DELETED_END: &[u8] = b"},\"header\":null}";

/// What a listener is told of events.
#[derive(Clone, Debug)]
pub(crate) struct Audience {
    /// In which form.
    pub(crate) form: Form,
    /// Of which mailboxes: those that this reaches.
    pub(crate) grant: Grant,
}

impl Audience {
    /// The JSON of an event; `None` when it is not for this listener.
    pub(crate) fn json(&self, told: &Told) -> Option<Bytes> {
        let is_theirs = self.grant.reaches(&told.event().summary().mailbox);
        if is_theirs { self.form.json(told) } else { None }
    }
}

/// The two forms of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Version 1: the summary record of a stored message. Deletions are not told.
    Summary,
    /// Version 2: what happened, and to which message.
    Change,
}

impl Form {
    /// The JSON of an event; `None` when this form does not tell it.
    fn json(self, told: &Told) -> Option<Bytes> {
        match (self, told.event()) {
            (Self::Change, _) => Some(told.rendered(change)),
            (Self::Summary, Event::Stored(_)) => {
                let change = told.rendered(change);
                Some(change.slice(STORED.len()..change.len() - STORED_END.len()))
            }
            (Self::Summary, Event::Deleted(_)) => None,
        }
    }
}

fn change(event: &Event) -> Bytes {
    let mut out = Vec::with_capacity(message_json::record_size(event.summary()) + STORED.len());
    match event {
        Event::Stored(summary) => {
            out.extend_from_slice(STORED);
            message_json::record(&mut out, summary);
            out.extend_from_slice(STORED_END);
        }
        Event::Deleted(summary) => {
            out.extend_from_slice(DELETED);
            message_json::field(&mut out, "mailbox", summary.mailbox.as_str());
            json::display(&mut out, format_args!(",\"id\":\"{}\"", summary.id));
            out.extend_from_slice(DELETED_END);
        }
    }
    // It is kept for a while, and the guess of its size was generous.
    out.shrink_to_fit();
    out.into()
}
