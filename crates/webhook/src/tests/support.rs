//! What the tests share: targets that answer as they are told, and messages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use restante_http_client::{HttpError, HttpService, Request, Response};
use restante_mail::message::{Headline, MessageId, Summary};
use restante_mail::naming::Naming;
use serde_json::Value;

use crate::pace::Pace;
use crate::{Counts, Settings, Target, Webhooks};

/// What is waited for comes long before this.
const PATIENCE: Duration = Duration::from_mins(1);

/// As usual, but a thousand times as fast.
pub(crate) const FAST: Pace = Pace {
    first: Duration::from_millis(1),
    longest: Duration::from_millis(600),
    longest_wish: Duration::from_secs(4),
    idle: Duration::from_millis(30),
    outbox: Duration::from_millis(10),
};

type Manner = dyn Fn(&Told, usize) -> Result<u16, HttpError> + Send + Sync;

/// Stands in for all targets, and remembers what they were told.
pub(crate) struct Targets {
    told: Mutex<Vec<Told>>,
    /// How often each event was sent to each URL. Looking through all requests for it takes too long in a flood.
    times: Mutex<HashMap<(String, String), usize>>,
    manner: Box<Manner>,
}

/// What a target was told in one request.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: String,
    pub(crate) body: Value,
}

impl Targets {
    /// Targets that answer with what this says of a request and how often they were sent the same event before.
    pub(crate) fn new(manner: impl Fn(&Told, usize) -> Result<u16, HttpError> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { told: Mutex::default(), times: Mutex::default(), manner: Box::new(manner) })
    }

    /// All that they were told so far.
    pub(crate) fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    /// The mailboxes they were told of so far, in order.
    pub(crate) fn mailboxes(&self) -> Vec<String> {
        let mut mailboxes: Vec<_> = self.told().iter().map(Told::mailbox).collect();
        mailboxes.sort();
        mailboxes
    }
}

impl Told {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn mailbox(&self) -> String {
        self.body["message"]["mailbox"].as_str().unwrap().to_owned()
    }
}

impl HttpService for Targets {
    fn send(&self, request: &Request) -> Result<Response, HttpError> {
        let text = String::from_utf8(request.body.clone().unwrap()).unwrap();
        let body = serde_json::from_str(&text).unwrap();
        let told = Told { url: request.url.clone(), headers: request.headers.clone(), text, body };
        self.told.lock().unwrap().push(told.clone());
        let event = (told.url.clone(), told.header("webhook-id").unwrap_or_default().to_owned());
        let mut all = self.times.lock().unwrap();
        let times = all.entry(event).or_default();
        let before = *times;
        *times += 1;
        drop(all);
        (self.manner)(&told, before).map(|status| Response { status, ..Response::default() })
    }
}

/// Settings with these targets, which want everything.
pub(crate) fn settings(urls: &[&str]) -> Settings {
    Settings {
        targets: urls.iter().map(|url| target(url)).collect(),
        secret: None,
        private_addresses: false,
        timeout: Duration::from_secs(5),
        give_up_after: Duration::from_hours(24),
        queue: 100,
        directory: None,
    }
}

pub(crate) fn target(url: &str) -> Target {
    Target { url: url.to_owned(), events: Vec::new(), mailboxes: Vec::new() }
}

/// A server that serves from now on, and has nothing to catch up with.
pub(crate) fn start(settings: Settings, targets: &Arc<Targets>) -> Arc<Webhooks> {
    let webhooks = Webhooks::start_with(settings, targets.clone(), FAST).unwrap();
    webhooks.begin_behind(MessageId::next_after(MessageId::ZERO, Timestamp::now()));
    webhooks
}

/// A message that was stored just now.
pub(crate) fn message(mailbox: &str) -> Summary {
    static LAST: Mutex<MessageId> = Mutex::new(MessageId::ZERO);
    let mut last = LAST.lock().unwrap();
    *last = MessageId::next_after(*last, Timestamp::now());
    Summary {
        mailbox: Naming::Local.parse_mailbox(mailbox).unwrap(),
        id: *last,
        headline: Headline::new("<ann@x.org>", ["<bob@x.org>"], "Hello"),
        received: Timestamp::now(),
        size: 100,
        seen: false,
    }
}

/// Waits until something is true; how long that takes does not matter.
pub(crate) fn eventually(what: &str, is_true: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < PATIENCE, "it never happened: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// The counts of the only target.
pub(crate) fn counts(webhooks: &Webhooks) -> Counts {
    let counts = webhooks.counts();
    assert_eq!(counts.len(), 1, "{counts:?}");
    counts[0].clone()
}
