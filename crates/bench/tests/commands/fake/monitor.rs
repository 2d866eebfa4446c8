//! The live monitors of the fake server: both WebSocket versions and Server-Sent Events. Every monitor has an unbounded
//! queue, unlike in a real server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, Sender};

use super::{Behavior, State};

/// The number of past events that a monitor gets when it connects.
const HISTORY: usize = 3;
/// The number of events after which [`Behavior::DisconnectsMonitors`] disconnects.
const EVENTS_BEFORE_DISCONNECT: usize = 20;

/// The events and their subscribers.
#[derive(Default)]
pub(super) struct EventHub {
    log: Vec<Event>,
    subscribers: Vec<(Option<String>, Sender<Event>)>,
    pub(super) pongs: usize,
}

#[derive(Clone)]
struct Event {
    id: usize,
    mailbox: String,
    subject: String,
}

impl EventHub {
    pub(super) fn publish(&mut self, mailbox: &str, subject: &str) {
        let event = Event { id: self.log.len() + 1, mailbox: mailbox.to_owned(), subject: subject.to_owned() };
        self.log.push(event.clone());
        let matches = |filter: &Option<String>| filter.as_ref().is_none_or(|filter| filter == mailbox);
        self.subscribers.retain(|(filter, sender)| !matches(filter) || sender.send(event.clone()).is_ok());
    }

    fn subscribe(&mut self, request: &MonitorRequest) -> Receiver<Event> {
        let (sender, receiver) = mpsc::channel();
        let start = request.last_id.unwrap_or(self.log.len().saturating_sub(HISTORY));
        for event in &self.log[start..] {
            sender.send(event.clone()).unwrap();
        }
        self.subscribers.push((request.mailbox.clone(), sender));
        receiver
    }
}

/// The request of a monitor.
pub(super) struct MonitorRequest {
    kind: Kind,
    mailbox: Option<String>,
    last_id: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    V1,
    V2,
    Sse,
}

impl MonitorRequest {
    pub(super) fn parse(path: &str, fields: &[String]) -> Option<Self> {
        let paths = [
            ("/api/v1/monitor/messages", Kind::V1),
            ("/api/v2/monitor/messages", Kind::V2),
            ("/api/v2/events", Kind::Sse),
        ];
        let (kind, rest) = paths.iter().find_map(|(prefix, kind)| Some((*kind, path.strip_prefix(prefix)?)))?;
        let field = |name: &str| fields.iter().find_map(|line| line.strip_prefix(name));
        assert_eq!(field("Upgrade: ").is_some(), kind != Kind::Sse, "only a WebSocket is an upgrade");
        let last_id = field("Last-Event-ID: ").map(|id| id.parse().unwrap());
        Some(Self { kind, mailbox: rest.strip_prefix('/').map(str::to_owned), last_id })
    }
}

/// Sends events to the monitor until it disconnects.
pub(super) fn session(
    mut stream: TcpStream,
    request: &MonitorRequest,
    behavior: Behavior,
    state: &Mutex<State>,
) -> Option<()> {
    let events = state.lock().unwrap().monitors.subscribe(request);
    if request.kind == Kind::Sse {
        stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").ok()?;
    } else {
        let accepted = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
        stream.write_all(accepted.as_bytes()).ok()?;
        stream.write_all(b"\x89\x05hello").ok()?;
    }
    std::thread::scope(|scope| {
        let input = stream.try_clone().ok()?;
        scope.spawn(move || await_pong(input, state));
        for (count, event) in events.iter().enumerate() {
            if behavior == Behavior::DisconnectsMonitors && count == EVENTS_BEFORE_DISCONNECT {
                let end: &[u8] = if request.kind == Kind::Sse { b"0\r\n\r\n" } else { b"\x88\x02\x03\xf5" };
                stream.write_all(end).ok()?;
                break;
            }
            stream.write_all(&encoded(request.kind, &event)).ok()?;
        }
        stream.shutdown(std::net::Shutdown::Write).ok()
    })
}

/// Reads a pong. Clients mask their frames (RFC 6455 section 5.3).
fn await_pong(mut input: TcpStream, state: &Mutex<State>) -> Option<()> {
    let mut frame = [0; 11];
    input.read_exact(&mut frame).ok()?;
    let (head, content) = frame.split_at(6);
    assert_eq!(head[..2], [0x8a, 0x85], "a masked pong");
    let content: Vec<u8> = content.iter().zip(head[2..].iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    assert_eq!(content, b"hello");
    state.lock().unwrap().monitors.pongs += 1;
    Some(())
}

fn encoded(kind: Kind, event: &Event) -> Vec<u8> {
    let Event { id, mailbox, subject } = event;
    let summary = format!(r#"{{"mailbox":"{mailbox}","id":"{id}","subject":"{subject}"}}"#);
    let variant = format!(r#"{{"variant":"message-stored","identifier":null,"header":{summary}}}"#);
    match kind {
        Kind::V1 => frame(&summary),
        Kind::V2 => frame(&variant),
        Kind::Sse => {
            let text = format!("id: {id}\nevent: message-stored\ndata: {variant}\n\n");
            let (first, second) = text.split_at(text.len() / 2);
            format!("{:x}\r\n{first}\r\n{:X};a=b\r\n{second}\r\n", first.len(), second.len()).into_bytes()
        }
    }
}

fn frame(text: &str) -> Vec<u8> {
    let mut frame = vec![0x81];
    // 126 means that the length follows in two bytes.
    frame.push(126);
    frame.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
    frame.extend_from_slice(text.as_bytes());
    frame
}
