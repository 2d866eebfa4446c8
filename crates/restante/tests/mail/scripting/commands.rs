//! Scripts that are tried without a server: `restante script check` and `restante script test`.

use std::process::Stdio;

use super::folder::Folder;

/// What a command has to say: its exit code, and its output and errors, one after the other.
fn run(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String) {
    let output = folder.bare_command().args(arguments).stdin(Stdio::null()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

const RULES: &str = r#"
local logger = require("logger")

function restante.before.rcpt_to_accepted(session)
  if session.to[#session.to].address:match("^nobody@") then
    logger.info("refused")
    return smtp.deny(550, "5.1.1 No such user here")
  end
end

function restante.after.message_deleted(meta) end

function test_nobody_is_refused(t)
  t.denies(t.rcpt_to { to = { "nobody@x.org" } }, 550)
  t.defers(t.rcpt_to { to = { "ann@x.org" } })
end

function test_that_fails(t)
  t.allows(t.rcpt_to { to = { "nobody@x.org" } })
end
"#;

#[test]
fn check_lists_the_handlers() {
    let folder = Folder::new("check", RULES);
    folder.write("empty.lua", "-- nothing");
    let table = [
        ("rules.lua", "rules.lua\n  before.rcpt_to_accepted\n  after.message_deleted\n"),
        ("./rules.lua", "./rules.lua\n  before.rcpt_to_accepted\n  after.message_deleted\n"),
        ("empty.lua", "empty.lua\n  warning: no handlers, so the script takes part in nothing\n"),
    ];
    for (file, expected) in table {
        assert_eq!(run(&folder, &["script", "check", file]), (Some(0), expected.to_owned()));
    }
}

#[test]
fn check_loads_as_the_server_would() {
    let script = "print('hello') require('logger').warn('careful', { n = 1 })\n\
                  local _, problem = require('http').get('http://127.0.0.1:1')\nprint(problem)\n";
    let folder = Folder::new("real", script);
    let (code, said) = run(&folder, &["script", "check", "rules.lua"]);
    assert_eq!(code, Some(0), "{said}");
    for expected in ["INFO  hello", "WARN  careful", "Connection refused"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn check_and_test_say_what_is_wrong_with_a_script() {
    let table = [
        ("function inbucket.before.nothing() end", "restante: rules.lua:1: there is no event before.nothing"),
        ("\nfunction f(", "restante: rules.lua:2: "),
        ("\nerror('not today')", "restante: rules.lua:2: not today"),
    ];
    for (script, problem) in table {
        let folder = Folder::new("wrong", script);
        for task in ["check", "test"] {
            let (code, said) = run(&folder, &["script", task, "rules.lua"]);
            assert_eq!(code, Some(1), "{said}");
            assert!(said.starts_with(problem), "{task} {script}: {said}");
        }
    }
    let folder = Folder::new("endless", "\nwhile true do end");
    // A loop ends itself. On a busy machine, the program may stop waiting for it first.
    for (task, given_up) in [("check", "it takes too long to load"), ("test", "does not end within 100ms")] {
        let (code, said) = run(&folder, &["script", task, "rules.lua", "--lua-timeout", "100ms"]);
        assert_eq!(code, Some(1), "{said}");
        let problems = [":2: took longer than 100ms", &format!(": {given_up}")];
        let is_said = |problem: &str| said.starts_with(&format!("restante: rules.lua{problem}"));
        assert!(problems.into_iter().any(is_said), "{task}: {said}");
    }
    let folder = Folder::empty("wrong");
    for task in ["check", "test"] {
        let (code, said) = run(&folder, &["script", task, "missing.lua"]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.starts_with("restante: missing.lua: No such file"), "{said}");
        assert_eq!(run(&folder, &["script", task]).0, Some(2), "a file is needed");
    }
}

#[test]
fn test_runs_the_tests() {
    let folder = Folder::new("test", RULES);
    let (code, said) = run(&folder, &["script", "test", "rules.lua"]);
    assert_eq!(code, Some(1), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..2], ["ok    test_nobody_is_refused", "FAIL  test_that_fails"]);
    assert!(lines[2].starts_with("      rules.lua:19: "), "{said}");
    assert!(said.contains("log: ") && said.contains("refused"), "{said}");
    assert_eq!(lines.last(), Some(&"2 tests, 1 failed"));

    let passed = "ok    test_nobody_is_refused\n1 test, 0 failed\n";
    for name in ["test_nobody_is_refused", "test_nobody*"] {
        assert_eq!(run(&folder, &["script", "test", "rules.lua", name]), (Some(0), passed.to_owned()));
    }
    let (code, said) = run(&folder, &["script", "test", "rules.lua", "test_nothing"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("rules.lua has no test test_nothing"), "{said}");
}

#[test]
fn a_script_without_tests_has_not_passed() {
    let folder = Folder::new("untested", "function inbucket.before.mail_from_accepted() end");
    let (code, said) = run(&folder, &["script", "test", "rules.lua"]);
    assert_eq!(code, Some(1));
    assert!(said.starts_with("rules.lua has no tests"), "{said}");
}

#[test]
fn settings_count_for_scripts_that_are_tried() {
    let script = "function test_it(t)\n\
        t.equal(io, nil)\n\
        t.equal(t.deliver { to = { 'Bob@X.org' } }.mailboxes[1], 'bob@x.org')\nend\n";
    let folder = Folder::new("settings", script);
    let (code, said) = run(&folder, &["script", "test", "rules.lua"]);
    assert_eq!(code, Some(1), "{said}");
    let settings = ["script", "test", "rules.lua", "--lua-sandbox", "--mailboxnaming", "full"];
    let (code, said) = run(&folder, &settings);
    assert_eq!(code, Some(0), "{said}");
}
