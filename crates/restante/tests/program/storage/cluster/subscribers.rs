//! Subscribers of a node by every transport, and the events that they receive.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::nodes::Node;
use crate::support::durability::eventually;
use crate::support::monitor::{EventStream, WebSocketClient};
use crate::support::rest::Reader;

/// The subject of the last message.
pub(crate) const END: &str = "the end";

/// An event of a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReceivedEvent {
    Stored { mailbox: String, id: u64, subject: String },
    Deleted { mailbox: String, id: u64 },
}

impl ReceivedEvent {
    fn stored(summary: &Value) -> Self {
        let subject = text(&summary["subject"]);
        Self::Stored { mailbox: text(&summary["mailbox"]), id: number(&summary["id"]), subject }
    }

    /// Parses an event of API version 2.
    pub(crate) fn frame(frame: &Value) -> Self {
        match &frame["variant"] {
            variant if variant == "message-stored" => Self::stored(&frame["header"]),
            variant if variant == "message-deleted" => {
                let identifier = &frame["identifier"];
                Self::Deleted { mailbox: text(&identifier["mailbox"]), id: number(&identifier["id"]) }
            }
            other => panic!("unknown event {other}"),
        }
    }

    /// Parses an event of the stream of all mailboxes, which is one per stored message. Returns one event per copy. The ids
    /// of the copies follow each other.
    pub(crate) fn of_message(frame: &Value) -> Vec<Self> {
        let event = Self::frame(frame);
        let Self::Stored { subject, .. } = &event else { return vec![event] };
        let (message, mailboxes) = (number(&frame["message"]["id"]), frame["message"]["mailboxes"].as_array().unwrap());
        let copy = |(id, mailbox): (u64, &Value)| Self::Stored { mailbox: text(mailbox), id, subject: subject.clone() };
        let copies: Vec<Self> = (message..).zip(mailboxes).map(copy).collect();
        assert_eq!(copies.first(), Some(&event), "the event is that of the first copy");
        copies
    }

    pub(crate) fn mailbox(&self) -> &str {
        match self {
            Self::Stored { mailbox, .. } | Self::Deleted { mailbox, .. } => mailbox,
        }
    }

    pub(crate) fn is_stored(&self) -> bool {
        matches!(self, Self::Stored { .. })
    }

    /// Returns whether this is the event of the last message.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self, Self::Stored { subject, .. } if subject == END)
    }
}

/// How a subscriber receives events.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Transport {
    /// Server-Sent Events.
    Events,
    /// A WebSocket of API version 2.
    Socket,
    /// A WebSocket of API version 1, which sends only stored messages.
    SocketV1,
    /// Requests that wait for messages in a mailbox, one after the other.
    LongPoll,
}

/// A connected subscriber of one mailbox or of all.
pub(crate) struct Subscriber {
    source: Source,
    pub(crate) transport: Transport,
    pub(crate) mailbox: Option<&'static str>,
}

enum Source {
    Events(EventStream),
    Socket(WebSocketClient),
    SocketV1(WebSocketClient),
    LongPoll { reader: Reader, last: u64 },
}

impl Subscriber {
    pub(crate) fn open(node: &Node, transport: Transport, mailbox: Option<&'static str>) -> Self {
        let server = node.server();
        let name = mailbox.map(|mailbox| format!("/{mailbox}")).unwrap_or_default();
        let source = match transport {
            Transport::Events => Source::Events(EventStream::open(&server, &format!("/api/v2/events{name}"), "")),
            Transport::Socket => {
                Source::Socket(WebSocketClient::open(&server, &format!("/api/v2/monitor/messages{name}")))
            }
            Transport::SocketV1 => {
                Source::SocketV1(WebSocketClient::open(&server, &format!("/api/v1/monitor/messages{name}")))
            }
            Transport::LongPoll => Source::LongPoll { reader: node.reader(), last: 0 },
        };
        Self { source, transport, mailbox }
    }

    /// Receives events until the last message was stored in `ends` mailboxes.
    pub(crate) fn receive_until_end(mut self, ends: usize) -> Vec<ReceivedEvent> {
        let (mut received, mut seen) = (Vec::new(), 0);
        while seen < ends {
            let next = self.next();
            seen += next.iter().filter(|received| received.is_end()).count();
            received.extend(next);
        }
        received
    }

    /// Receives `count` events.
    pub(crate) fn take(mut self, count: usize) -> Vec<ReceivedEvent> {
        let mut received = Vec::new();
        while received.len() < count {
            received.extend(self.next());
        }
        received
    }

    fn next(&mut self) -> Vec<ReceivedEvent> {
        let mailbox = self.mailbox.unwrap_or_default();
        match &mut self.source {
            Source::Events(events) => {
                let event = events.next().expect("the stream has ended");
                match self.mailbox {
                    Some(_) => vec![ReceivedEvent::frame(&event.data)],
                    None => ReceivedEvent::of_message(&event.data),
                }
            }
            Source::Socket(socket) => vec![ReceivedEvent::frame(&socket.text())],
            Source::SocketV1(socket) => vec![ReceivedEvent::stored(&socket.text())],
            Source::LongPoll { reader, last } => {
                let received = wait(reader, mailbox, *last);
                if let Some(ReceivedEvent::Stored { id, .. }) = received.last() {
                    *last = *id;
                }
                received
            }
        }
    }
}

/// Waits for messages with ids above `last`. Retries while the node is disconnected from the database.
fn wait(reader: &Reader, mailbox: &str, last: u64) -> Vec<ReceivedEvent> {
    let path = format!("v2/mailbox/{mailbox}/wait?timeout=10s&after={last}");
    let mut received = Vec::new();
    eventually("no message arrives", || {
        let (status, text) = reader.get(&path).unwrap();
        if status == 503 {
            return false;
        }
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&text));
        let response: Value = serde_json::from_slice(&text).unwrap();
        received = response["messages"].as_array().unwrap().iter().map(ReceivedEvent::stored).collect();
        true
    });
    received
}

/// Checks that the events are consistent: no message is stored twice, and none is deleted twice or before it is stored. Returns the
/// remaining ids by mailbox.
pub(crate) fn remaining_messages(received: &[ReceivedEvent]) -> BTreeMap<&str, BTreeSet<u64>> {
    let (mut stored, mut left) = (BTreeSet::new(), BTreeMap::<&str, BTreeSet<u64>>::new());
    for event in received {
        let ids = left.entry(event.mailbox()).or_default();
        match event {
            ReceivedEvent::Stored { id, .. } => {
                assert!(stored.insert(*id), "{event:?} is duplicated");
                ids.insert(*id);
            }
            ReceivedEvent::Deleted { id, .. } => assert!(ids.remove(id), "{event:?} of a message that is not stored"),
        }
    }
    left
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

pub(crate) fn number(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}
