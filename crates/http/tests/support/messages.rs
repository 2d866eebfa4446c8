//! Messages with copies in several mailboxes, and a server that searches them.

use restante_http::Services;
use restante_mail::message::MessageId;
use restante_search::Search;
use serde_json::Value;

use super::*;

pub(crate) const LIST: &str = "/api/v2/messages";
pub(crate) const NOT_FOUND: &str = "There is no such message.";

/// Stores a message with the id [`id(number)`](id), which has a copy in each of these mailboxes, and returns its id.
pub(crate) async fn add_copies(server: &TestServer, number: u64, mailboxes: &[&str], tags: &[&str]) -> MessageId {
    let copy = |mailbox: &&str| {
        let (cc, recipients) = (["<cc@example.org>".to_owned()], [format!("{mailbox}@example.org")]);
        let fields = DetailFields {
            sender: "ann@example.org",
            helo: "laptop",
            ip: Some([127, 0, 0, 1].into()),
            login: Some("ci"),
            host: "mx",
            attachments: 2,
            snippet: "Hello \"all\"",
            cc: &cc,
            recipients: &recipients,
            ..DetailFields::default()
        };
        NewCopy {
            mailbox: (*mailbox).to_owned().into(),
            seen: false,
            flags: Flags::default(),
            tags: Tags::new(tags.iter().copied()).unwrap(),
            details: Details::new(&fields),
            trace: None,
        }
    };
    let message = NewMessage {
        received: Timestamp::from_microsecond(id(number).cast_signed()).unwrap(),
        headline: Headline::new("Änne <a@example.org>", ["<all@example.org>"], &format!("number {number}")),
        body: MAIL.into(),
        copies: mailboxes.iter().map(copy).collect(),
    };
    server.store.append(message).await.unwrap().stored[0].id
}

/// Returns the numbers of the messages in a list, and its `next` as a number of a message.
pub(crate) fn numbers(response: &TestResponse) -> (Vec<u64>, Option<u64>) {
    assert_eq!(response.status, 200, "{:?}", response.body);
    let list = response.json();
    let number = |id: &Value| (id.as_str().unwrap().parse::<u64>().unwrap() - FIRST) / 1_000_000;
    let messages = list["messages"].as_array().unwrap().iter().map(|message| number(&message["id"]));
    (messages.collect(), list["next"].is_string().then(|| number(&list["next"])))
}

/// Creates a server with a search.
pub(crate) fn search_server() -> TestServer {
    let search = Arc::new(Search::new(None));
    let store = Arc::new(MemoryStore::new(Limits::default()));
    let extensions = Extensions { store_observers: vec![search.clone()], ..Extensions::default() };
    let mailroom = Arc::new(Mailroom::new(restante_mailroom::Settings::default(), store.clone(), extensions));
    search.start(&mailroom);
    let services = Services { search: Some(search), ..Services::default() };
    TestServer { store, router: router(mailroom, Settings { services, ..Settings::default() }) }
}

/// Waits until all messages are in the index.
pub(crate) async fn wait_until_indexed(server: &TestServer, header: &str) {
    while server.request(&format!("GET /api/v2/search?limit=1{header}")).await.json()["complete"] != true {}
}
