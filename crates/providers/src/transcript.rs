//! The transcript of a request: a session of the journal with one chunk for the beginning of the request, and one for each
//! message. The rest of the exchange is in the chunk of the message if there is only one, otherwise in a chunk of its own,
//! because it concerns recipients that the client of one mailbox must not see.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::header;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use restante_http_connection::context::Peer;
use restante_journal::{
    Chunk, Journal, Outcome, Protocol, Recipient, SessionEnd, SessionId, SessionInfo, Side, Transaction,
    TranscriptLine, TranscriptLines,
};
use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;

use crate::incoming::Incoming;
use crate::reply::Reply;

/// The header fields of requests that are recorded. Others can contain keys.
const RECORDED_FIELDS: [&str; 6] =
    ["host", "user-agent", "accept", "content-type", "content-length", "idempotency-key"];
/// The maximum length of a text in a body that is recorded completely.
const MAX_TEXT_BYTES: usize = 200;
/// The maximum length of a recorded body.
const MAX_BODY_BYTES: usize = 8 * 1024;
/// The parts of names whose values are not recorded.
const SECRET_NAMES: [&str; 7] = ["key", "secret", "token", "password", "assertion", "credential", "signature"];
/// The maximum length of the name of a field in a form whose value is hidden.
const MAX_NAME_BYTES: usize = 100;
/// What is recorded instead of a key.
const HIDDEN_KEY: &str = "(key)";
/// The characters that forms encode in keys.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A transcript that is being recorded. It records nothing if there is no journal.
pub(crate) struct Transcript {
    journal: Option<Arc<Journal>>,
    started: Timestamp,
    info: SessionInfo,
    /// The API key. It is not recorded.
    key: Option<String>,
    head: TranscriptLines,
    body: TranscriptLines,
    messages: Vec<Delivered>,
}

/// A message that was delivered.
pub(crate) struct Delivered {
    /// The recipients.
    pub(crate) to: Vec<String>,
    /// The copies in the store.
    pub(crate) messages: Vec<(MailboxName, MessageId)>,
}

impl Transcript {
    /// Starts the transcript of a request.
    pub(crate) fn start(journal: Option<&Arc<Journal>>, request: &Request) -> Self {
        let peer: Peer = request.extensions().get().copied().unwrap_or_default();
        let started = Timestamp::now();
        let info = SessionInfo {
            protocol: Protocol::Http,
            client: peer.ip,
            helo: None,
            tls: None,
            user: None,
            started,
            end: None,
            refusals: 0,
        };
        let (head, body) = Default::default();
        Self { journal: journal.cloned(), started, info, key: None, head, body, messages: Vec::new() }
    }

    /// Records the name of the client.
    pub(crate) fn set_login(&mut self, login: Option<String>) {
        self.info.user = login;
    }

    /// Records a request, without its key. A body that may have a key which was not found is left out.
    pub(crate) fn record_request(&mut self, incoming: &Incoming, key: Option<&str>, body_may_have_key: bool) {
        if self.journal.is_none() {
            return;
        }
        self.key = key.map(str::to_owned);
        let micros = micros_since(self.started);
        let (path, query) = (incoming.uri.path(), incoming.uri.query());
        let query = query.map(|query| format!("?{}", hide_form_secrets(query))).unwrap_or_default();
        let line = hide(key, format!("{} {path}{query}", incoming.method));
        push(&mut self.head, micros, Side::Client, &line);
        for name in RECORDED_FIELDS {
            if let Some(value) = incoming.header(name) {
                push(&mut self.head, micros, Side::Client, &[name, ": ", value].concat());
            }
        }
        if !incoming.body.is_empty() && !body_may_have_key {
            let text = hide_form_secrets(&hide_json_secrets(&beginning(&incoming.body)));
            let body = shorten(&hide(key, text), incoming.body.len());
            push(&mut self.body, micros, Side::Client, "");
            body.lines().for_each(|line| push(&mut self.body, micros, Side::Client, line));
        }
    }

    /// Records a message that was delivered.
    pub(crate) fn record_message(&mut self, message: Delivered) {
        self.messages.push(message);
    }

    /// Records the response, and writes the transcript.
    pub(crate) fn finish(mut self, reply: &Reply) {
        let Some(journal) = self.journal.take() else { return };
        let status = format!("HTTP {}", reply.status);
        let micros = micros_since(self.started);
        push(&mut self.body, micros, Side::Server, &status);
        let types = reply.headers.iter().filter(|(name, _)| *name != header::WWW_AUTHENTICATE);
        for (name, value) in types {
            let line = [name.as_str(), ": ", value.to_str().unwrap_or_default()].concat();
            push(&mut self.body, micros, Side::Server, &line);
        }
        if !reply.body.is_empty() {
            push(&mut self.body, micros, Side::Server, "");
            let text = hide(self.key.as_deref(), hide_json_secrets(&beginning(&reply.body)));
            let body = shorten(&text, reply.body.len());
            body.lines().for_each(|line| push(&mut self.body, micros, Side::Server, line));
        }
        let is_error = reply.status.is_client_error() || reply.status.is_server_error();
        self.info.refusals = u32::from(is_error);
        let at = Timestamp::now();
        self.info.end = Some(SessionEnd { at: Some(at), reason: Cow::Borrowed("done") });
        let (session, info) = (journal.start_session(self.started), Arc::new(self.info));
        let mut writer = ChunkWriter { journal: &journal, session, info, at, number: 0 };
        writer.write(self.head, None);
        let reply: Arc<str> = status.into();
        let mut messages = self.messages;
        let transaction = |Delivered { to, messages }| {
            let to = to.into_iter().map(|address| Recipient { address, parameters: String::new() }).collect();
            let outcome = if messages.is_empty() { Outcome::Discarded } else { Outcome::Stored };
            let reply = Some(reply.clone());
            Transaction { from: String::new(), parameters: String::new(), to, outcome, reply, messages }
        };
        match messages.pop() {
            Some(only) if messages.is_empty() => writer.write(self.body, Some(transaction(only))),
            None if is_error => {
                let refused = Delivered { to: Vec::new(), messages: Vec::new() };
                writer.write(self.body, Some(Transaction { outcome: Outcome::Refused, ..transaction(refused) }));
            }
            None => writer.write(self.body, None),
            Some(last) => {
                for message in messages.into_iter().chain([last]) {
                    writer.write(TranscriptLines::default(), Some(transaction(message)));
                }
                writer.write(self.body, None);
            }
        }
    }
}

/// Writes the chunks of a session.
struct ChunkWriter<'j> {
    journal: &'j Journal,
    session: SessionId,
    info: Arc<SessionInfo>,
    at: Timestamp,
    number: u32,
}

impl ChunkWriter<'_> {
    fn write(&mut self, lines: TranscriptLines, transaction: Option<Transaction>) {
        let (session, number, at, info) = (self.session, self.number, self.at, self.info.clone());
        self.journal.append(Chunk { session, number, at, info, transaction, lines });
        self.number += 1;
    }
}

/// Returns the time since the start of a request.
fn micros_since(started: Timestamp) -> u64 {
    let micros = Timestamp::now().as_microsecond().saturating_sub(started.as_microsecond());
    u64::try_from(micros).unwrap_or_default()
}

fn push(lines: &mut TranscriptLines, micros: u64, side: Side, text: &str) {
    lines.push(TranscriptLine { micros, side, text });
}

/// Replaces a key in a text, also where it is encoded as in a form.
fn hide(key: Option<&str>, mut text: String) -> String {
    let Some(key) = key.filter(|key| key.len() >= 4) else { return text };
    let encoded = if text.contains('%') { utf8_percent_encode(key, RESERVED).to_string() } else { String::new() };
    for spelling in [key, encoded.as_str()] {
        if !spelling.is_empty() && text.contains(spelling) {
            text = text.replace(spelling, HIDDEN_KEY);
        }
    }
    text
}

/// Returns whether the value with this name is not recorded. A name with escapes can be any.
fn is_secret(name: &str) -> bool {
    if name.contains('\\') {
        return true;
    }
    let is_at = |start: usize, secret: &str| {
        name.as_bytes()
            .get(start..start + secret.len())
            .is_some_and(|part| part.eq_ignore_ascii_case(secret.as_bytes()))
    };
    SECRET_NAMES.iter().any(|secret| (0..name.len()).any(|start| is_at(start, secret)))
}

/// Replaces the secret values of a form or of a query.
fn hide_form_secrets(text: &str) -> String {
    let is_name = |name: &str| {
        name.len() <= MAX_NAME_BYTES && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.%+[]:".contains(&b))
    };
    let mut out = String::with_capacity(text.len());
    for pair in text.split_inclusive('&') {
        match pair.split_once('=') {
            Some((name, _)) if is_name(name) && is_secret(&percent_decode_str(name).decode_utf8_lossy()) => {
                let end = if pair.ends_with('&') { "&" } else { "" };
                out.extend([name, "=", HIDDEN_KEY, end]);
            }
            _ => out.push_str(pair),
        }
    }
    out
}

/// Replaces the secret texts of objects in JSON, which need not be valid.
fn hide_json_secrets(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    let mut name = "";
    while let Some((before, string)) = rest.split_once('"') {
        let is_value = before.trim() == ":";
        let end = end_of_string(string);
        let content = &string[..end];
        let shown = if is_value && is_secret(name) { HIDDEN_KEY } else { content };
        for text in [before, "\"", shown, string.get(end..=end).unwrap_or_default()] {
            out.push_str(text);
        }
        rest = string.get(end + 1..).unwrap_or_default();
        name = if is_value { "" } else { content };
    }
    out + rest
}

/// Returns where a JSON string ends whose beginning was read.
fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    let is_end = |byte: u8| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    };
    text.bytes().position(is_end).unwrap_or(text.len())
}

/// Returns the part of a body from which the recorded one is made.
fn beginning(body: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&body[..body.len().min(16 * MAX_BODY_BYTES)])
}

/// Returns a text in which long texts are shortened: those in quotes, and words without spaces. `body_bytes` is the length of the
/// body that it is from.
fn shorten(text: &str, body_bytes: usize) -> String {
    const ENDS: [char; 3] = ['"', '&', '\n'];
    let mut out = String::with_capacity(text.len().min(MAX_BODY_BYTES));
    for part in text.split_inclusive(ENDS) {
        if out.len() >= MAX_BODY_BYTES {
            let _ = write!(out, "\n(the rest of {body_bytes} bytes is left out)");
            return out;
        }
        let content = part.strip_suffix(ENDS).unwrap_or(part);
        let (shown, rest) = content.split_at(content.floor_char_boundary(MAX_TEXT_BYTES));
        if shown.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_control()) {
            out.push_str(shown);
        } else {
            out.extend(shown.chars().filter(|c| !c.is_control()));
        }
        if !rest.is_empty() {
            let _ = write!(out, "... ({} more characters)", rest.chars().count());
        }
        out.push_str(&part[content.len()..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shortened() {
        let long = "x".repeat(300);
        let table = [
            ("{\"a\":\"b\"}".to_owned(), "{\"a\":\"b\"}".to_owned()),
            (
                format!("{{\"a\":\"{long}\",\"b\":1}}"),
                format!("{{\"a\":\"{}... (100 more characters)\",\"b\":1}}", "x".repeat(200)),
            ),
            (format!("a={long}&b=1"), format!("a={}... (102 more characters)&b=1", "x".repeat(198))),
        ];
        for (body, expected) in table {
            assert_eq!(shorten(&body, 0), expected);
        }
        assert!(shorten(&"\"x\",".repeat(1_000_000), 0).len() < MAX_BODY_BYTES + 100);
    }

    #[test]
    fn secrets_are_hidden() {
        let table = [
            (r#"{"key":"a\/b\"c","x":"key"}"#, r#"{"key":"(key)","x":"key"}"#),
            (
                r#"{"key" : "abc", "message": {"access_token":"a"}, }"#,
                r#"{"key" : "(key)", "message": {"access_token":"(key)"}, }"#,
            ),
            (r#"{"key":["a"],"b":"c"}"#, r#"{"key":["a"],"b":"c"}"#),
            (r#"{"key":"abc"#, r#"{"key":"(key)"#),
            (r#""""#, r#""""#),
            (r#"{"\u006bey":"a"}"#, r#"{"\u006bey":"(key)"}"#),
            ("no JSON", "no JSON"),
        ];
        for (text, expected) in table {
            assert_eq!(hide_json_secrets(text), expected, "{text}");
        }
        let form = "client_secret=a%2fb&grant_type=x&Client_Assertion=c&api%5Fkey=d&%6bey=e&empty";
        let hidden = "client_secret=(key)&grant_type=x&Client_Assertion=(key)&api%5Fkey=(key)&%6bey=(key)&empty";
        assert_eq!(hide_form_secrets(form), hidden);
        let html = r#"{"html":"the key <a href=x&key=y"}"#;
        assert_eq!(hide_form_secrets(html), r#"{"html":"the key <a href=x&key=(key)"#);
        assert_eq!(hide(Some("abc/d"), "abc/d abc%2Fd".to_owned()), "(key) (key)");
    }
}
