//! Tests of the test runner: small scripts and the printed results.

use std::fs;
use std::time::Duration;

use restante_mail::naming::Naming;
use restante_testdir::TestDir;

use super::*;

/// A temporary folder with scripts.
struct TestFolder(TestDir);

impl TestFolder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = TestDir::new();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    /// Runs the tests of `rules.lua`. Returns whether all passed, and the output without the folder.
    fn test(&self, settings: &Settings, names: &[&str]) -> (bool, String) {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut out = Vec::new();
        let passed = run_tests(&self.0.path().join("rules.lua"), settings, &names, &mut out);
        let output = match &passed {
            Ok(_) => String::from_utf8(out).unwrap(),
            Err(error) => error.to_string(),
        };
        (passed.unwrap_or(false), output.replace(&format!("{}/", self.0.path().display()), ""))
    }
}

fn settings() -> Settings {
    Settings {
        paths: Vec::new(),
        trusted_files_only: false,
        sandbox: false,
        timeout: Duration::from_mins(1),
        max_memory_bytes: 32 * 1024 * 1024,
        before_states: 1,
        after_states: 1,
        max_calls: 1,
        max_queued_events: 1,
        naming: Naming::Local,
    }
}

/// Returns the output for a script.
fn run_script(script: &str) -> String {
    TestFolder::new(&[("rules.lua", script)]).test(&settings(), &[]).1
}

/// Runs a test with this body on line 1 of the file. Returns its error, or `ok`.
fn run_test_body(body: &str) -> String {
    let output = run_script(&format!("function test_it(t) {body}\nend"));
    let lines: Vec<&str> = output.lines().collect();
    match lines.as_slice() {
        ["ok    test_it", "1 test, 0 failed"] => "ok".to_owned(),
        ["FAIL  test_it", error, .., "1 test, 1 failed"] => error.trim().to_owned(),
        _ => output,
    }
}

#[test]
fn tests_run_in_file_order_and_isolated() {
    let script = r#"
local logger = require("logger")
local calls = 0
function restante.before.mail_from_accepted(session)
  calls = calls + 1
  logger.info("a sender", { from = session.from.address, subject = "two words" })
  return smtp.deny(550, tostring(calls))
end
function test_two(t)
  t.denies(t.mail_from {}, 550, "1")
  restante.shared.set("left", true)
  left = true
end
function test_one(t)
  t.equal(restante.shared.get("left"), nil)
  t.equal(left, nil)
  t.denies(t.mail_from {}, 550, "2")
end
function tes_three() error("is no test") end
test_four = "nor is this"
"#;
    let expected = "\
ok    test_two
FAIL  test_one
      rules.lua:17: expected smtp.deny(550, 2), got smtp.deny(550, 1)
      log: info a sender from=sender@example.com subject=\"two words\"
2 tests, 1 failed
";
    assert_eq!(run_script(script), expected);
}

#[test]
fn releases_are_recorded() {
    let script = r#"
        function restante.after.message_stored(message)
          entry, problem = restante.release(message.mailbox, message.id, { to = "qa@x.org", target = "main" })
          print(entry or problem)
        end

        function test_release(t)
          local message = t.put { mailbox = "ann" }
          t.stored(message)
          t.equal(t.releases, { { mailbox = "ann", id = message.id, to = { "qa@x.org" }, target = "main" } })
          t.equal(t.logs[1].text, "1")
          t.equal(restante.release("ann", message.id), "2")
          t.equal(t.releases[2], { mailbox = "ann", id = message.id })
        end

        function test_failure(t)
          t.release_error = "the relay queue is full"
          t.stored { mailbox = "ann" }
          t.equal(t.logs[1].text, "the relay queue is full")
          t.equal(#t.releases, 0)
          t.equal(t.release_error, "the relay queue is full")
          t.fails(function() t.release_error = 1 end, "t.release_error must be a text, not a number")
        end
    "#;
    let output = run_script(script);
    assert_eq!(output, "ok    test_release\nok    test_failure\n2 tests, 0 failed\n");
}

#[test]
fn names_select_tests() {
    let script = "function test_a1() end function test_a2() end function test_b() error('no') end";
    let folder = TestFolder::new(&[("rules.lua", script)]);
    let table: &[(&[&str], bool, &str)] = &[
        (&["test_a1"], true, "ok    test_a1\n1 test, 0 failed\n"),
        (&["test_a*"], true, "ok    test_a1\nok    test_a2\n2 tests, 0 failed\n"),
        (&["test_a2", "test_a*"], true, "ok    test_a1\nok    test_a2\n2 tests, 0 failed\n"),
        (&["test_b"], false, "FAIL  test_b\n      rules.lua:1: no\n1 test, 1 failed\n"),
        (&["test_a"], false, "rules.lua has no test test_a\n0 tests, 0 failed\n"),
        (&["x*", "test_a1"], false, "rules.lua has no test x*\nok    test_a1\n1 test, 0 failed\n"),
    ];
    for (names, passed, expected) in table {
        assert_eq!(folder.test(&settings(), names), (*passed, (*expected).to_owned()), "{names:?}");
    }
}

#[test]
fn script_without_tests_or_with_errors_fails() {
    let no_tests = (false, "rules.lua has no tests: no global function is named test_...\n".to_owned());
    assert_eq!(TestFolder::new(&[("rules.lua", "x = 1")]).test(&settings(), &[]), no_tests);
    let broken = (false, "rules.lua:2: unexpected symbol near '='".to_owned());
    assert_eq!(TestFolder::new(&[("rules.lua", "\nx = = 1")]).test(&settings(), &[]), broken);
    let (passed, output) = TestFolder::new(&[]).test(&settings(), &[]);
    assert!(!passed && output.starts_with("rules.lua: "), "{output}");
}

#[test]
fn tests_can_be_in_a_separate_file() {
    let rules = "require('filter') function test_here(t) t.defers(t.mail_from { from = 'x@y.example' }) end";
    let filter = "\nfunction restante.before.mail_from_accepted() error('oh') end function test_there() end";
    let expected = "\
FAIL  test_here
      filter.lua:2: oh
ok    test_there
2 tests, 1 failed
";
    let folder = TestFolder::new(&[("rules.lua", rules), ("filter.lua", filter)]);
    assert_eq!(folder.test(&settings(), &[]), (false, expected.to_owned()));
}

#[test]
fn endless_tests_fail_and_the_rest_runs() {
    let script = r#"
function test_loop() while true do pcall(function() while true do end end) end end
function test_pattern() ("a"):rep(5000):find(("a*"):rep(30) .. "b") end
function test_fine() end
"#;
    let settings = Settings { timeout: Duration::from_secs(3), ..settings() };
    let expected = "\
FAIL  test_loop
      rules.lua:2: took longer than 3s
FAIL  test_pattern
      rules.lua: does not end within 3s
ok    test_fine
3 tests, 2 failed
";
    assert_eq!(TestFolder::new(&[("rules.lua", script)]).test(&settings, &[]), (false, expected.to_owned()));
}

#[test]
fn memory_limit_fails_the_test() {
    let script = "\nfunction test_memory() local x = 'x'\nwhile true do x = x .. x end end";
    let expected = "FAIL  test_memory\n      rules.lua:2: needs more than 32768 KiB of memory\n1 test, 1 failed\n";
    assert_eq!(run_script(script).replace("rules.lua:3", "rules.lua:2"), expected);
}

#[test]
fn checks_report_the_expected_value() {
    let table = [
        ("t.equal(1, 1) t.equal('a', 'a') t.equal({ 1, { a = 2 } }, { 1, { a = 2 } })", "ok"),
        ("t.equal(nil, 'big')", "rules.lua:1: expected \"big\", got nil"),
        ("t.equal({ 'a', x = { 1 } }, {})", "rules.lua:1: expected {}, got { \"a\", x = { 1 } }"),
        ("t.equal({ 1 }, { 1, 2 }, 'both')", "rules.lua:1: both: expected { 1, 2 }, got { 1 }"),
        ("t.equal({ 1, 2 }, { 1 })", "rules.lua:1: expected { 1 }, got { 1, 2 }"),
        ("t.equal('a\\nb', 'a\\tb')", "rules.lua:1: expected \"a\\tb\", got \"a\\nb\""),
        ("t.equal(address.new('A', 'a@x'), address.new('A', 'a@x'))", "ok"),
        (
            "t.equal({ address.new('A', 'a@x') }, { address.new('B', 'a@x') })",
            "rules.lua:1: expected { B <a@x> }, got { A <a@x> }",
        ),
        ("local a, b = {}, {} a.a, b.a = a, b t.equal(a, b)", "ok"),
        ("t.differs({ 1 }, { 2 }) t.differs(1, 1)", "rules.lua:1: expected anything but 1"),
        ("t.yes(0) t.yes(nil, 'found')", "rules.lua:1: found: expected something true, got nil"),
        ("t.no(nil) t.no(false) t.no(1)", "rules.lua:1: expected nil or false, got 1"),
        ("t.matches('abc', '^a') t.matches('abc', '^b')", "rules.lua:1: expected a match of \"^b\", got \"abc\""),
        ("t.matches(nil, 'x')", "rules.lua:1: expected a text, got nil"),
        ("t.equal(t.fails(function() error('oh', 0) end, '^o'), 'oh')", "ok"),
        ("t.fails(function() end)", "rules.lua:1: expected an error"),
        (
            "t.fails(function() error('oh', 0) end, 'x')",
            "rules.lua:1: expected an error that matches \"x\", got \"oh\"",
        ),
        ("t.fails(function() restante.before.nothing = 1 end, 'no event before.nothing')", "ok"),
        ("t.allows(smtp.allow()) t.allows(smtp.defer())", "rules.lua:1: expected smtp.allow, got smtp.defer"),
        ("t.defers(smtp.defer()) t.defers(nil)", "rules.lua:1: expected smtp.defer, got nil"),
        (
            "t.denies(smtp.deny()) t.denies(smtp.deny(451, 'x'), 451, 'x') t.denies(smtp.allow())",
            "rules.lua:1: expected smtp.deny, got smtp.allow",
        ),
        ("t.denies(smtp.deny(450, 'x'), 451)", "rules.lua:1: expected smtp.deny(451), got smtp.deny(450, x)"),
        ("t.fail('not yet')", "rules.lua:1: not yet"),
        ("t.htpp = print", "rules.lua:1: t.htpp cannot be set; t.http and t.release_error can"),
        ("t.equals(1, 1)", "rules.lua:1: attempt to call field 'equals' (a nil value)"),
    ];
    for (body, expected) in table {
        assert_eq!(run_test_body(body), expected, "{body}");
    }
}

#[test]
fn fixtures_match_the_server() {
    let table = [
        (
            "local s = t.session() t.equal(s.from.address, 'sender@example.com') t.equal(#s.to, 1) \
             t.equal(s.remote_addr, '192.0.2.1')",
            "ok",
        ),
        (
            "local s = t.session { from = address.new('', 'a@b.example'), to = { 'c@d.example' } } t.equal(s.to, { \
             address.new('', 'c@d.example') })",
            "ok",
        ),
        ("t.equal(t.session { from = '' }.from.address, '')", "ok"),
        ("t.session { to = { 'nobody' } }", "rules.lua:1: to: the domain is missing: \"nobody\""),
        (
            "t.session { form = 'x' }",
            "rules.lua:1: a session has no field 'form'; its fields are remote_addr, from, to",
        ),
        ("t.deliver(t.metadata {})", "rules.lua:1: a message must be a table, not another object"),
        ("t.deliver(t.session {})", "rules.lua:1: a message must be a table, not another object"),
        ("t.stored(smtp.allow())", "rules.lua:1: metadata must be a table, not another object"),
        ("t.mail_from(t.message {})", "rules.lua:1: a session must be a table, not another object"),
        ("t.session('x')", "rules.lua:1: a session must be a table, not a text"),
        ("t.rcpt_to { to = {} }", "rules.lua:1: the session has no recipient"),
        (
            "local m = t.message() t.equal(m.mailboxes, { 'recipient' }) t.equal(m.subject, 'Hello') \
             t.equal(m.text, 'Hello')",
            "ok",
        ),
        (
            "local m = t.message { to = { 'Ann <ann+x@x.example>', 'ANN@y.example' } } \
             t.equal(m.mailboxes, { 'ann' }) t.equal(m.to[1].name, 'Ann')",
            "ok",
        ),
        (
            "local m = t.message { text = 'Hallö', html = '<b>', headers = { ['X-Foo'] = { 'a', 'b' } } } \
             t.equal(m.text, 'Hallö') t.equal(m.html, '<b>') t.equal(m.headers['x-foo'], 'a')",
            "ok",
        ),
        (
            "local m = t.message { attachments = { { filename = 'a.txt', content_type = 'text/csv', content = 'abc' } } } \
             t.equal(m.attachments[1].size, 3) t.equal(m.attachments[1].content_type, 'text/csv')",
            "ok",
        ),
        ("local a, b = t.message { text = 'a' }, t.message { text = 'b' } t.equal(a.text .. b.text, 'ab')", "ok"),
        (
            "local m = t.message { source = 'Subject: Raw\\r\\nTo: bob@x.example\\r\\n\\r\\nbody' } \
             t.equal(m.subject, 'Raw') t.equal(m.mailboxes, { 'bob' })",
            "ok",
        ),
        (
            "t.message { mailboxes = { 'a b' } }",
            "rules.lua:1: invalid mailbox name \"a b\": the local part has a character that needs quotes",
        ),
        ("t.message { subject = 'a\\nb' }", "rules.lua:1: invalid header field: \"Subject\", \"a\\nb\""),
        ("t.message { to = { 1 > 2 } }", "rules.lua:1: to must be a text or an address, not a boolean"),
        (
            "local m = t.metadata { mailbox = 'Ann', id = 7, date = 86400, text = 'x' } t.equal(m.mailbox .. m.id \
             .. m.date .. m.text, 'ann786400x')",
            "ok",
        ),
        ("address = 'mine' t.equal(t.message().from.address, 'sender@example.com')", "ok"),
        ("t.metadata { id = 'x' }", "rules.lua:1: id is not a message id: \"x\""),
        ("t.metadata { date = 1e30 }", "rules.lua:1: date is out of range: 9223372036854775807"),
    ];
    for (body, expected) in table {
        assert_eq!(run_test_body(body), expected, "{body}");
    }
}

#[test]
fn environment_is_fake() {
    let table = [
        ("local a, e = require('http').get('http://x.example/') t.equal(a, nil) t.equal(e, 'there is no network in \
          tests: set t.http')", "ok"),
        ("t.http = function(r) return { status_code = 201, headers = { ['X-A'] = 'b' }, body = r.method .. r.url .. \
          r.headers.K .. r.body } end
          local a = require('http').put('http://x.example/', { headers = { K = 'v' }, body = '!' })
          t.equal(a.status_code, 201) t.equal(a.headers['X-A'], 'b') t.equal(a.body, 'PUThttp://x.example/v!') \
            t.equal(#t.requests, 1)", "ok"),
        ("t.http = function(r) return { body = r.url } end
          local a = require('http').request_batch { { 'get', 'http://x.example/' }, { 'get', 'http://y.example/' } }
          t.equal(a[1].body .. a[2].body, 'http://x.example/http://y.example/')
          t.equal(t.requests[2].url, 'http://y.example/')", "ok"),
        ("t.http = function() error('mine') end require('http').get('http://x.example/')", "rules.lua:1: mine"),
        ("t.http = function() return { status = 201 } end require('http').get('http://x.example/')",
         "a response of t.http has no field 'status'; its fields are status_code, headers, cookies, body, url"),
        ("t.http = function() return { cookies = { a = 'b' } } end
          t.equal(require('http').get('http://x.example/').cookies.a, 'b')", "ok"),
        ("t.http = function() return 1 end require('http').get('http://x.example/')",
          "t.http must return a table, or nil and a text"),
        ("print('a', 1) t.equal(t.logs, { { level = 'info', text = 'a\\t1', fields = {} } }) local logs = t.logs \
          print('b') t.equal(#t.logs, 2) t.equal(#logs, 2)", "ok"),
        ("local m = t.put { mailbox = 'ann', text = 'x' } t.equal(restante.store.get('ann', 'latest').id, m.id) \
          t.equal(m.text, 'x') t.equal(#t.mails('ann'), 1) t.equal(#t.mails('bob'), 0)", "ok"),
        ("local a, b = t.put {}, t.put {} t.differs(a.id, b.id) t.deleted(a) \
          t.equal(t.mails('recipient')[1].id, b.id)", "ok"),
        ("restante.shared.set('k', 'v', 10) t.advance(9) t.equal(restante.shared.get('k'), 'v') restante.sleep(2) \
          t.equal(restante.shared.get('k'), nil)", "ok"),
        ("restante.sleep(3600)", "rules.lua:1: restante.sleep: the call would exceed its time limit"),
        ("restante.sleep(-1)", "rules.lua:1: restante.sleep takes a number of seconds, 0 or more"),
        ("t.advance(-1)", "rules.lua:1: t.advance takes a number of seconds, 0 or more"),
    ];
    for (body, expected) in table {
        assert_eq!(run_test_body(body), expected, "{body}");
    }
}

#[test]
fn event_functions_are_called_as_by_the_server() {
    let script = r#"
function restante.before.mail_from_accepted(session)
  seen = (seen or 0) + 1
  if session.from.address == "" then return 17 end
  if seen > 1 or #session.to > 0 then return smtp.deny() end
end
function restante.before.message_stored(message)
  message.subject = message.subject .. "!"
  if message.headers["X-Do"] == "lose" then message.mailboxes = {} end
  if message.headers["X-Do"] == "twice" then message.mailboxes = { "Ann", "ann+x@y.example" } end
  if message.headers["X-Do"] == "spoil" then table.insert(message.mailboxes, "a b") end
  if message.headers["X-Do"] == "open" then restante.store.list("ann") end
  return message.headers["X-Do"] ~= "nothing" and message
end
function restante.after.message_stored(message)
  restante.store.delete(message.mailbox, message.id)
end
function restante.after.message_deleted(message)
  assert(message.source == nil and message.subject == "gone")
end
function test_globals_do_not_last(t)
  local session = t.session {}
  t.defers(t.mail_from(session))
  t.defers(t.mail_from(session))
  t.defers(t.rcpt_to(session))
end
function test_bad_verdict(t)
  t.mail_from { from = "" }
end
function test_messages(t)
  local function given(what) return { subject = "x", mailboxes = { "ann" }, headers = { ["X-Do"] = what } } end
  local message = t.message(given "change")
  t.equal(t.deliver(message).subject, "x!")
  t.equal(message.subject, "x")
  t.equal(t.deliver(given "nothing").subject, "x")
  t.equal(t.deliver(given "lose"), nil)
  t.equal(t.deliver(given "twice").mailboxes, { "ann" })
  t.equal(t.deliver(given "change").headers["X-Do"], "change")
  t.fails(function() t.deliver(given "spoil") end, "a b")
  t.fails(function() t.deliver(given "open") end, "after hooks only")
end
function test_after(t)
  t.stored { mailbox = "ann" }
  t.equal(#t.mails("ann"), 0)
  t.stored(t.metadata {})
  t.deleted { subject = "gone" }
  t.deleted { subject = "here" }
end
"#;
    let expected = "\
ok    test_globals_do_not_last
FAIL  test_bad_verdict
      rules.lua:28: before.mail_from_accepted must return smtp.allow(), smtp.defer() or smtp.deny(), not a number
ok    test_messages
FAIL  test_after
      rules.lua:19: assertion failed!
4 tests, 2 failed
";
    assert_eq!(run_script(script), expected);
}
