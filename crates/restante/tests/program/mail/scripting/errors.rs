//! Failing scripts: the log has the line of the error, and messages are handled as without a script. Also tests the sandbox.

use super::folder::{EVENTS, Folder, send, subjects, wait_for_calls};

#[test]
fn error_in_any_event_is_logged_with_its_line_and_ignored() {
    let script =
        EVENTS.map(|event| format!("function inbucket.{event}(it)\n  local x = it.nothing.at_all\nend\n")).concat();
    let folder = Folder::new("errors", &script);
    let mut server = folder.start(&["--smtp-rejectdomains", "bad.test"]);
    send(&server, "bob@x.org", "hi");
    assert_eq!(subjects(&server, "bob"), ["hi"]);
    assert_eq!(ureq::delete(server.url("/api/v1/mailbox/bob")).call().unwrap().status(), 200);
    for (event, number) in EVENTS.iter().zip((2..).step_by(3)) {
        let line = server.wait_for_log(&format!("script=rules.lua line={number} event={event}"));
        assert!(line.contains("ERROR attempt to index field 'nothing' (a nil value)"), "{line}");
        wait_for_calls(&server, event, "error", 1);
    }
    let mut connection = server.connect_smtp();
    connection.start_message("bob@x.org");
    connection.command("RCPT TO:<bob@bad.test>", "550");
}

#[test]
fn all_kinds_of_errors_are_logged() {
    let table = [
        ("error('plain')", "ERROR plain", "script=rules.lua line=2"),
        ("error('no place', 0)", "ERROR no place", "script=rules.lua line=2"),
        ("error({ code = 7 })", "ERROR", "script=rules.lua line=2"),
        ("error()", "ERROR", "script=rules.lua line=2"),
        ("error('two\\nlines')", "ERROR two lines", "script=rules.lua line=2"),
        ("require('helper')()", "ERROR in the helper", "script=helper.lua line=2"),
        ("coroutine.wrap(function() error('inside') end)()", "ERROR inside", "script=rules.lua line=2"),
        ("local function f() return f() + 1 end f()", "ERROR stack overflow", "script=rules.lua line=2"),
        ("os.exit(0)", "ERROR os.exit is not available to scripts", "script=rules.lua line=2"),
        ("local verdict = smtp.deny(700)", "ERROR the code in smtp.deny(code, text)", "script=rules.lua line=2"),
        ("return smtp.deny(700)", "ERROR the code in smtp.deny(code, text)", "script=rules.lua line=1"),
    ];
    for (code, text, location) in table {
        let script = format!("function inbucket.before.mail_from_accepted(session)\n  {code}\nend\n");
        let folder = Folder::new("kinds", &script);
        folder.write("helper.lua", "return function()\n  error('in the helper')\nend\n");
        let mut server = folder.start(&[]);
        server.connect_smtp().start_message("bob@x.org");
        let line = server.wait_for_log("event=before.mail_from_accepted");
        assert!(line.contains(text) && line.contains(location), "{code}: {line}");
    }
}

#[test]
fn error_that_the_script_catches_is_not_logged() {
    let folder = Folder::new(
        "caught",
        r#"
function inbucket.before.message_stored(msg)
  local ok, why = pcall(function() msg.size = 1 end)
  msg.subject = tostring(ok) .. " " .. why
  return msg
end
"#,
    );
    let server = folder.start(&[]);
    send(&server, "bob@x.org", "hi");
    assert_eq!(subjects(&server, "bob"), ["false rules.lua:3: inbound_message.size is read-only"]);
    wait_for_calls(&server, "before.message_stored", "ok", 1);
}

/// Lists the functions that reach beyond the server. They exist by default.
const REACH: &str = r#"
local logger = require("logger")

function inbucket.before.mail_from_accepted(session)
  local there = {}
  for _, name in ipairs({ "io", "dofile", "loadfile" }) do
    if rawget(_G, name) or _G[name] then there[#there + 1] = name end
  end
  for _, name in ipairs({ "execute", "getenv", "remove", "rename", "tmpname" }) do
    if os[name] then there[#there + 1] = name end
  end
  local found = pcall(require, "io")
  logger.info("reach: " .. table.concat(there, " ") .. ", io " .. tostring(found) .. ", time " .. type(os.time()))
  logger.info("neither: " .. tostring(ffi) .. tostring(pcall(require, "ffi")) .. tostring(pcall(require, "jit"))
    .. tostring(loadstring(string.dump(function() end))))
end
"#;

#[test]
fn sandbox_removes_functions_that_reach_beyond_the_server() {
    let folder = Folder::new("sandbox", REACH);
    folder.write("lib/beside.lua", "return 1");
    let table = [
        (&[][..], "reach: io dofile loadfile execute getenv remove rename tmpname, io true, time number"),
        (&["--lua-sandbox"], "reach: , io false, time number"),
    ];
    for (arguments, reach) in table {
        let mut server = folder.start(arguments);
        server.connect_smtp().start_message("bob@x.org");
        server.wait_for_log(reach);
        server.wait_for_log("neither: nilfalsefalsenil");
    }
}

#[test]
fn sandbox_keeps_modules_and_require() {
    let folder = Folder::new(
        "inside",
        r#"
local logger, json, http, lib = require("logger"), require("json"), require("http"), require("lib.tag")

function inbucket.before.message_stored(msg)
  msg.subject = lib.tag .. json.encode({ msg.subject, os.date("!%Y", 0) })
  return msg
end
"#,
    );
    folder.write("lib/tag.lua", "return { tag = 'tagged ' }");
    let server = folder.start(&["--lua-sandbox"]);
    send(&server, "bob@x.org", "hi");
    assert_eq!(subjects(&server, "bob"), [r#"tagged ["hi","1970"]"#]);
}
