//! Tests of the conversion of return values.

use mlua::Value;
use restante_mail::envelope::Refusal;
use restante_mail::message::Headline;
use restante_mail::naming::{MailboxName, Naming};
use restante_mailroom::hooks::{IncomingMessage, Verdict};

use super::super::{parse_inbound_result, parse_verdict};
use super::{message, state, with_message};

/// Runs a script on the message in the global `msg` and converts its result.
fn run_and_parse(script: &str, naming: Naming) -> Result<Option<IncomingMessage>, String> {
    let (lua, _) = state();
    with_message(&lua);
    let value: Value = lua.load(script).eval().unwrap();
    parse_inbound_result(&value, &message(), naming)
}

#[test]
fn verdicts() {
    let deny = |code, text: &str| Ok(Verdict::Deny(Refusal::new(code, text)));
    let type_error = |kind: &str| Err(format!("must return smtp.allow(), smtp.defer() or smtp.deny(), not {kind}"));
    let table = [
        ("smtp.allow()", Ok(Verdict::Allow)),
        ("smtp.defer()", Ok(Verdict::Defer)),
        ("nil", Ok(Verdict::Defer)),
        ("smtp.deny()", deny(550, "Mail denied by policy")),
        ("smtp.deny(451, 'später')", deny(451, "später")),
        ("1", type_error("a number")),
        ("false", type_error("a boolean")),
        ("smtp.allow", type_error("a function")),
        ("address.new('', '')", type_error("another object")),
    ];
    for (script, expected) in table {
        let (lua, _) = state();
        assert_eq!(parse_verdict(&lua.load(script).eval().unwrap()), expected, "{script}");
    }
}

#[test]
fn changed_messages() {
    const TO: &[&str] = &["<jane@x>", "Joe  D. <joe@x>"];
    // script, mailboxes, from, to, subject
    type Row = (&'static str, &'static [&'static str], &'static str, &'static [&'static str], &'static str);
    let both: &[&str] = &["jane", "joe"];
    let table: &[Row] = &[
        ("return msg", both, "Ann <a@x>", TO, "Hello"),
        (
            "local _ = msg.from.name .. #msg.to .. msg.subject .. #msg.mailboxes; return msg",
            both,
            "Ann <a@x>",
            TO,
            "Hello",
        ),
        ("msg.mailboxes = {}; return msg", &[], "Ann <a@x>", TO, "Hello"),
        ("msg.mailboxes[2] = 'X+y@Z.org'; return msg", &["jane", "x"], "Ann <a@x>", TO, "Hello"),
        ("table.insert(msg.mailboxes, 12); return msg", &["jane", "joe", "12"], "Ann <a@x>", TO, "Hello"),
        ("msg.from.name = 'N\\new'; return msg", both, "N ew <a@x>", TO, "Hello"),
        ("msg.from = address.new('', 'b@x'); return msg", both, "<b@x>", TO, "Hello"),
        (
            "table.insert(msg.to, address.new('N', 'n@x')); return msg",
            both,
            "Ann <a@x>",
            &["<jane@x>", "Joe  D. <joe@x>", "N <n@x>"],
            "Hello",
        ),
        ("msg.to[1].address = 'j@x'; return msg", both, "Ann <a@x>", &["<j@x>", "Joe  D. <joe@x>"], "Hello"),
        ("msg.to = {}; return msg", both, "Ann <a@x>", &[], "Hello"),
        ("msg.subject = '[x] ' .. msg.subject; return msg", both, "Ann <a@x>", TO, "[x] Hello"),
        ("msg.subject = 'a\\r\\nb\\255'; return msg", both, "Ann <a@x>", TO, "a  b\u{fffd}"),
        ("local n = inbound_message.new(); n.mailboxes = {'n'}; return n", &["n"], "", &[], ""),
        ("local n = inbound_message.new(); n.source = 'other'; return n", &[], "", &[], ""),
    ];
    for (script, mailboxes, from, to, subject) in table {
        let changed = run_and_parse(script, Naming::Local).unwrap().unwrap();
        assert_eq!(changed.mailboxes.iter().map(MailboxName::as_str).collect::<Vec<_>>(), *mailboxes, "{script}");
        assert_eq!(changed.headline, Headline::new(from, to.iter().copied(), subject), "{script}");
        assert_eq!(changed.body, message().body, "{script}: the source is never changed");
    }
}

#[test]
fn unchanged_and_invalid_results() {
    for script in ["return nil", "return false", "msg.subject = 'x'"] {
        assert!(run_and_parse(script, Naming::Local).unwrap().is_none(), "{script}");
    }
    let table = [
        ("return true", "must return the message, nil or false, not a boolean"),
        ("return 1", "must return the message, nil or false, not a number"),
        ("return msg.from", "must return the message, nil or false, not another object"),
        (
            "msg.mailboxes[1] = 'a b'; return msg",
            "inbound_message.mailboxes holds 'a b': the local part has a character that needs quotes",
        ),
        (
            "msg.mailboxes[2] = {}; return msg",
            "inbound_message.mailboxes must be a list of texts, but item 2 is a table",
        ),
        (
            "for i = 1, 1001 do msg.mailboxes[i] = i end; return msg",
            "inbound_message.mailboxes holds more than 1000 names",
        ),
        ("msg.to[1] = 'x'; return msg", "inbound_message.to must be a list of addresses, but item 1 is a text"),
        (
            "for k in pairs(msg.to[2]) do rawset(msg.to[2], k, {}) end; return msg",
            "inbound_message.to must be a list of addresses, but item 2 is another object",
        ),
        (
            "for k in pairs(msg.from) do rawset(msg.from, k, {}) end; return msg",
            "inbound_message.from is no longer an address",
        ),
    ];
    for (script, expected) in table {
        assert_eq!(run_and_parse(script, Naming::Local).unwrap_err(), expected, "{script}");
    }
}

#[test]
fn lists_with_gaps_and_names_are_complete() {
    let remove_jane =
        "for i, m in ipairs(msg.mailboxes) do if m == 'jane' then msg.mailboxes[i] = nil end end; return msg";
    let table: &[(&str, &[&str])] = &[
        (remove_jane, &["joe"]),
        ("msg.mailboxes[1] = nil; return msg", &["joe"]),
        ("msg.mailboxes[4] = 'four'; msg.mailboxes[9] = 'nine'; return msg", &["jane", "joe", "four", "nine"]),
        ("msg.mailboxes = {nil, 'b', nil, 'd'}; return msg", &["b", "d"]),
        ("msg.mailboxes = {[10] = 'ten', [2] = 'two', [-1] = 'first'}; return msg", &["first", "two", "ten"]),
        ("msg.mailboxes = {z = 'last', a = 'then', 'one'}; return msg", &["one", "then", "last"]),
        ("msg.mailboxes.copy = 'copy'; return msg", &["jane", "joe", "copy"]),
        ("msg.mailboxes = {false, 'b', x = true}; return msg", &["b"]),
        ("local x = ('x'):rep(100); msg.mailboxes = {[x .. 1] = 'a', [x .. 2] = 'a'}; return msg", &["a", "a"]),
    ];
    for (script, expected) in table {
        let message = run_and_parse(script, Naming::Local).unwrap().unwrap();
        assert_eq!(message.mailboxes.iter().map(MailboxName::as_str).collect::<Vec<_>>(), *expected, "{script}");
    }
    let table: &[(&str, &[&str])] = &[
        ("msg.to[1] = nil; return msg", &["Joe  D. <joe@x>"]),
        ("msg.to = {nil, address.new('', 'b@x'), x = address.new('', 'x@x')}; return msg", &["<b@x>", "<x@x>"]),
    ];
    for (script, expected) in table {
        let message = run_and_parse(script, Naming::Local).unwrap().unwrap();
        assert_eq!(message.headline.to().collect::<Vec<_>>(), *expected, "{script}");
    }
    let error = run_and_parse("msg.mailboxes.x = {}; return msg", Naming::Local).unwrap_err();
    assert!(error.contains("but item 'x' is a table"), "{error}");
}

#[test]
fn mailboxes_follow_the_naming() {
    for (naming, expected) in [(Naming::Local, "jo"), (Naming::Full, "jo@x.org"), (Naming::Domain, "x.org")] {
        let message = run_and_parse("msg.mailboxes = {'Jo+1@X.org'}; return msg", naming).unwrap().unwrap();
        assert_eq!(message.mailboxes[0].as_str(), expected);
    }
}

#[test]
fn written_values_are_truncated() {
    let script = "msg.subject = ('€'):rep(5000); msg.from = address.new(('n'):rep(5000), ('a'):rep(5000)) \
        for i = 1, 2000 do msg.to[i] = address.new(('n'):rep(100), 'a@x') end; return msg";
    let headline = run_and_parse(script, Naming::Local).unwrap().unwrap().headline;
    assert_eq!(headline.subject().len(), 4095);
    assert_eq!(headline.from().len(), 512 + 512 + " <>".len());
    let to: usize = headline.to().map(str::len).sum();
    assert!((32_000..=32 * 1024).contains(&to), "{to}");
}
