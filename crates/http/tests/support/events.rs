//! A server with live events, and its clients, over connections in memory.

use std::time::Duration;

use futures_util::StreamExt as _;
use restante_http::{ConnectionGuard, Version, serve_connection};
use restante_mail::address::{Address, Alphabet};
use restante_mail::envelope::{self, Envelope, Recipient};
use restante_mail::message::MessageId;
use restante_mail::naming::Naming;
use restante_mailroom::DeliveryOutcome;
use restante_metrics::Monitors;
use restante_net::{Shutdown, ShutdownTrigger};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{WebSocketStream, client_async};

use super::*;

/// A server with its mailroom and its shutdown trigger.
pub(crate) struct EventServer {
    pub(crate) mailroom: Arc<Mailroom>,
    pub(crate) monitors: Monitors,
    pub(crate) router: Router,
    pub(crate) trigger: ShutdownTrigger,
    pub(crate) shutdown: Shutdown,
}

impl EventServer {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        Self::with_store(Arc::new(MemoryStore::new(Limits::default())), settings)
    }

    pub(crate) fn with_history(history: usize, settings: Settings) -> Self {
        Self::build(Arc::new(MemoryStore::new(Limits::default())), history, settings)
    }

    pub(crate) fn with_store(store: Arc<dyn Store>, settings: Settings) -> Self {
        Self::build(store, 3, settings)
    }

    pub(crate) fn build(store: Arc<dyn Store>, history: usize, settings: Settings) -> Self {
        let mailroom_settings = restante_mailroom::Settings { history, ..restante_mailroom::Settings::default() };
        let mailroom = Arc::new(Mailroom::new(mailroom_settings, store, Extensions::default()));
        let feed_mailroom = mailroom.clone();
        tokio::spawn(async move { feed_mailroom.follow_feed().await });
        let monitors = settings.metrics.monitors.clone();
        let (trigger, shutdown) = ShutdownTrigger::new();
        Self { router: router(mailroom.clone(), settings), mailroom, monitors, trigger, shutdown }
    }

    /// Delivers a message with this subject to `{to}@example.org`, and returns its id.
    pub(crate) async fn deliver(&self, to: &str, subject: &str) -> MessageId {
        self.deliver_to(&[to], subject).await
    }

    /// Delivers a message with this subject to several recipients, and returns its id.
    pub(crate) async fn deliver_to(&self, to: &[&str], subject: &str) -> MessageId {
        let recipient = |name: &&str| {
            let address = Address::parse(&format!("{name}@example.org"), Alphabet::Ascii).unwrap();
            Recipient::new(address, Naming::Local).unwrap()
        };
        self.deliver_envelope(to.iter().map(recipient).collect(), subject).await
    }

    /// Delivers a message with this subject to a mailbox.
    pub(crate) async fn deliver_in(&self, mailbox: &str, subject: &str) {
        let address = Address::parse("bob@example.org", Alphabet::Ascii).unwrap();
        let recipient =
            Recipient { mailbox: mailbox.to_owned().into(), ..Recipient::new(address, Naming::Local).unwrap() };
        self.deliver_envelope(vec![recipient], subject).await;
    }

    pub(crate) async fn deliver_envelope(&self, recipients: Vec<Recipient>, subject: &str) -> MessageId {
        let envelope = Envelope {
            peer: envelope::Peer { ip: None, helo: "client.test".into() },
            login: None,
            key: None,
            listener: None,
            from: None,
            recipients,
        };
        let mail = format!("Subject: {subject}\r\n\r\n");
        let DeliveryOutcome::Stored(copies) = self.mailroom.deliver(&envelope, mail.into()).await.unwrap() else {
            panic!()
        };
        copies[0].id
    }

    pub(crate) fn connect(&self, buffer: usize) -> DuplexStream {
        self.connect_with(buffer, ConnectionGuard::new(None, self.shutdown.clone()))
    }

    pub(crate) fn connect_with(&self, buffer: usize, guard: ConnectionGuard) -> DuplexStream {
        let (client, stream) = duplex(buffer);
        tokio::spawn(serve_connection(stream, Peer::default(), Version::Http1, self.router.clone(), guard));
        client
    }

    /// Opens a WebSocket with a header of the form `Name: value`.
    pub(crate) async fn websocket_with(&self, path: &str, header: &str) -> WebSocketClient {
        let client = self.connect(1 << 20);
        let mut request = format!("ws://localhost{path}").into_client_request().unwrap();
        let (_, value) = header.split_once(": ").expect("a header");
        request.headers_mut().insert("authorization", value.parse().unwrap());
        WebSocketClient(client_async(request, client).await.unwrap().0)
    }

    pub(crate) async fn websocket(&self, path: &str) -> WebSocketClient {
        let client = self.connect(1 << 20);
        WebSocketClient(client_async(format!("ws://localhost{path}"), client).await.unwrap().0)
    }

    /// Opens a stream of Server-Sent Events, and reads its header.
    pub(crate) async fn stream(&self, path: &str, headers: &str) -> EventStreamClient {
        let mut client = self.connect(1 << 20);
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let mut stream = EventStreamClient { client, read: String::new() };
        let head = stream.until("\r\n\r\n").await.unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(stream.until("retry: 1000\n\n").await.is_some());
        stream
    }

    /// Returns whether the metrics reach these values. Connections end a little later than their clients notice.
    pub(crate) async fn counts(&self, websockets: i64, streams: i64, lagged: u64) -> bool {
        for _ in 0..100 {
            let now = &self.monitors;
            let counted = (now.websockets.get(), now.streams.get(), now.lagged.get());
            if counted == (websockets, streams, lagged) {
                return true;
            }
            sleep(Duration::from_millis(10)).await;
        }
        false
    }
}

/// A client of a WebSocket.
pub(crate) struct WebSocketClient(pub(crate) WebSocketStream<DuplexStream>);

impl WebSocketClient {
    /// Returns the next text, `closed` and the code, `ended` at the end of the connection, or `nothing` after a
    /// timeout.
    pub(crate) async fn next(&mut self) -> String {
        loop {
            return match timeout(Duration::from_secs(5), self.0.next()).await {
                Ok(Some(Ok(Message::Text(text)))) => text.as_str().to_owned(),
                Ok(Some(Ok(Message::Ping(_)))) => continue,
                Ok(Some(Ok(Message::Close(Some(frame))))) => format!("closed {}", u16::from(frame.code)),
                Ok(Some(Ok(Message::Close(None)))) => "closed".to_owned(),
                Ok(Some(Ok(other))) => panic!("{other:?}"),
                Ok(Some(Err(_)) | None) => "ended".to_owned(),
                Err(_) => "nothing".to_owned(),
            };
        }
    }

    /// Returns the next text as JSON.
    pub(crate) async fn json(&mut self) -> serde_json::Value {
        let text = self.next().await;
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("not JSON: {text}"))
    }

    /// Returns the subject in the next text or, for a deletion, `-` and the id.
    pub(crate) async fn subject(&mut self) -> String {
        let text = self.next().await;
        let Ok(json) = serde_json::from_str::<serde_json::Value>(&text) else { return text };
        let id = json["identifier"]["id"].as_str().map(|id| format!("-{id}"));
        let subject = json["subject"].as_str().or(json["header"]["subject"].as_str());
        id.unwrap_or_else(|| subject.unwrap_or("no subject").to_owned())
    }
}

/// A client of Server-Sent Events.
pub(crate) struct EventStreamClient {
    pub(crate) client: DuplexStream,
    pub(crate) read: String,
}

impl EventStreamClient {
    /// Reads up to and including this text. Returns `None` if the connection ends before.
    pub(crate) async fn until(&mut self, end: &str) -> Option<String> {
        loop {
            if let Some(at) = self.read.find(end) {
                let rest = self.read.split_off(at + end.len());
                return Some(std::mem::replace(&mut self.read, rest));
            }
            let mut chunk = [0; 4096];
            let count = timeout(Duration::from_mins(10), self.client.read(&mut chunk))
                .await
                .expect("input before the timeout")
                .unwrap();
            if count == 0 {
                return None;
            }
            self.read.push_str(std::str::from_utf8(&chunk[..count]).unwrap());
        }
    }

    /// Returns the name, id and data of the next event, regardless of chunk boundaries.
    pub(crate) async fn event(&mut self) -> Option<(String, String, serde_json::Value)> {
        self.until("event: ").await?;
        let name = self.until("\n").await?.trim().to_owned();
        let id = self.until("\n").await?.strip_prefix("id: ").unwrap().trim().to_owned();
        let data = self.until("\n\n").await?;
        Some((name, id, serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap()))
    }
}
