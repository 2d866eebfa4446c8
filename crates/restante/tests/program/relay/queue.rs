//! Starts servers with a relay, and reads and changes their queues over the REST API.

use std::io;

use serde_json::{Value, json};

use crate::support::durability::eventually;
use crate::support::{Server, TEST_TIMEOUT};

/// Starts a server that keeps everything in memory, with these targets.
pub(crate) fn start(targets: &[&str], arguments: &[&str]) -> Server {
    let targets = targets.join(",");
    Server::start(&[&["--relay-private", "--relay-targets", &targets], arguments].concat())
}

/// Delivers a short message.
pub(crate) fn send(server: &Server, to: &str, subject: &str) {
    server.deliver(to, format!("Subject: {subject}\r\n\r\nHello\r\n").as_bytes());
}

/// Returns the id of the latest message.
pub(crate) fn latest(server: &Server) -> String {
    server.json("/api/v2/messages?limit=1")["messages"][0]["id"].as_str().unwrap().to_owned()
}

/// A client of the relay of a server.
pub(crate) struct Queue {
    agent: ureq::Agent,
    base: String,
}

impl Queue {
    pub(crate) fn of(server: &Server) -> Self {
        let config =
            ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(TEST_TIMEOUT)).build();
        Self { agent: config.into(), base: server.url("/api/v2") }
    }

    /// Releases a message. Returns the id of the entry.
    pub(crate) fn release(&self, message: &str, request: &Value) -> String {
        let (status, entry) = self.try_release(message, request).unwrap();
        assert_eq!(status, 202, "{entry}");
        assert_eq!(entry["message"], message);
        entry["id"].as_str().unwrap().to_owned()
    }

    /// Delivers and releases a message to these recipients. Returns the id of the entry.
    pub(crate) fn release_to(&self, server: &Server, subject: &str, recipients: &[&str]) -> String {
        send(server, "ann@example.org", subject);
        self.release(&latest(server), &json!({ "to": recipients }))
    }

    /// Requests a release. An error means that the server was killed.
    pub(crate) fn try_release(&self, message: &str, request: &Value) -> io::Result<(u16, Value)> {
        self.post(&format!("/messages/{message}/release"), request)
    }

    /// Retries entries at once. Returns their number.
    pub(crate) fn retry(&self, selection: &Value) -> u64 {
        self.change("retry", "retried", selection)
    }

    /// Cancels entries. Returns their number.
    pub(crate) fn cancel(&self, selection: &Value) -> u64 {
        self.change("cancel", "cancelled", selection)
    }

    /// Returns an entry with its transcript.
    pub(crate) fn entry(&self, id: &str) -> Value {
        self.get(&format!("/relay/entries/{id}"))
    }

    /// Returns all entries, the newest first. There must not be more than 1000.
    pub(crate) fn entries(&self) -> Vec<Value> {
        let page = self.get("/relay/entries?limit=1000");
        assert_eq!(page["next"], Value::Null, "there are more entries");
        page["entries"].as_array().unwrap().clone()
    }

    /// Returns the targets, with their states and the numbers of their entries, in the order of the settings.
    pub(crate) fn targets(&self) -> Vec<Value> {
        self.get("/relay")["targets"].as_array().unwrap().clone()
    }

    /// Returns the only target.
    pub(crate) fn target(&self) -> Value {
        let mut targets = self.targets();
        assert_eq!(targets.len(), 1);
        targets.remove(0)
    }

    /// Returns the number of entries of the only target that are queued or being sent.
    pub(crate) fn waiting(&self) -> u64 {
        let entries = &self.target()["entries"];
        entries["queued"].as_u64().unwrap() + entries["sending"].as_u64().unwrap()
    }

    /// Waits until an entry has this state after at least one attempt. Returns the entry.
    pub(crate) fn wait_for(&self, id: &str, state: &str) -> Value {
        let mut entry = Value::Null;
        eventually(&format!("an entry is not {state}"), || {
            entry = self.entry(id);
            entry["state"] == state && (entry["attempts"].as_u64() > Some(0) || state == "cancelled")
        });
        entry
    }

    fn change(&self, path: &str, member: &str, selection: &Value) -> u64 {
        let (status, response) = self.post(&format!("/relay/{path}"), selection).unwrap();
        assert_eq!(status, 200, "{response}");
        response[member].as_u64().unwrap()
    }

    fn post(&self, path: &str, body: &Value) -> io::Result<(u16, Value)> {
        let request = self.agent.post(format!("{}{path}", self.base)).content_type("application/json");
        let mut response = request.send(body.to_string()).map_err(io::Error::other)?;
        let text = response.body_mut().read_to_string().map_err(io::Error::other)?;
        Ok((response.status().as_u16(), serde_json::from_str(&text)?))
    }

    fn get(&self, path: &str) -> Value {
        let mut response = self.agent.get(format!("{}{path}", self.base)).call().unwrap();
        let text = response.body_mut().read_to_string().unwrap();
        assert_eq!(response.status(), 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }
}

/// Describes the recipients of an entry as `address state reply`, with the code of the reply only.
pub(crate) fn recipients(entry: &Value) -> Vec<String> {
    let describe = |recipient: &Value| {
        let [address, state, reply] =
            ["address", "state", "reply"].map(|member| recipient[member].as_str().unwrap().to_owned());
        format!("{address} {state} {}", reply.split(['-', ' ']).next().unwrap_or_default())
    };
    entry["recipients"].as_array().unwrap().iter().map(describe).collect()
}
