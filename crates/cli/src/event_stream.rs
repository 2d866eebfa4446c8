//! The live events of a server: Server-Sent Events (HTML Standard, section 9.2), read by a thread that connects again if
//! the connection is lost, and continues after the last event.

use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use restante_http_client::Download;
use serde_json::Value;

use crate::error::CommandError;
use crate::server::{ApiRequest, Server};

/// The maximum size of an event in bytes. A message can have a thousand recipients.
const MAX_EVENT_BYTES: usize = 4 * 1024 * 1024;
/// The number of events that are read in advance.
const QUEUE_LENGTH: usize = 16;
/// The longest pause between two attempts to connect.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
/// A connection that lasts this long counts as successful, even without a message.
const STABLE_CONNECTION: Duration = Duration::from_secs(10);

/// What happens on the stream.
#[derive(Debug, PartialEq)]
pub(crate) enum StreamItem {
    /// The first connection is established.
    Connected,
    /// A message was stored. This is the data of the event.
    Stored(Value),
    /// Events are missing at this point.
    Gap,
    /// The connection is lost, for this reason, and cannot be established again yet.
    Lost(String),
    /// The connection is established again.
    Restored,
    /// The stream has ended, because another attempt would not succeed.
    Failed(CommandError),
}

/// Subscribes to the events at this path. The thread that reads them ends after [`StreamItem::Failed`], or when it has
/// an item after the receiver was dropped.
pub(crate) fn subscribe(server: Arc<Server>, path: &[&str]) -> Result<Receiver<StreamItem>, CommandError> {
    let (sender, receiver) = sync_channel(QUEUE_LENGTH);
    let path = path.iter().map(|segment| (*segment).to_owned()).collect();
    let subscriber = Subscriber { server, path, sender, last_id: None };
    let thread = thread::Builder::new().name("events".to_owned()).spawn(|| subscriber.run());
    thread.map_err(|error| CommandError::Local(format!("A thread cannot be started: {error}.")))?;
    Ok(receiver)
}

/// The receiver was dropped, or needs no more items.
struct ReceiverGone;

struct Subscriber {
    server: Arc<Server>,
    path: Vec<String>,
    sender: SyncSender<StreamItem>,
    /// The id after which the server continues.
    last_id: Option<String>,
}

impl Subscriber {
    fn run(mut self) {
        // If the receiver is gone, nothing is left to do.
        let _ = self.connect_repeatedly();
    }

    fn connect_repeatedly(&mut self) -> Result<(), ReceiverGone> {
        let (mut is_first, mut is_lost) = (true, false);
        let mut failures = 0;
        loop {
            let start = Instant::now();
            match self.connect() {
                Ok(download) => {
                    if is_first {
                        self.send(StreamItem::Connected)?;
                    } else if is_lost {
                        self.send(StreamItem::Restored)?;
                    }
                    (is_first, is_lost) = (false, false);
                    let had_message = self.read_events(download)?;
                    if had_message || start.elapsed() >= STABLE_CONNECTION {
                        failures = 0;
                    }
                }
                Err(error) => {
                    if is_first || !error.is_temporary() {
                        return self.send(StreamItem::Failed(error));
                    }
                    if !is_lost {
                        self.send(StreamItem::Lost(error.to_string()))?;
                    }
                    is_lost = true;
                }
            }
            thread::sleep(retry_delay(failures));
            failures += 1;
        }
    }

    fn connect(&self) -> Result<Download, CommandError> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let parameters: Vec<_> = self.last_id.iter().map(|id| ("lastEventId", id.as_str())).collect();
        self.server.stream(ApiRequest { path: &path, parameters: &parameters, ..ApiRequest::default() })
    }

    /// Reads events until the connection ends. Returns true if one of them was a message.
    fn read_events(&mut self, download: Download) -> Result<bool, ReceiverGone> {
        let mut reader = BufReader::new(download);
        let mut parser = EventParser::default();
        let mut had_message = false;
        loop {
            let mut line = Vec::new();
            let limit = u64::try_from(MAX_EVENT_BYTES).unwrap_or(u64::MAX);
            let read = (&mut reader).take(limit).read_until(b'\n', &mut line);
            let is_complete = line.ends_with(b"\n");
            // The server sends an incomplete event again after the last id.
            if read.is_err() || (!is_complete && line.len() < MAX_EVENT_BYTES) {
                return Ok(had_message);
            }
            let event = parser.add_line(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']));
            if !is_complete || parser.event.data.len() > MAX_EVENT_BYTES {
                return self.fail("an event is too long");
            }
            let Some(event) = event else { continue };
            match event.name.as_str() {
                "message-stored" => match serde_json::from_str(&event.data) {
                    Ok(data) => self.send(StreamItem::Stored(data))?,
                    Err(error) => return self.fail(&error.to_string()),
                },
                "lagged" => self.send(StreamItem::Gap)?,
                _ => {}
            }
            had_message |= event.name == "message-stored";
            self.last_id.clone_from(&parser.last_id);
        }
    }

    /// Reports an event that cannot be read, and ends the thread.
    fn fail(&self, reason: &str) -> Result<bool, ReceiverGone> {
        let message = format!("The response of the server is not as expected: {reason}.");
        self.send(StreamItem::Failed(CommandError::Server(message)))?;
        Err(ReceiverGone)
    }

    fn send(&self, item: StreamItem) -> Result<(), ReceiverGone> {
        self.sender.send(item).map_err(|_| ReceiverGone)
    }
}

/// Returns the pause before the next attempt: none after the first failure, then one second, doubled each time.
pub(crate) fn retry_delay(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        _ => Duration::from_secs(1 << (failures - 1).min(5)).min(MAX_RETRY_DELAY),
    }
}

/// An event, complete. One without data only reports its id.
#[derive(Debug, Default, PartialEq)]
struct ServerSentEvent {
    name: String,
    data: String,
}

/// Collects the lines of events.
#[derive(Default)]
struct EventParser {
    event: ServerSentEvent,
    /// The id of the last event, or of the one whose lines are being collected.
    last_id: Option<String>,
}

impl EventParser {
    /// Adds a line without its end. Returns the event that it completes.
    fn add_line(&mut self, line: &str) -> Option<ServerSentEvent> {
        if line.is_empty() {
            return Some(std::mem::take(&mut self.event));
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "id" => self.last_id = Some(value.to_owned()),
            "data" => {
                if !self.event.data.is_empty() {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // Comments have an empty name.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str) -> (Vec<ServerSentEvent>, Option<String>) {
        let mut parser = EventParser::default();
        let events = text.lines().filter_map(|line| parser.add_line(line)).collect();
        (events, parser.last_id)
    }

    fn event(name: &str, data: &str) -> ServerSentEvent {
        ServerSentEvent { name: name.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn parses_events() {
        let table = [
            ("event: a\nid: 1-2\ndata: {}\n\n", vec![event("a", "{}")], Some("1-2")),
            ("event:a\ndata: one\ndata:two\n\n", vec![event("a", "one\ntwo")], None),
            // A comment that keeps the connection alive, with the current id.
            (":\nid: 7\n\n", vec![event("", "")], Some("7")),
            ("retry: 1000\n\ndata\nother: x\n\n", vec![event("", ""), event("", "")], None),
            // Incomplete.
            ("event: a\ndata: x\n", vec![], None),
        ];
        for (text, expected, id) in table {
            assert_eq!(events(text), (expected, id.map(ToOwned::to_owned)), "{text:?}");
        }
    }

    #[test]
    fn retry_delays_grow_up_to_a_limit() {
        let delays: Vec<u64> = (0..9).map(|failures| retry_delay(failures).as_secs()).collect();
        assert_eq!(delays, [0, 1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(retry_delay(u32::MAX), MAX_RETRY_DELAY);
    }
}
