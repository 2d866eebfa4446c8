//! Those who listen at a node, in every way there is, and what they have heard.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::nodes::Node;
use crate::support::durability::eventually;
use crate::support::monitor::{Ear, EventStream};
use crate::support::rest::Reader;

/// The subject of the last letter, after which nobody has to listen any more.
pub(crate) const END: &str = "the end";

/// What happened to a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Heard {
    Stored { mailbox: String, id: u64, subject: String },
    Deleted { mailbox: String, id: u64 },
}

impl Heard {
    fn stored(summary: &Value) -> Self {
        let subject = text(&summary["subject"]);
        Self::Stored { mailbox: text(&summary["mailbox"]), id: number(&summary["id"]), subject }
    }

    /// From a frame of version 2.
    pub(crate) fn frame(frame: &Value) -> Self {
        match &frame["variant"] {
            variant if variant == "message-stored" => Self::stored(&frame["header"]),
            variant if variant == "message-deleted" => {
                let identifier = &frame["identifier"];
                Self::Deleted { mailbox: text(&identifier["mailbox"]), id: number(&identifier["id"]) }
            }
            other => panic!("{other} is told"),
        }
    }

    pub(crate) fn mailbox(&self) -> &str {
        match self {
            Self::Stored { mailbox, .. } | Self::Deleted { mailbox, .. } => mailbox,
        }
    }

    pub(crate) fn is_stored(&self) -> bool {
        matches!(self, Self::Stored { .. })
    }

    /// Whether it is the last letter.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self, Self::Stored { subject, .. } if subject == END)
    }
}

/// A way to listen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// Server-Sent Events.
    Events,
    /// A WebSocket of version 2.
    Socket,
    /// One of version 1, which tells only of what is stored.
    FirstSocket,
    /// Requests that wait for mail in a mailbox, one after the other.
    Waits,
}

/// One who listens to a mailbox, or to everything, and has begun to.
pub(crate) struct Listener {
    source: Source,
    pub(crate) way: Way,
    pub(crate) mailbox: Option<&'static str>,
}

enum Source {
    Events(EventStream),
    Socket(Ear),
    FirstSocket(Ear),
    Waits { reader: Reader, last: u64 },
}

impl Listener {
    pub(crate) fn open(node: &Node, way: Way, mailbox: Option<&'static str>) -> Self {
        let server = node.server();
        let name = mailbox.map(|mailbox| format!("/{mailbox}")).unwrap_or_default();
        let source = match way {
            Way::Events => Source::Events(EventStream::open(&server, &format!("/api/v2/events{name}"), "")),
            Way::Socket => Source::Socket(Ear::open(&server, &format!("/api/v2/monitor/messages{name}"))),
            Way::FirstSocket => Source::FirstSocket(Ear::open(&server, &format!("/api/v1/monitor/messages{name}"))),
            Way::Waits => Source::Waits { reader: node.reader(), last: 0 },
        };
        Self { source, way, mailbox }
    }

    /// Listens until the last letter has come to so many mailboxes.
    pub(crate) fn listen(mut self, ends: usize) -> Vec<Heard> {
        let (mut heard, mut seen) = (Vec::new(), 0);
        while seen < ends {
            let next = self.next();
            seen += next.iter().filter(|heard| heard.is_end()).count();
            heard.extend(next);
        }
        heard
    }

    /// Listens until so much was heard.
    pub(crate) fn take(mut self, count: usize) -> Vec<Heard> {
        let mut heard = Vec::new();
        while heard.len() < count {
            heard.extend(self.next());
        }
        heard
    }

    fn next(&mut self) -> Vec<Heard> {
        let mailbox = self.mailbox.unwrap_or_default();
        match &mut self.source {
            Source::Events(events) => {
                let event = events.next().expect("the node goes on");
                vec![Heard::frame(&event.data)]
            }
            Source::Socket(ear) => vec![Heard::frame(&ear.text())],
            Source::FirstSocket(ear) => vec![Heard::stored(&ear.text())],
            Source::Waits { reader, last } => {
                let heard = wait(reader, mailbox, *last);
                if let Some(Heard::Stored { id, .. }) = heard.last() {
                    *last = *id;
                }
                heard
            }
        }
    }
}

/// Waits for mail above this id. A node that is cut off says so, and is asked again.
fn wait(reader: &Reader, mailbox: &str, last: u64) -> Vec<Heard> {
    let path = format!("v2/mailbox/{mailbox}/wait?timeout=10s&after={last}");
    let mut heard = Vec::new();
    eventually("nothing comes", || {
        let (status, text) = reader.get(&path).unwrap();
        if status == 503 {
            return false;
        }
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&text));
        let answer: Value = serde_json::from_slice(&text).unwrap();
        heard = answer["messages"].as_array().unwrap().iter().map(Heard::stored).collect();
        true
    });
    heard
}

/// Checks that all of this can have happened, each once: no message is stored twice, and none is deleted twice or before it is
/// stored. What is left, by mailbox, in order.
pub(crate) fn what_is_left(heard: &[Heard]) -> BTreeMap<&str, BTreeSet<u64>> {
    let (mut stored, mut left) = (BTreeSet::new(), BTreeMap::<&str, BTreeSet<u64>>::new());
    for event in heard {
        let there = left.entry(event.mailbox()).or_default();
        match event {
            Heard::Stored { id, .. } => {
                assert!(stored.insert(*id), "{event:?} is told twice");
                there.insert(*id);
            }
            Heard::Deleted { id, .. } => assert!(there.remove(id), "{event:?}, but it is not there"),
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
