//! Tests with Lua snippets and their results, for every object, field and constructor, and for the conversion of return
//! values.

mod contents;
mod conversions;
mod snippets;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;
use mlua::{Lua, Value};
use restante_http_client::{HttpError, HttpService, Request, Response};
use restante_mail::address::{Address, Alphabet};
use restante_mail::details::Details;
use restante_mail::message::{Flags, Headline, MessageId, Summary};
use restante_mail::naming::{MailboxName, Naming};
use restante_mail::tags::Tags;
use restante_mailroom::hooks::IncomingMessage;

use super::{inbound, install};
use crate::event::CallContext;
use crate::services::{Level, Log, LogField, Services, SystemClock};
use crate::tests::fake_mail::FakeMail;

/// A message with header fields, texts and an attachment.
const MAIL: &str = "From: Jane <jane@x.org>\r\n\
    Received: one\r\n\
    received: two\r\n\
    X-Tag: =?utf-8?Q?gr=C3=BCn?=\r\n\
    Content-Type: multipart/mixed; boundary=b\r\n\r\n\
    --b\r\nContent-Type: text/plain\r\n\r\nHello\r\n\
    --b\r\nContent-Type: text/html\r\n\r\n<p>Hi</p>\r\n\
    --b\r\nContent-Type: image/png; name=a.png\r\nContent-ID: <logo>\r\nContent-Transfer-Encoding: base64\r\n\r\nAAECAw==\r\n\
    --b--\r\n";

/// A network on which every request times out, and a log that discards everything.
struct NoServices;

impl HttpService for NoServices {
    fn send(&self, _: &Request) -> Result<Response, HttpError> {
        Err(HttpError::Timeout)
    }
}

impl Log for NoServices {
    fn is_enabled(&self, _: Level) -> bool {
        true
    }

    fn write(&self, _: Level, _: &str, _: &[LogField]) {}
}

/// Returns a state with the globals, and its store, which contains [`MAIL`] in mailbox `jane`.
pub(super) fn state() -> (Lua, Arc<FakeMail>) {
    let (lua, fake) =
        (Lua::new(), Arc::new(FakeMail::with_messages([(summary("jane"), Bytes::from_static(MAIL.as_bytes()))])));
    let (mail, clock) = (fake.clone(), Arc::new(SystemClock));
    let services =
        Services { http: Arc::new(NoServices), mail, log: Arc::new(NoServices), clock, commands: Arc::default() };
    install(&lua, &services, Naming::Local).unwrap();
    lua.set_app_data(CallContext { event: None, deadline: Instant::now() + Duration::from_mins(10) });
    (lua, fake)
}

/// Returns the result of a script as text, or its error.
pub(super) fn run(lua: &Lua, script: &str) -> String {
    match lua.load(script).set_name("@rules.lua").call::<Value>(()) {
        Ok(value) => value.to_string().unwrap(),
        Err(error) => error.to_string(),
    }
}

/// Runs every script of a table in its own state after `prepare`. Errors must start with file and line.
fn check(prepare: impl Fn(&Lua), table: &[(&str, &str)]) {
    for (script, expected) in table {
        let (lua, _) = state();
        prepare(&lua);
        let result = run(&lua, script);
        match expected.strip_prefix("error: ") {
            Some(expected) => {
                let line = result.lines().next().unwrap_or_default();
                assert_eq!(line, format!("runtime error: rules.lua:1: {expected}"), "{script}");
            }
            None => assert_eq!(result, *expected, "{script}"),
        }
    }
}

fn name(text: &str) -> MailboxName {
    Naming::Local.parse_mailbox(text).unwrap()
}

fn address(text: &str) -> Address {
    Address::parse(text, Alphabet::Ascii).unwrap()
}

fn message() -> IncomingMessage {
    IncomingMessage {
        mailboxes: vec![name("jane"), name("joe")],
        headline: Headline::new("Ann <a@x>", ["<jane@x>", "Joe  D. <joe@x>"], "Hello"),
        body: Bytes::from_static(MAIL.as_bytes()),
    }
}

fn summary(mailbox: &str) -> Summary {
    Summary {
        mailbox: name(mailbox),
        id: MessageId::from(1_794_711_170_000_001),
        headline: message().headline,
        received: Timestamp::from_second(1_794_711_170).unwrap(),
        size: 1234,
        seen: false,
        flags: Flags::default(),
        modseq: 1,
        message: MessageId::from(1_794_711_170_000_001),
        number: 1,
        tags: Tags::default(),
        details: Details::default(),
    }
}

/// Sets the global `msg` to a message.
pub(super) fn with_message(lua: &Lua) {
    lua.globals().set("msg", inbound(lua, &message()).unwrap()).unwrap();
}
