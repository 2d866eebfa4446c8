//! The API of Mailpit. The expected responses are those of Mailpit 1.30.5, except for ids and times.

mod changes;
mod chaos;
mod events;
mod info;
mod link_check;
mod list;
mod message;
mod message_content;
mod parts;
mod release;
mod search;
mod send;
#[path = "../../../http/tests/support/mod.rs"]
mod support;
mod tags;
mod thumbnail;
mod view;

use restante_mailroom::tagging::Tagging;
use serde_json::Value;

use support::*;

/// Creates a server that reads tags from the header, as Mailpit does.
fn server() -> TestServer {
    server_with(Settings { max_message_bytes: 100_000, ..Settings::default() })
}

fn server_with(settings: Settings) -> TestServer {
    let store = Arc::new(MemoryStore::new(Limits::default()));
    let tagging = Tagging { header: true, ..Tagging::default() };
    let mailroom_settings =
        restante_mailroom::Settings { domain: "localhost".to_owned(), tagging, ..Default::default() };
    let mailroom = Mailroom::new(mailroom_settings, store.clone(), Extensions::default());
    TestServer { store, router: router(Arc::new(mailroom), settings) }
}

impl TestServer {
    /// Sends a request with a body, without a content type.
    async fn request_body(&self, request: &str, body: impl Into<Body>) -> TestResponse {
        self.request_with(request, body, Peer::from(Some([192, 0, 2, 7].into()))).await
    }

    /// Sends a message with the API of Mailpit and returns its id.
    async fn send(&self, fields: &Value) -> String {
        let response = self.request_body("POST /api/v1/send", fields.to_string()).await;
        assert_eq!(response.status, 200, "{}", response.text());
        response.json()["ID"].as_str().expect("an id").to_owned()
    }
}
