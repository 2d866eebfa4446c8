//! The environment of a script test: a fake network, fake messages, a recorded log, and a clock that the test controls.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;
use mlua::{BString, Function, LuaString, Table};
use parking_lot::Mutex;
use restante_http_client::{HttpError, HttpService, Request, Response};
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::{MailboxName, Naming};

use crate::modules::SharedDict;
use crate::services::{Clock, Level, Log, LogField, MailAccess, NO_SUCH_MESSAGE, Release, Services};

/// The maximum number of recorded log lines.
const MAX_LOG_ENTRIES: usize = 1000;

/// The maximum number of released messages.
const MAX_RELEASES: usize = 1000;

/// The error of a request if the test has no response.
const NO_NETWORK: &str = "there is no network in tests: set t.http";

/// Fakes of all services.
pub(super) struct TestEnvironment {
    pub(super) naming: Naming,
    pub(super) state: Mutex<State>,
}

/// What a test can change.
#[derive(Default)]
pub(super) struct State {
    log: Vec<LogEntry>,
    messages: BTreeMap<(MailboxName, MessageId), (Summary, Bytes)>,
    last_id: u64,
    /// How far the clock was advanced.
    clock_offset: Duration,
    /// Responds to requests.
    pub(super) responder: Option<Function>,
    /// The messages that were released.
    releases: Vec<ReleasedMessage>,
    /// The error of every release, if it is set.
    pub(super) release_error: Option<String>,
    /// An error in the test's own functions.
    pub(super) error: Option<String>,
}

/// A message that was released.
#[derive(Clone, Debug)]
pub(super) struct ReleasedMessage {
    pub(super) mailbox: MailboxName,
    pub(super) id: MessageId,
    pub(super) release: Release,
}

/// A log line.
#[derive(Clone, Debug)]
pub(super) struct LogEntry {
    pub(super) level: Level,
    pub(super) text: String,
    pub(super) fields: Vec<LogField>,
}

impl TestEnvironment {
    pub(super) fn new(naming: Naming) -> Arc<Self> {
        Arc::new(Self { naming, state: Mutex::default() })
    }

    /// Returns the services for a script.
    pub(super) fn services(self: &Arc<Self>) -> Services {
        let commands = Arc::default();
        Services { http: self.clone(), mail: self.clone(), log: self.clone(), clock: self.clone(), commands }
    }

    /// Creates a dictionary that uses this clock.
    pub(super) fn shared(self: &Arc<Self>) -> SharedDict {
        let environment = self.clone();
        SharedDict::with_clock(move || {
            let now = Instant::now();
            now.checked_add(environment.state.lock().clock_offset).unwrap_or(now)
        })
    }

    /// Returns the log lines after the first `known` ones.
    pub(super) fn log_after(&self, known: usize) -> Vec<LogEntry> {
        self.state.lock().log.get(known..).map(<[LogEntry]>::to_vec).unwrap_or_default()
    }

    /// Returns the id of the next message.
    pub(super) fn next_id(&self) -> MessageId {
        MessageId::from(self.state.lock().last_id + 1)
    }

    pub(super) fn add_message(&self, summary: Summary, source: Bytes) {
        let mut state = self.state.lock();
        state.last_id = state.last_id.max(summary.id.number());
        state.messages.insert((summary.mailbox.clone(), summary.id), (summary, source));
    }

    pub(super) fn remove(&self, mailbox: &MailboxName, id: MessageId) -> bool {
        self.state.lock().messages.remove(&(mailbox.clone(), id)).is_some()
    }

    /// Returns the messages of a mailbox, oldest first.
    pub(super) fn messages(&self, mailbox: &MailboxName) -> Vec<Summary> {
        let state = self.state.lock();
        let from = (mailbox.clone(), MessageId::ZERO);
        let to = (mailbox.clone(), MessageId::MAX);
        state.messages.range(from..=to).map(|(_, (summary, _))| summary.clone()).collect()
    }

    pub(super) fn now(&self) -> Timestamp {
        let offset = self.state.lock().clock_offset;
        let now = Timestamp::now();
        now.checked_add(offset).unwrap_or(now)
    }

    pub(super) fn advance(&self, duration: Duration) {
        let mut state = self.state.lock();
        state.clock_offset = state.clock_offset.saturating_add(duration);
    }

    /// Returns the released messages after the first `known` ones.
    pub(super) fn releases_after(&self, known: usize) -> Vec<ReleasedMessage> {
        self.state.lock().releases.get(known..).map(<[ReleasedMessage]>::to_vec).unwrap_or_default()
    }
}

impl Log for TestEnvironment {
    fn is_enabled(&self, _: Level) -> bool {
        true
    }

    fn write(&self, level: Level, text: &str, fields: &[LogField]) {
        let mut state = self.state.lock();
        if state.log.len() < MAX_LOG_ENTRIES {
            state.log.push(LogEntry { level, text: text.to_owned(), fields: fields.to_vec() });
        }
    }
}

impl MailAccess for TestEnvironment {
    fn mailbox(&self, text: &str) -> Result<MailboxName, String> {
        self.naming.parse_mailbox(text).map_err(|error| error.to_string())
    }

    fn list(
        &self,
        mailbox: &MailboxName,
        after: Option<MessageId>,
        limit: usize,
        _: Duration,
    ) -> Result<Vec<Summary>, String> {
        let mut messages = self.messages(mailbox);
        messages.retain(|message| after.is_none_or(|after| message.id > after));
        messages.truncate(limit);
        Ok(messages)
    }

    fn find(&self, mailbox: &MailboxName, id: MessageId, _: Duration) -> Result<Option<Summary>, String> {
        Ok(self.state.lock().messages.get(&(mailbox.clone(), id)).map(|(summary, _)| summary.clone()))
    }

    fn latest(&self, mailbox: &MailboxName, _: Duration) -> Result<Option<Summary>, String> {
        Ok(self.messages(mailbox).pop())
    }

    fn source(&self, mailbox: &MailboxName, id: MessageId, _: Duration) -> Result<Option<Bytes>, String> {
        Ok(self.state.lock().messages.get(&(mailbox.clone(), id)).map(|(_, source)| source.clone()))
    }

    fn delete(&self, mailbox: &MailboxName, id: MessageId, _: Duration) -> Result<bool, String> {
        Ok(self.remove(mailbox, id))
    }

    fn release(
        &self,
        mailbox: &MailboxName,
        id: MessageId,
        release: Release,
        timeout: Duration,
    ) -> Result<String, String> {
        self.find(mailbox, id, timeout)?.ok_or(NO_SUCH_MESSAGE)?;
        let mut state = self.state.lock();
        if let Some(error) = &state.release_error {
            return Err(error.clone());
        }
        if state.releases.len() >= MAX_RELEASES {
            return Err("the relay queue is full; retry later".to_owned());
        }
        state.releases.push(ReleasedMessage { mailbox: mailbox.clone(), id, release });
        Ok(state.releases.len().to_string())
    }
}

impl Clock for TestEnvironment {
    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

impl HttpService for TestEnvironment {
    fn send(&self, request: &Request) -> Result<Response, HttpError> {
        // The responder is a Lua function, which may call this function again.
        let responder = self.state.lock().responder.clone();
        let responder = responder.ok_or_else(|| HttpError::Network(NO_NETWORK.to_owned()))?;
        let result = call_responder(&responder, request).unwrap_or_else(|error| Err(error.to_string()));
        result.map_err(HttpError::Network)
    }

    /// During a call, no other thread can enter the Lua state to call the responder.
    fn requires_caller_thread(&self) -> bool {
        true
    }
}

/// Calls the responder of the test.
fn call_responder(responder: &Function, request: &Request) -> mlua::Result<Result<Response, String>> {
    let headers: HashMap<&str, &str> =
        request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let body = request.body.clone().map(BString::from);
    let arguments = (request.method.as_str(), request.url.as_str(), headers, body);
    let (result, error): (Option<Table>, Option<String>) = responder.call(arguments)?;
    let Some(result) = result else {
        return Ok(Err(error.unwrap_or_else(|| NO_NETWORK.to_owned())));
    };
    let pairs = |field: &str| result.get::<Option<HashMap<String, String>>>(field).map(Option::unwrap_or_default);
    let headers = pairs("headers")?.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
    let cookies =
        pairs("cookies")?.into_iter().map(|(name, value)| ("set-cookie".to_owned(), format!("{name}={value}")));
    let body = result.get::<Option<LuaString>>("body")?;
    Ok(Ok(Response {
        status: result.get::<Option<u16>>("status_code")?.unwrap_or(200),
        headers: headers.chain(cookies).collect(),
        body: body.map(|body| body.as_bytes().to_vec()).unwrap_or_default(),
        url: result.get::<Option<String>>("url")?.unwrap_or_else(|| request.url.clone()),
    }))
}

/// One line: `info a bounce mailbox=ann subject="Hello you"`.
impl fmt::Display for LogEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.level, self.text.escape_debug())?;
        for (name, value) in &self.fields {
            let is_plain = |text: &str| {
                !text.is_empty() && text.chars().all(|c| !c.is_whitespace() && !c.is_control() && c != '"')
            };
            match value.as_str() {
                Some(text) if is_plain(text) => write!(f, " {name}={text}")?,
                Some(text) => write!(f, " {name}={text:?}")?,
                None => write!(f, " {name}={value}")?,
            }
        }
        Ok(())
    }
}
