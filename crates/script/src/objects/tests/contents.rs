//! Tests of message contents, and of when messages are loaded.

use mlua::Lua;

use super::super::{clear_message_cache, inbound, metadata};
use super::{MAIL, check, message, run, state, summary, with_message};

/// Expressions about [`MAIL`] in the global `mail` and their results, for every origin.
const CONTENT: &[(&str, &str)] = &[
    ("return mail.headers['X-Tag']", "grün"),
    ("return mail.headers.FROM", "Jane <jane@x.org>"),
    ("return mail.headers.received", "one"),
    ("return mail.headers['X-None']", "nil"),
    ("return mail.headers[99]", "nil"),
    ("return table.concat(mail.headers:all('RECEIVED'), ' ')", "one two"),
    ("return #mail.headers:all('X-None')", "0"),
    ("mail.headers:all()", "error: the name in headers:all(name) must be a text, not nil"),
    ("return #mail.headers", "5"),
    ("return mail.headers[3].name .. mail.headers[3].value", "receivedtwo"),
    (
        "local n = ''; for _, h in ipairs(mail.headers) do n = n .. h.name .. ' ' end; return n",
        "From Received received X-Tag Content-Type ",
    ),
    ("return tostring(mail.headers)", "headers(5)"),
    ("mail.headers.Subject = 'other'", "error: message headers are read-only"),
    ("return mail.header.from", "Jane <jane@x.org>"),
    ("return mail.text", "Hello"),
    ("return mail.html", "<p>Hi</p>"),
    ("return #mail.attachments", "1"),
    (
        "local a = mail.attachments[1]; return a.filename .. ' ' .. a.content_type .. ' ' .. a.size .. ' ' .. a.content_id",
        "a.png image/png 4 logo",
    ),
    ("return mail.source", MAIL),
    ("return rawequal(mail.headers, mail.headers)", "true"),
];

#[test]
fn contents_of_inbound_message() {
    check(|lua| lua.globals().set("mail", inbound(lua, &message()).unwrap()).unwrap(), CONTENT);
}

#[test]
fn contents_of_stored_message() {
    check(|lua| lua.globals().set("mail", metadata(lua, &summary("jane"), true).unwrap()).unwrap(), CONTENT);
}

#[test]
fn contents_of_created_message() {
    for object in ["inbound_message", "message_metadata"] {
        let prepare = |lua: &Lua| {
            lua.globals().set("source", MAIL).unwrap();
            run(lua, &format!("mail = {object}.new(); mail.source = source"));
        };
        check(prepare, CONTENT);
        let size = MAIL.len().to_string();
        check(
            prepare,
            &[
                ("return mail.size", &size),
                (
                    "local old = mail.text; mail.source = 'A: b\\n\\nnew'; return old .. mail.text .. mail.size .. #mail.headers",
                    "Hellonew91",
                ),
                ("mail.source = 'A: \\255'; return #mail.source", "4"),
            ],
        );
        let empty =
            format!("local m = {object}.new(); return m.source .. m.text .. m.html .. #m.headers .. #m.attachments");
        check(|_| {}, &[(&empty, "00")]);
        check(
            |_| {},
            &[(
                &format!("{object}.new().source = {{}}"),
                &format!("error: {object}.source must be a text, not a table"),
            )],
        );
    }
}

#[test]
fn contents_of_deleted_message_are_nil() {
    for (mailbox, is_stored) in [("jane", false), ("empty", true)] {
        for field in ["headers", "text", "html", "attachments", "source"] {
            let prepare = |lua: &Lua| {
                lua.globals().set("meta", metadata(lua, &summary(mailbox), is_stored).unwrap()).unwrap();
            };
            check(prepare, &[(&format!("return meta.{field}"), "nil")]);
        }
    }
}

#[test]
fn store_error_raises() {
    check(
        |lua| lua.globals().set("meta", metadata(lua, &summary("broken"), true).unwrap()).unwrap(),
        &[("local _ = meta.text", "error: the store does not respond"), ("return meta.subject", "Hello")],
    );
}

#[test]
fn stored_message_is_loaded_once_on_first_access() {
    let (lua, mail) = state();
    let fetch_count = || mail.fetch_count();
    lua.globals().set("meta", metadata(&lua, &summary("jane"), true).unwrap()).unwrap();
    run(&lua, "return meta.mailbox .. meta.id .. meta.subject .. meta.size .. meta.from.name .. #meta.to .. meta.date");
    assert_eq!(fetch_count(), 0);
    assert_eq!(run(&lua, "return meta.text"), "Hello");
    assert_eq!(run(&lua, "return meta.html"), "<p>Hi</p>");
    assert_eq!(fetch_count(), 1);
    // Values that were read stay readable; others must be loaded again.
    clear_message_cache(&lua);
    assert_eq!(run(&lua, "return meta.text"), "Hello");
    assert_eq!(fetch_count(), 1);
    assert_eq!(run(&lua, "return #meta.attachments"), "1");
    assert_eq!(fetch_count(), 2);
}

#[test]
fn state_does_not_keep_delivered_messages() {
    let (lua, _) = state();
    with_message(&lua);
    assert_eq!(run(&lua, "first = msg; return first.text"), "Hello");
    with_message(&lua);
    assert_eq!(run(&lua, "return msg.html"), "<p>Hi</p>");
    assert_eq!(run(&lua, "return first.html"), "nil");
    assert_eq!(run(&lua, "return first.text .. first.subject"), "HelloHello");
    clear_message_cache(&lua);
    assert_eq!(run(&lua, "return msg.source"), "nil");
}
