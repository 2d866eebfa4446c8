//! Test support: fake targets and messages.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use restante_http_client::{HttpError, HttpService, Request, Response};
use restante_mail::details::Details;
use restante_mail::message::{Flags, Headline, MessageId, Summary};
use restante_mail::naming::Naming;
use restante_mail::tags::Tags;
use restante_mailroom::Mailroom;
use restante_mailroom::hooks::Extensions;
use restante_queue::SqliteQueue;
use restante_store::memory::MemoryStore;
use restante_store::{Limits, Store};
use serde_json::Value;
use tokio::runtime::{Handle, Runtime};

use crate::backoff::Backoff;
use crate::{Counts, QUEUE, QUEUE_LIMITS, Settings, Target, Webhooks};

/// The maximum time to wait for a condition.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The default delays, a thousand times shorter, except that missed events wait until they have room.
pub(crate) const FAST: Backoff = Backoff {
    first_delay: Duration::from_millis(1),
    max_delay: Duration::from_millis(600),
    max_retry_after: Duration::from_secs(4),
    maintenance_interval: Duration::from_millis(10),
    max_room_wait: Duration::from_mins(10),
};

type Responder = dyn Fn(&ReceivedRequest, usize) -> Result<u16, HttpError> + Send + Sync;

/// A fake for all targets. It records the requests.
pub(crate) struct FakeTargets {
    requests: Mutex<Vec<ReceivedRequest>>,
    /// How often each event was sent to each URL. Searching all requests for it would be too slow with many events.
    attempts: Mutex<HashMap<(String, String), usize>>,
    responder: Box<Responder>,
}

/// One received request.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    /// The body as it was received.
    pub(crate) text: String,
    /// The parsed body.
    pub(crate) body: Value,
}

impl FakeTargets {
    /// Returns targets that respond with the result of `responder`, which gets the request and the number of earlier
    /// requests with the same event.
    pub(crate) fn new(
        responder: impl Fn(&ReceivedRequest, usize) -> Result<u16, HttpError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { requests: Mutex::default(), attempts: Mutex::default(), responder: Box::new(responder) })
    }

    /// Returns all requests so far.
    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the mailboxes of all requests so far, sorted.
    pub(crate) fn mailboxes(&self) -> Vec<String> {
        let mut mailboxes: Vec<_> = self.requests().iter().map(ReceivedRequest::mailbox).collect();
        mailboxes.sort();
        mailboxes
    }
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn mailbox(&self) -> String {
        self.body["message"]["mailbox"].as_str().unwrap().to_owned()
    }
}

impl HttpService for FakeTargets {
    fn send(&self, request: &Request) -> Result<Response, HttpError> {
        let text = String::from_utf8(request.body.clone().unwrap()).unwrap();
        let body = serde_json::from_str(&text).unwrap();
        let request = ReceivedRequest { url: request.url.clone(), headers: request.headers.clone(), text, body };
        self.requests.lock().unwrap().push(request.clone());
        let event = (request.url.clone(), request.header("webhook-id").unwrap_or_default().to_owned());
        let mut attempts = self.attempts.lock().unwrap();
        let count = attempts.entry(event).or_default();
        let earlier = *count;
        *count += 1;
        drop(attempts);
        (self.responder)(&request, earlier).map(|status| Response { status, ..Response::default() })
    }
}

/// Returns settings with these targets, without filters.
pub(crate) fn settings(urls: &[&str]) -> Settings {
    Settings {
        targets: urls.iter().map(|url| target(url)).collect(),
        secret: None,
        private_addresses: false,
        timeout: Duration::from_secs(5),
        give_up_after: Duration::from_hours(24),
        max_queued: 100,
        is_durable: false,
    }
}

pub(crate) fn target(url: &str) -> Target {
    Target { url: url.to_owned(), events: Vec::new(), mailboxes: Vec::new() }
}

/// Returns the runtime to which shared stores belong, and on which the tasks of tests do not run.
pub(crate) fn main_runtime() -> Handle {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());
    RUNTIME.handle().clone()
}

pub(crate) fn memory_queue() -> Arc<SqliteQueue> {
    Arc::new(SqliteQueue::in_memory(QUEUE, QUEUE_LIMITS).unwrap())
}

pub(crate) fn mailroom() -> Arc<Mailroom> {
    mailroom_of(Arc::new(MemoryStore::new(Limits::default())), "restante")
}

/// Returns a mailroom that receives messages as the server `domain`. An imported message was received by none.
pub(crate) fn mailroom_of(store: Arc<dyn Store>, domain: &str) -> Arc<Mailroom> {
    let settings = restante_mailroom::Settings { domain: domain.to_owned(), ..restante_mailroom::Settings::default() };
    Arc::new(Mailroom::new(settings, store, Extensions::default()))
}

/// Starts webhooks with a queue in memory.
pub(crate) fn start(settings: Settings, targets: &Arc<FakeTargets>) -> Arc<Webhooks> {
    start_with_delays(settings, targets, FAST)
}

/// Starts webhooks with a queue in memory and these delays.
pub(crate) fn start_with_delays(settings: Settings, targets: &Arc<FakeTargets>, backoff: Backoff) -> Arc<Webhooks> {
    let webhooks = Webhooks::with_http(settings, memory_queue(), targets.clone(), backoff);
    let webhooks = main_runtime().block_on(webhooks).unwrap();
    activate(&webhooks);
    webhooks
}

/// Activates webhooks of a server with an empty store.
pub(crate) fn activate(webhooks: &Webhooks) {
    let last = MessageId::next_after(MessageId::ZERO, Timestamp::now());
    main_runtime().block_on(webhooks.activate_after(Ok(last), &mailroom(), main_runtime())).unwrap();
}

/// Returns a message that was stored just now.
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
        flags: Flags::default(),
        modseq: 1,
        message: *last,
        number: 1,
        tags: Tags::default(),
        details: Details::default(),
    }
}

/// Waits until `is_true` returns true. `condition` describes it in the panic message.
pub(crate) fn wait_until(condition: &str, is_true: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < TIMEOUT, "timed out: {condition}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Returns the counts of the only target.
pub(crate) fn counts(webhooks: &Webhooks) -> Counts {
    let counts = webhooks.counts();
    assert_eq!(counts.len(), 1, "{counts:?}");
    counts[0].clone()
}
