//! Tests of events and of errors in calls.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use restante_mail::address::Address;
use restante_mail::envelope::{Envelope, Peer, Recipient, Refusal};
use restante_mail::message::Headline;
use restante_mail::naming::Naming;
use restante_mailroom::hooks::{IncomingMessage, Verdict};

use super::Fixture;
use crate::call_error::{CallError, CallErrorKind};
use crate::event::ScriptEvent;

pub(super) fn envelope() -> Envelope {
    Envelope {
        peer: Peer { ip: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), helo: "client".to_owned() },
        login: None,
        key: None,
        listener: None,
        from: Some(Address::from_parts("ann", "example.org")),
        recipients: vec![Recipient::new(Address::from_parts("bob", "example.org"), Naming::Local).unwrap()],
    }
}

fn message() -> IncomingMessage {
    IncomingMessage {
        mailboxes: vec![Naming::Local.parse_mailbox("bob").unwrap()],
        headline: Headline::new("Ann <ann@example.org>", ["<bob@example.org>"], "Hello"),
        body: Bytes::from_static(b"Subject: Hello\r\n\r\nHi.\r\n"),
    }
}

/// Returns the kind, the line and the text.
fn parts(error: &CallError) -> (CallErrorKind, Option<u32>, &str) {
    let location = error.location.as_ref();
    if let Some((file, _)) = location {
        assert!(file.ends_with("/rules.lua"), "{file}");
    }
    (error.kind, location.map(|(_, line)| *line), &error.text)
}

#[test]
fn a_script_without_functions_changes_nothing() {
    let mut engine = Fixture::script("").engine().unwrap();
    assert!(engine.handlers().is_empty());
    assert_eq!(engine.before_mail_from(&envelope()), Ok(Verdict::Defer));
    assert_eq!(engine.before_rcpt_to(&envelope(), &Address::from_parts("x", "y")), Ok(Verdict::Defer));
    assert!(engine.before_message_stored(&message()).unwrap().is_none());
}

#[test]
fn return_values_decide() {
    let fixture = Fixture::script(
        "function inbucket.before.mail_from_accepted(session)
           if session.from.address == 'ann@example.org' then return smtp.deny(451, 'later') end
         end
         function restante.before.rcpt_to_accepted(session)
           if session.to[#session.to].address == 'eve@example.org' then return smtp.allow() end
         end
         function inbucket.before.message_stored(msg)
           if msg.subject == 'Hello' then msg.mailboxes = {'else'} return msg end
           return false
         end",
    );
    let mut engine = fixture.engine().unwrap();
    assert_eq!(engine.handlers(), [ScriptEvent::MailFrom, ScriptEvent::RcptTo, ScriptEvent::BeforeStored]);
    assert_eq!(engine.before_mail_from(&envelope()), Ok(Verdict::Deny(Refusal::new(451, "later"))));
    assert_eq!(engine.before_rcpt_to(&envelope(), &Address::from_parts("eve", "example.org")), Ok(Verdict::Allow));
    assert_eq!(engine.before_rcpt_to(&envelope(), &Address::from_parts("bob", "example.org")), Ok(Verdict::Defer));
    let changed = engine.before_message_stored(&message()).unwrap().unwrap();
    assert_eq!(changed.mailboxes, [Naming::Local.parse_mailbox("else").unwrap()]);
    let other = IncomingMessage { headline: Headline::new("", [], "Other"), ..message() };
    assert!(engine.before_message_stored(&other).unwrap().is_none());
}

#[test]
fn errors_have_lines_and_the_state_stays_usable() {
    let table = [
        ("error('no way')", CallErrorKind::Script, Some(3), "no way"),
        ("error('no way', 0)", CallErrorKind::Script, Some(3), "no way"),
        ("local x = nil\n return x.y", CallErrorKind::Script, Some(4), "attempt to index local 'x' (a nil value)"),
        ("error({})", CallErrorKind::Script, Some(3), "{}"),
        ("error({code = 3})", CallErrorKind::Script, Some(3), "{code=3}"),
        (
            "error({7, code = 3, why = 'no \"no\"', more = {}})",
            CallErrorKind::Script,
            Some(3),
            r#"{[1]=7, code=3, more={...}, why="no \"no\""}"#,
        ),
        (
            "error(setmetatable({}, {__tostring = function() return 'mine' end}))",
            CallErrorKind::Script,
            Some(3),
            "mine",
        ),
        ("pcall(error, {caught = 1}) error('later')", CallErrorKind::Script, Some(3), "later"),
        ("coroutine.wrap(function() error({inside = true}) end)()", CallErrorKind::Script, Some(3), "{inside=true}"),
        ("error()", CallErrorKind::Script, Some(3), "nil"),
        ("session.nonsense = 1", CallErrorKind::Script, Some(3), ""),
        ("error('two\\nlines')", CallErrorKind::Script, Some(3), "two lines"),
        ("return 5", CallErrorKind::InvalidResult, Some(2), "before.mail_from_accepted must return"),
        ("coroutine.wrap(function() error('inside') end)()", CallErrorKind::Script, Some(3), "inside"),
        ("os.exit()", CallErrorKind::Script, Some(3), "os.exit is not available"),
    ];
    for (body, kind, line, text) in table {
        let script = format!(
            "local n = 0\nfunction inbucket.before.mail_from_accepted(session) n = n + 1 if n > 1 then return smtp.allow() end\n{body}\nend"
        );
        let fixture = Fixture::script(&script);
        let mut engine = fixture.engine().unwrap();
        let error = engine.before_mail_from(&envelope()).unwrap_err();
        let (actual_kind, actual_line, actual_text) = parts(&error);
        assert_eq!((actual_kind, actual_line), (kind, line), "{body}: {error}");
        assert!(actual_text.starts_with(text) && !actual_text.contains('\n'), "{body}: {error}");
        assert!(!engine.is_spent);
        assert_eq!(engine.before_mail_from(&envelope()), Ok(Verdict::Allow));
    }
}

#[test]
fn event_functions_cannot_be_defined_in_calls() {
    let fixture = Fixture::script(
        "function inbucket.before.mail_from_accepted()
           inbucket.after.message_stored = print
         end",
    );
    let mut engine = fixture.engine().unwrap();
    let error = engine.before_mail_from(&envelope()).unwrap_err();
    let expected = "inbucket.after.message_stored has to be defined while the script is loaded";
    assert_eq!(parts(&error), (CallErrorKind::Script, Some(2), expected));
}

#[test]
fn memory_error_names_the_function() {
    let fixture = Fixture::script("\nfunction inbucket.before.mail_from_accepted()\n  return ('x'):rep(1e9)\nend");
    let mut engine = fixture.engine().unwrap();
    let error = engine.before_mail_from(&envelope()).unwrap_err();
    assert_eq!(parts(&error), (CallErrorKind::Memory, Some(2), "needs more than 16384 KiB of memory"));
    assert!(engine.is_spent);
}

#[test]
fn load_errors_have_file_and_line() {
    let table = [
        ("x = = 1", "rules.lua:1: unexpected symbol near '='"),
        ("\n\nfunction f(", "rules.lua:3: <name> or '...' expected near '<eof>'"),
        ("\nerror('not today')", "rules.lua:2: not today"),
        ("\nlocal x = nil + 1", "rules.lua:2: attempt to perform arithmetic on a nil value"),
    ];
    for (script, error) in table {
        assert_eq!(Fixture::script(script).result(), error);
    }
    let error = Fixture::script("\nfunction inbucket.before.no_such_event() end").result();
    assert!(error.starts_with("rules.lua:2: ") && error.contains("no_such_event"), "{error}");
}

#[test]
fn long_paths_are_shown_in_full() {
    let mut fixture = Fixture::new(&[]);
    fixture.folder =
        fixture.folder.join("a-rather-long-name-of-a-folder").join("and-another-one-so-that-lua-shortens-it");
    std::fs::create_dir_all(&fixture.folder).unwrap();
    std::fs::write(fixture.folder.join("rules.lua"), "require('bad')").unwrap();
    std::fs::write(fixture.folder.join("bad.lua"), "error('oh')").unwrap();
    assert_eq!(fixture.result(), "bad.lua:1: oh");
    std::fs::write(fixture.folder.join("rules.lua"), "x = = 1").unwrap();
    assert_eq!(fixture.result(), "rules.lua:1: unexpected symbol near '='");
}

#[test]
fn error_without_text_has_a_location() {
    let script = "function inbucket.before.mail_from_accepted()
  local silent = setmetatable({}, {__tostring = function() error('again') end})
  error(silent)
end";
    let mut engine = Fixture::script(script).engine().unwrap();
    let error = engine.before_mail_from(&envelope()).unwrap_err();
    assert_eq!(parts(&error), (CallErrorKind::Script, Some(1), "error in error handling"));
}
