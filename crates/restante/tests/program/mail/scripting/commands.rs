//! Running scripts without a server: `restante script check` and `restante script test`.

use std::process::Stdio;

use super::folder::Folder;

/// Runs a command. Returns its exit code, and its standard output followed by its standard error.
fn run(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String) {
    let output = folder.bare_command().args(arguments).stdin(Stdio::null()).output().unwrap();
    let output_text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(output_text).unwrap())
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
        ("empty.lua", "empty.lua\n  warning: no handlers, the script has no effect\n"),
    ];
    for (file, expected) in table {
        assert_eq!(run(&folder, &["script", "check", file]), (Some(0), expected.to_owned()));
    }
}

#[test]
fn check_loads_the_script_like_the_server() {
    let script = "print('hello') require('logger').warn('careful', { n = 1 })\n\
                  local _, problem = require('http').get('http://127.0.0.1:1')\nprint(problem)\n";
    let folder = Folder::new("real", script);
    let (code, output_text) = run(&folder, &["script", "check", "rules.lua"]);
    assert_eq!(code, Some(0), "{output_text}");
    for expected in ["INFO  hello", "WARN  careful", "connection refused"] {
        assert!(output_text.contains(expected), "{expected}: {output_text}");
    }
}

#[test]
fn check_and_test_report_script_errors() {
    let table = [
        ("function inbucket.before.nothing() end", "restante: rules.lua:1: there is no event before.nothing"),
        ("\nfunction f(", "restante: rules.lua:2: "),
        ("\nerror('not today')", "restante: rules.lua:2: not today"),
    ];
    for (script, problem) in table {
        let folder = Folder::new("wrong", script);
        for task in ["check", "test"] {
            let (code, output_text) = run(&folder, &["script", task, "rules.lua"]);
            assert_eq!(code, Some(1), "{output_text}");
            assert!(output_text.starts_with(problem), "{task} {script}: {output_text}");
        }
    }
    let folder = Folder::new("endless", "\nwhile true do end");
    // The loop is stopped by the time limit. On a busy machine, the program may stop waiting first.
    for (task, timeout_text) in [("check", "loading takes too long"), ("test", "does not end within 100ms")] {
        let (code, output_text) = run(&folder, &["script", task, "rules.lua", "--lua-timeout", "100ms"]);
        assert_eq!(code, Some(1), "{output_text}");
        let problems = [":2: took longer than 100ms", &format!(": {timeout_text}")];
        let is_reported = |problem: &str| output_text.starts_with(&format!("restante: rules.lua{problem}"));
        assert!(problems.into_iter().any(is_reported), "{task}: {output_text}");
    }
    let folder = Folder::empty("wrong");
    for task in ["check", "test"] {
        let (code, output_text) = run(&folder, &["script", task, "missing.lua"]);
        assert_eq!(code, Some(1), "{output_text}");
        assert!(output_text.starts_with("restante: missing.lua: No such file"), "{output_text}");
        assert_eq!(run(&folder, &["script", task]).0, Some(2), "the file is optional");
    }
}

#[test]
fn test_command_runs_the_tests() {
    let folder = Folder::new("test", RULES);
    let (code, output_text) = run(&folder, &["script", "test", "rules.lua"]);
    assert_eq!(code, Some(1), "{output_text}");
    let lines: Vec<&str> = output_text.lines().collect();
    assert_eq!(lines[..2], ["ok    test_nobody_is_refused", "FAIL  test_that_fails"]);
    assert!(lines[2].starts_with("      rules.lua:19: "), "{output_text}");
    assert!(output_text.contains("log: ") && output_text.contains("refused"), "{output_text}");
    assert_eq!(lines.last(), Some(&"2 tests, 1 failed"));

    let passed = "ok    test_nobody_is_refused\n1 test, 0 failed\n";
    for name in ["test_nobody_is_refused", "test_nobody*"] {
        assert_eq!(run(&folder, &["script", "test", "rules.lua", name]), (Some(0), passed.to_owned()));
    }
    let (code, output_text) = run(&folder, &["script", "test", "rules.lua", "test_nothing"]);
    assert_eq!(code, Some(1));
    assert!(output_text.contains("rules.lua has no test test_nothing"), "{output_text}");
}

#[test]
fn script_without_tests_fails() {
    let folder = Folder::new("untested", "function inbucket.before.mail_from_accepted() end");
    let (code, output_text) = run(&folder, &["script", "test", "rules.lua"]);
    assert_eq!(code, Some(1));
    assert!(output_text.starts_with("rules.lua has no tests"), "{output_text}");
}

#[test]
fn settings_apply_to_script_commands() {
    let script = "function test_it(t)\n\
        t.equal(io, nil)\n\
        t.equal(t.deliver { to = { 'Bob@X.org' } }.mailboxes[1], 'bob@x.org')\nend\n";
    let folder = Folder::new("settings", script);
    let (code, output_text) = run(&folder, &["script", "test", "rules.lua"]);
    assert_eq!(code, Some(1), "{output_text}");
    let settings = ["script", "test", "rules.lua", "--lua-sandbox", "--mailboxnaming", "full"];
    let (code, output_text) = run(&folder, &settings);
    assert_eq!(code, Some(0), "{output_text}");
}
