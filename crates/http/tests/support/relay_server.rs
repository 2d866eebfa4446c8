//! A server with a relay.

use std::time::Duration;

use restante_http::Services;
use restante_queue::{Limits as QueueLimits, NewEntry, Queue as _, SqliteQueue};
use restante_relay::{
    Content, EntryRecipient, MAX_FINISHED, Origin, QUEUE, RecipientPatterns, Relay, Settings as RelaySettings, Target,
    TargetTls, Verification,
};

use super::accounts::Accounts;
use super::*;

/// The maximum number of entries that wait in the queue of a test.
pub(crate) const MAX_WAITING: usize = 10;

/// A server with authentication and two relay targets, which cannot be reached: `main` for recipients at `example.org` except
/// `boss`, and `other` for all recipients.
pub(crate) struct RelayServer {
    pub(crate) accounts: Accounts,
    pub(crate) queue: Arc<SqliteQueue>,
    /// The header of a token with all scopes for all mailboxes.
    pub(crate) all: String,
}

impl RelayServer {
    /// Creates a server with both targets, in which nothing is sent.
    pub(crate) async fn new() -> Self {
        Self::with(vec![target("main", &["*@example.org"], &["boss@*"]), target("other", &["*"], &[])]).await
    }

    /// Creates a server with the target `main`. Its entries stay in the queue.
    pub(crate) async fn started() -> Self {
        let server = Self::with(vec![target("main", &["*@example.org"], &["boss@*"])]).await;
        server.start().await;
        server
    }

    pub(crate) async fn with(targets: Vec<Target>) -> Self {
        let limits = QueueLimits { max_waiting: MAX_WAITING, max_finished: MAX_FINISHED };
        let queue = Arc::new(SqliteQueue::in_memory(QUEUE, limits).unwrap());
        let settings = RelaySettings {
            targets,
            give_up_after: Duration::from_hours(24),
            domain: "mx.test".to_owned(),
            ..RelaySettings::default()
        };
        let relay = Some(Relay::new(settings, queue.clone()));
        let services = Services { relay, ..Services::default() };
        let accounts = Accounts::build(Duration::from_hours(1), services);
        let all = accounts.token(&[]).await;
        Self { accounts, queue, all }
    }

    /// Starts the relay. Messages can be released then.
    pub(crate) async fn start(&self) {
        let relay = self.accounts.state.settings.services.relay.as_ref().unwrap();
        relay.start(&self.accounts.state.mailroom).await.unwrap();
    }

    /// Delivers a message, and returns its id.
    pub(crate) async fn deliver(&self, recipient: &str, header: &str) -> String {
        let message = format!("{header}From: ann@x.org\r\nSubject: hi\r\n\r\nHello\r\n");
        let request = format!("POST /api/v2/mailbox/{recipient}\nContent-Type: message/rfc822\n{}", self.all);
        let response = self.accounts.server.request_with(&request, message, Peer::default()).await;
        assert_eq!(response.status, 201, "{:?}", response.body);
        response.json()["messages"][0]["id"].as_str().unwrap().to_owned()
    }

    /// Adds an entry for a message in a mailbox to the queue, and returns its id.
    pub(crate) async fn add_entry(&self, mailbox: &str, target: &str, recipients: &[&str], origin: Origin) -> String {
        let created = Timestamp::now();
        let recipients = recipients.iter().map(|address| EntryRecipient::new((*address).to_owned())).collect();
        let content = Content { copy: 17, sender: "ann@x.org".to_owned(), recipients, origin };
        let entry = NewEntry {
            message: 17.into(),
            mailbox: mailbox.to_owned().into(),
            target: target.to_owned(),
            key: None,
            payload: content.encode(),
            created,
            expires: created + Duration::from_hours(24),
        };
        self.queue.add(vec![entry]).await.unwrap()[0].to_string()
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
        self.accounts.server.request(&format!("GET {path}\n{authorization}")).await
    }

    /// Returns the ids of the entries in a list.
    pub(crate) async fn ids(&self, authorization: &str, query: &str) -> Vec<String> {
        let list = self.get(authorization, &format!("/api/v2/relay/entries{query}")).await.json();
        list["entries"].as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect()
    }
}

/// Returns a target at an address that is not public, to which the relay does not connect.
pub(crate) fn target(name: &str, allowed: &[&str], blocked: &[&str]) -> Target {
    Target {
        name: name.to_owned(),
        host: "127.0.0.1".to_owned(),
        port: 25,
        tls: TargetTls::StartTls,
        verification: Verification::System,
        login: None,
        timeout: Duration::from_secs(30),
        connections: 1,
        return_path: None,
        from: None,
        allowed: RecipientPatterns::parse(allowed).unwrap(),
        blocked: RecipientPatterns::parse(blocked).unwrap(),
    }
}
