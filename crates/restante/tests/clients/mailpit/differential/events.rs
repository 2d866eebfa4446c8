//! The frames of `/api/events` after each of several changes.

use std::net::TcpStream;
use std::time::Instant;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use super::answer::{Request, send};
use super::compare::{Difference, compare};
use super::mails::{self, Mail};
use super::normal::without_volatile_values;
use super::side::{Side, deliver};
use crate::mailpit::server::Program;
use crate::support::{TEST_TIMEOUT, connect};

/// A change, and the frames that it causes.
type Step = (String, Value);

/// Makes changes and returns the frames after each of them.
pub(crate) fn steps(program: &Program, variables: &[(&str, &'static str)]) -> Vec<Step> {
    let mails = mails::all();
    let mail = |name: &str| std::slice::from_ref(mails.iter().find(|mail| mail.name == name).unwrap());
    let mut watched = Watched::new(Side::new(program, variables, &[]));
    let mut steps = vec![("connect".to_owned(), watched.frames_until("stats"))];
    for name in ["picture", "copies", "text-links"] {
        let frames = watched.deliver(mail(name));
        steps.push((format!("deliver {name}"), frames));
    }
    for (method, path, body, last) in [
        ("PUT", "/api/v1/messages", "{\"IDs\": [\"{picture}\"], \"Read\": true}", "update"),
        ("PUT", "/api/v1/messages", "{\"IDs\": [\"{picture}\"], \"Read\": false}", "update"),
        ("PUT", "/api/v1/tags", "{\"IDs\": [\"{picture}\"], \"Tags\": [\"beta\", \"Alpha\"]}", "update"),
        ("GET", "/api/v1/message/{copies}", "", "update"),
        ("DELETE", "/api/v1/messages", "{\"IDs\": [\"{picture}\"]}", "delete"),
        ("DELETE", "/api/v1/search?query=subject:copies", "", "delete"),
        ("DELETE", "/api/v1/messages", "{}", "truncate"),
    ] {
        let request = Request { method, path: path.to_owned(), body: (!body.is_empty()).then(|| body.to_owned()) };
        send(&watched.side, &request);
        steps.push((request.to_string(), watched.frames_until(last)));
    }
    steps
}

/// Adds the differences between the frames of two servers to a list.
pub(crate) fn compare_steps([mailpit, restante]: [Vec<Step>; 2], differences: &mut Vec<Difference>) {
    for ((step, one), (_, other)) in mailpit.iter().zip(&restante) {
        compare(&format!("event after {step}"), one, other, differences);
    }
}

/// A server and a client of its events.
struct Watched {
    side: Side,
    socket: WebSocket<TcpStream>,
}

impl Watched {
    fn new(side: Side) -> Self {
        let url = format!("ws://{}/api/events", side.server.http());
        let (socket, _) = client(url, connect(side.server.http())).unwrap();
        Self { side, socket }
    }

    /// Sends a mail, names it, and returns the frames that it causes.
    fn deliver(&mut self, mail: &[Mail]) -> Value {
        deliver(&self.side.server, mail);
        let frames = self.frames_until("new");
        let id = frames[0]["Data"]["ID"].as_str().unwrap().to_owned();
        self.side.ids.push((mail[0].name.clone(), id));
        let mut frames = self.named(&frames);
        self.side.replace_size(&mut frames[0]["Data"]);
        frames
    }

    /// Returns the frames up to one of this type, without statistics before it: their number depends on time.
    fn frames_until(&mut self, last: &str) -> Value {
        let deadline = Instant::now() + TEST_TIMEOUT;
        let mut frames = Vec::new();
        loop {
            // A ping ends the wait of `read`.
            assert!(Instant::now() < deadline, "waited for {last}, got {frames:?}");
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let frame: Value = serde_json::from_str(&text).unwrap();
            let is_last = frame["Type"] == last;
            if is_last || frame["Type"] != "stats" {
                frames.push(frame);
            }
            if is_last {
                return self.named(&json!(frames));
            }
        }
    }

    /// Replaces ids by names, and values that differ between runs.
    fn named(&self, frames: &Value) -> Value {
        without_volatile_values(serde_json::from_str(&self.side.with_names(&frames.to_string())).unwrap())
    }
}
