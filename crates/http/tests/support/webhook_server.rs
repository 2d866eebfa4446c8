//! A server with targets of webhooks.

use std::time::Duration;

use restante_http::Services;
use restante_queue::{AttemptOutcome, AttemptRecord, EntryState, NewEntry, Queue as _, SqliteQueue};
use restante_webhook::{EventKind, QUEUE, QUEUE_LIMITS, Settings as WebhookSettings, Target, Webhooks};
use serde_json::Value;

use super::accounts::Accounts;
use super::*;

pub(crate) const PAYLOAD: &str = r#"{"event":"message-stored","message":{"mailbox":"bob","subject":"\"Hi\""}}"#;

/// A server with authentication and two targets, to which nothing is sent.
pub(crate) struct WebhookServer {
    pub(crate) accounts: Accounts,
    pub(crate) queue: Arc<SqliteQueue>,
    /// The names of the targets.
    pub(crate) targets: Vec<String>,
    /// The header of a token with all scopes for all mailboxes.
    pub(crate) all: String,
}

impl WebhookServer {
    pub(crate) async fn new() -> Self {
        let queue = Arc::new(SqliteQueue::in_memory(QUEUE, QUEUE_LIMITS).unwrap());
        let target = |url: &str, events: &[EventKind], mailboxes: &[&str]| Target {
            url: url.to_owned(),
            events: events.to_vec(),
            mailboxes: mailboxes.iter().map(ToString::to_string).collect(),
        };
        let settings = WebhookSettings {
            targets: vec![
                target("https://ann:secret@ci.example.org/secret?token=secret", &[EventKind::Stored], &["CI-*"]),
                target("https://ann:secret@ci.example.org/secret?token=secret", &[EventKind::Deleted], &[]),
                target("http://other.example.org:8080/", &[], &[]),
            ],
            secret: None,
            private_addresses: false,
            timeout: Duration::from_secs(10),
            give_up_after: Duration::from_hours(24),
            max_queued: 100,
            is_durable: false,
        };
        let webhooks = Webhooks::new(settings, queue.clone()).await.unwrap();
        let statuses = webhooks.target_statuses().await.unwrap();
        let targets = statuses.into_iter().map(|status| status.name).collect();
        let services = Services { webhooks: Some(webhooks), ..Services::default() };
        let accounts = Accounts::build(Duration::from_hours(1), services);
        let all = accounts.token(&[]).await;
        Self { accounts, queue, targets, all }
    }

    /// Adds an event of a message in a mailbox to the queue.
    pub(crate) async fn add_entry(&self, mailbox: &str, target: usize, event: &str) {
        let created = Timestamp::now();
        let entry = NewEntry {
            message: 17.into(),
            mailbox: mailbox.to_owned().into(),
            target: self.targets[target].clone(),
            key: Some(format!("{event}-17-{mailbox}")),
            payload: PAYLOAD.as_bytes().to_vec(),
            created,
            expires: created + Duration::from_hours(24),
        };
        assert_eq!(self.queue.add(vec![entry]).await.unwrap().len(), 1);
    }

    /// Records that an entry was attempted.
    pub(crate) async fn attempt(&self, state: EntryState, at: Timestamp, payload: &str) {
        let claimed = self.queue.claim(&self.targets[0], Timestamp::now(), 1).await.unwrap().remove(0);
        let outcome = AttemptOutcome::Attempted {
            state,
            next_attempt: (state == EntryState::Queued).then(|| at + Duration::from_secs(10)),
            at,
            payload: payload.as_bytes().to_vec(),
            reply: "the target responded 500".to_owned(),
            log: Vec::new(),
        };
        self.queue.record(vec![AttemptRecord { id: claimed.id, claim: claimed.claim, outcome }]).await.unwrap();
    }

    /// Sends a request with a token for everything, and a JSON body.
    pub(crate) async fn post(&self, request: &str, body: &str) -> TestResponse {
        self.send(&self.all, request, body).await
    }

    pub(crate) async fn send(&self, authorization: &str, request: &str, body: &str) -> TestResponse {
        let request = format!("{request}\nContent-Type: application/json\n{authorization}");
        self.accounts.server.request_with(&request, body.to_owned(), Peer::default()).await
    }

    pub(crate) async fn get(&self, authorization: &str, path: &str) -> TestResponse {
        self.accounts.server.request(&format!("GET /api/v2/webhooks{path}\n{authorization}")).await
    }

    /// Returns the ids of the entries in a list.
    pub(crate) async fn ids(&self, authorization: &str, query: &str) -> Vec<String> {
        let list = self.get(authorization, &format!("/entries{query}")).await.json();
        list["entries"].as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect()
    }

    /// Returns the states of the targets.
    pub(crate) async fn states(&self) -> [Value; 2] {
        let targets = self.get(&self.all, "").await.json();
        [0, 1].map(|index| targets["targets"][index]["state"].clone())
    }
}
