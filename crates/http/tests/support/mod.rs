//! Servers for the tests of the APIs: the whole service in-process over a memory store. The tests of every API include this module.

#![allow(dead_code, unused_imports, reason = "every test program uses its own part of this")]

pub(crate) mod accounts;
pub(crate) mod auth_server;
pub(crate) mod chaos;
pub(crate) mod events;
pub(crate) mod isolated_file;
pub(crate) mod messages;
pub(crate) mod relay_server;
pub(crate) mod sessions;
pub(crate) mod webhook_server;

// The names that most tests use.
pub(crate) use std::sync::Arc;

pub(crate) use axum::Router;
pub(crate) use axum::body::{Body, to_bytes};
pub(crate) use axum::http::{HeaderMap, Request, StatusCode};
pub(crate) use bytes::Bytes;
pub(crate) use jiff::Timestamp;
pub(crate) use restante_auth::AuthService;
pub(crate) use restante_http::{ListenerApis, Peer, ServerInfo, Service};
pub(crate) use restante_http_core::server::{Server, Settings};
pub(crate) use restante_mail::details::{DetailFields, Details};
pub(crate) use restante_mail::message::{Flags, Headline};
pub(crate) use restante_mail::mime::summarize;
pub(crate) use restante_mail::tags::Tags;
pub(crate) use restante_mailroom::Mailroom;
pub(crate) use restante_mailroom::hooks::Extensions;
pub(crate) use restante_mailroom::policy::Policy;
pub(crate) use restante_store::Limits;
pub(crate) use restante_store::memory::MemoryStore;
pub(crate) use restante_store::{NewCopy, NewMessage, Store};
pub(crate) use tower::ServiceExt as _;

/// 2026-11-14 23:42:50.123456 UTC, the arrival of the first message. Each further one arrives a second later.
pub(crate) const FIRST: u64 = 1_794_699_770_123_456;

/// A message with everything: an encoded, a folded and a repeated header, text and HTML, an inline image, and an
/// attachment with a defect.
pub(crate) const MAIL: &str = "\
From: A <a@example.org>\r\n\
SUBJECT: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\
X-Twice: one\r\n two\r\n\
x-twice: three\r\n\
Content-Type: multipart/mixed; boundary=b\r\n\
\r\n\
--b\r\n\
Content-Type: multipart/related; boundary=r\r\n\
\r\n\
--r\r\n\
Content-Type: multipart/alternative; boundary=c\r\n\
\r\n\
--c\r\n\
Content-Type: text/plain; charset=iso-8859-1\r\n\
Content-Transfer-Encoding: quoted-printable\r\n\
\r\n\
Gr=FC=DFe <\"x\"> http://example.org/?a&b\r\n\
--c\r\n\
Content-Type: text/html; charset=utf-8\r\n\
\r\n\
<p>Grüße</p><img src=\"cid:logo@x\"><img src=\"http://tracker.example/x\"><script>alert(1)</script>\r\n\
--c--\r\n\
--r\r\n\
Content-Type: image/png\r\n\
Content-ID: <logo@x>\r\n\
Content-Disposition: inline; filename=\"../logo\\\"<b>.png\"\r\n\
Content-Transfer-Encoding: Base64\r\n\
\r\n\
YWJj\r\n\
--r--\r\n\
--b\r\n\
Content-Type: application/pdf\r\n\
Content-Transfer-Encoding: base64\r\n\
\r\n\
YW*Jj\r\n\
--b--\r\n";

/// Returns the id of the message that arrived as number `number`, counted from 0.
pub(crate) fn id(number: u64) -> u64 {
    FIRST + number * 1_000_000
}

/// Returns the first members of all JSON about this message in mailbox `test`, without the brace.
pub(crate) fn summary(number: u64, size: usize) -> String {
    let (id, second, millis) = (id(number), 50 + number, id(number) / 1000);
    let addresses = r#""from":"Änne <a@example.org>","to":["<test@example.org>","Bob <b@example.org>"]"#;
    let times = format!(r#""date":"2026-11-14T23:42:{second}.123456+00:00","posix-millis":{millis}"#);
    let subject = format!(r#""subject":"number \"{number}\"""#);
    format!(r#""mailbox":"test","id":"{id}",{addresses},{subject},{times},"size":{size},"seen":false"#)
}

pub(crate) fn router(mailroom: Arc<Mailroom>, settings: Settings) -> Router {
    router_with_info(mailroom, settings, ServerInfo::default())
}

pub(crate) fn router_with_info(mailroom: Arc<Mailroom>, settings: Settings, info: ServerInfo) -> Router {
    Service::new(mailroom, with_runs(settings), info).router(&ListenerApis::main(&[]))
}

/// Returns the settings with an authentication service, as every server has one. It requires no credentials.
pub(crate) fn with_runs(settings: Settings) -> Settings {
    let open = || AuthService::open(restante_auth::Settings::default()).expect("random bytes");
    Settings { auth: Some(settings.auth.unwrap_or_else(open)), ..settings }
}

pub(crate) fn build_router(server: Arc<Server>) -> Router {
    Service::with_server(server, ServerInfo::default()).router(&ListenerApis::main(&[]))
}

/// A service and its store.
pub(crate) struct TestServer {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) router: Router,
}

impl TestServer {
    pub(crate) fn new() -> Self {
        Self::with(Settings { cache_bytes: 1 << 20, ..Settings::default() })
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::build(Policy::default(), settings, |_| {})
    }

    /// Creates a server with these descriptions.
    pub(crate) fn with_info(settings: Settings, info: ServerInfo) -> Self {
        let store = Arc::new(MemoryStore::new(Limits::default()));
        let mailroom_settings = restante_mailroom::Settings { domain: "localhost".to_owned(), ..Default::default() };
        let mailroom = Mailroom::new(mailroom_settings, store.clone(), Extensions::default());
        Self { store, router: router_with_info(Arc::new(mailroom), settings, info) }
    }

    /// Creates a server with this policy. `change` modifies its state before the router is built.
    pub(crate) fn build(policy: Policy, settings: Settings, change: impl FnOnce(&mut Server)) -> Self {
        let store = Arc::new(MemoryStore::new(Limits::default()));
        let mailroom_settings =
            restante_mailroom::Settings { domain: "localhost".to_owned(), policy, ..Default::default() };
        let mailroom = Mailroom::new(mailroom_settings, store.clone(), Extensions::default());
        let mut server = Server::new(Arc::new(mailroom), with_runs(settings));
        change(&mut server);
        Self { store, router: build_router(Arc::new(server)) }
    }

    /// Creates a server in which mailbox `test` contains the message with everything.
    pub(crate) async fn with_everything() -> Self {
        let server = Self::new();
        server.add_message(0, "test", MAIL).await;
        server
    }

    /// Creates a server in which mailbox `test` contains two short messages.
    pub(crate) async fn with_two_messages() -> Self {
        let server = Self::new();
        server.add_message(0, "test", "Subject: one\r\n\r\nHello\r\n").await;
        server.add_message(1, "test", "Subject: two\r\n\r\nHello again\r\n").await;
        server
    }

    /// Stores a message with the id [`id(number)`](id) in a mailbox.
    pub(crate) async fn add_message(&self, number: u64, mailbox: &str, body: &str) {
        self.append(number, mailbox, body, Details::default()).await;
    }

    /// Stores a message with details of its source, such as the number of attachments, as deliveries do.
    pub(crate) async fn add_message_with_details(&self, number: u64, mailbox: &str, body: &str) {
        let (header, preview) = summarize(body.as_bytes());
        self.append(number, mailbox, body, Details::new(&DetailFields::of_source(&header, &preview))).await;
    }

    pub(crate) async fn append(&self, number: u64, mailbox: &str, body: &str, details: Details) {
        let message = NewMessage {
            received: Timestamp::from_microsecond(id(number).cast_signed()).unwrap(),
            headline: Headline::new(
                "Änne <a@example.org>",
                ["<test@example.org>", "Bob <b@example.org>"],
                &format!("number \"{number}\""),
            ),
            body: Bytes::copy_from_slice(body.as_bytes()),
            copies: vec![NewCopy {
                mailbox: mailbox.to_owned().into(),
                seen: false,
                flags: Flags::default(),
                tags: Tags::default(),
                details,
                trace: Some(Bytes::from_static(b"Return-Path: <a@example.org>\r\n")),
            }],
        };
        let appended = self.store.append(message).await.unwrap();
        assert_eq!(appended.stored[0].id.number(), id(number));
    }

    /// Sends a request: the method and the target, then a header in each line. `Host` is added if it is missing.
    pub(crate) async fn request(&self, request: &str) -> TestResponse {
        self.request_with(request, Body::empty(), Peer::default()).await
    }

    pub(crate) async fn request_with(&self, request: &str, body: impl Into<Body>, peer: Peer) -> TestResponse {
        send_request(&self.router, request, body.into(), peer).await
    }
}

pub(crate) async fn send_request(router: &Router, request: &str, body: Body, peer: Peer) -> TestResponse {
    let mut lines = request.lines().map(str::trim);
    let (method, target) = lines.next().and_then(|line| line.split_once(' ')).expect("a request line");
    let mut builder = Request::builder().method(method).uri(target).extension(peer);
    if !request.contains("\nHost:") {
        builder = builder.header("Host", "localhost:9000");
    }
    for (name, value) in lines.map(|line| line.split_once(": ").expect("a header")) {
        builder = builder.header(name, value);
    }
    let response = router.clone().oneshot(builder.body(body).expect("a request")).await.expect("a response");
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a body");
    TestResponse { status: parts.status, headers: parts.headers, body }
}

/// A response with its complete body.
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl TestResponse {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("ASCII"))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// Returns the numbers of the messages in a listing.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let list = self.json();
        let ids = list.as_array().expect("a listing").iter().map(|message| message["id"].as_str().expect("an id"));
        ids.map(|id| (id.parse::<u64>().expect("a number") - FIRST) / 1_000_000).collect()
    }

    /// Checks all details of a problem document, and returns its sentence.
    pub(crate) fn problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{:?}", self.body);
        assert_eq!(self.header("content-type"), "application/problem+json");
        assert_eq!(self.header("cache-control"), "no-store");
        assert!(self.body.ends_with(b"}\n"));
        let json = self.json();
        assert_eq!(json["type"], "about:blank");
        assert_eq!(json["title"], self.status.canonical_reason().unwrap_or_default());
        assert_eq!(json["status"], status);
        json["detail"].as_str().expect("a sentence").to_owned()
    }
}
