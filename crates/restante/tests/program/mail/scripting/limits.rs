//! Scripts that exceed the time or memory limit: their calls are stopped, and deliveries and other calls are not delayed.

use std::thread;

use super::folder::{EVENTS, Folder, eventually, is_timeout, metric, send, subjects, wait_for, wait_for_calls};

/// Short enough for a test, and long enough for a small script on a busy machine.
const TIMEOUT: &str = "3s";

/// Returns a script that runs this code in every event.
fn in_every_event(code: &str) -> String {
    format!(
        "local function f(it)\n  {code}\nend\n\
         inbucket.before.mail_from_accepted, inbucket.before.rcpt_to_accepted = f, f\n\
         inbucket.before.message_stored = f\n\
         inbucket.after.message_stored, inbucket.after.message_deleted = f, f\n"
    )
}

#[test]
fn endless_loop_in_any_event_is_stopped() {
    let loops = [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do coroutine.wrap(function() while true do end end)() end",
    ];
    thread::scope(|scope| {
        for code in loops {
            scope.spawn(move || check_endless_loop(code));
        }
    });
}

fn check_endless_loop(code: &str) {
    let folder = Folder::new("loops", &in_every_event(code));
    let mut server = folder.start(&["--lua-timeout", TIMEOUT, "--smtp-rejectdomains", "bad.test"]);
    let mut connection = server.connect_smtp();
    connection.start_message("bob@x.org");
    connection.command("RCPT TO:<bob@bad.test>", "550");
    connection.command("DATA", "354");
    connection.command("Subject: hi\r\n\r\nhello\r\n.", "250");
    assert_eq!(subjects(&server, "bob"), ["hi"]);
    assert_eq!(ureq::delete(server.url("/api/v1/mailbox/bob")).call().unwrap().status(), 200);
    for event in EVENTS {
        let line = server.wait_for_log(&format!("script=rules.lua line=2 event={event}"));
        assert!(is_timeout(&line, TIMEOUT), "{line}");
        wait_for_calls(&server, event, "limit", if event == "before.rcpt_to_accepted" { 2 } else { 1 });
    }
    // All loops have ended.
    wait_for(&server, "abandoned", 0.0);
}

#[test]
fn memory_limit_stops_the_call() {
    let scripts = [
        "local t = {} while true do t[#t + 1] = { #t } end",
        "local s = 'x' while true do s = s .. s end",
        "local s = ('x'):rep(1e9)",
        "while true do pcall(string.rep, 'x', 1e9) end",
        "local t = {} pcall(function() while true do t[#t + 1] = { #t } end end) while true do end",
        "it.from.name = ('x'):rep(2e7)",
    ];
    for code in scripts {
        let script = format!("function inbucket.before.mail_from_accepted(it) {code} end\n");
        let folder = Folder::new("memory", &script);
        let mut server = folder.start(&["--lua-memorykb", "4096"]);
        server.connect_smtp().start_message("bob@x.org");
        server.wait_for_log(
            "ERROR needs more than 4096 KiB of memory script=rules.lua line=1 event=before.mail_from_accepted",
        );
        wait_for_calls(&server, "before.mail_from_accepted", "limit", 1);
        // The next call uses a new Lua state.
        server.connect_smtp().start_message("bob@x.org");
        wait_for_calls(&server, "before.mail_from_accepted", "limit", 2);
    }
}

/// Blocks in a way that Lua cannot stop, until the test releases `go` or removes its folder, or for 40 seconds. The shell does not
/// keep the log open.
const SHELL: &str =
    "io.popen('for i in $(seq 2000); do [ -e go ] || [ ! -e rules.lua ] && exit; sleep 0.02; done 2>&-'):close()";

/// Returns a script that runs this code for `slow@x.org`.
fn for_slow_senders(code: &str) -> String {
    format!(
        "function inbucket.before.mail_from_accepted(session)\n\
         if session.from.address == 'slow@x.org' then local x = {code} end\n\
         end\n"
    )
}

#[test]
fn call_that_cannot_be_stopped_is_abandoned() {
    for code in [SHELL, "(('a'):rep(100)):find(('a-'):rep(30) .. 'b')"] {
        let folder = Folder::new("abandoned", &for_slow_senders(code));
        let mut server = folder.start(&["--lua-timeout", TIMEOUT]);
        let mut connection = server.connect_smtp();
        connection.expect("220");
        connection.command("EHLO client.test", "250");
        connection.command("MAIL FROM:<slow@x.org>", "250");
        let line = server.wait_for_log("ERROR the call took too long and was abandoned");
        assert!(line.contains("script=rules.lua line=1 event=before.mail_from_accepted"), "{line}");
        assert!((metric(&server, "abandoned") - 1.0).abs() < 1e-9, "{code}");
        // Other calls work as before.
        server.connect_smtp().start_message("bob@x.org");
        wait_for_calls(&server, "before.mail_from_accepted", "ok", 1);
        // The shutdown does not wait for it either.
        connection.command("QUIT", "221");
        server.signal("TERM");
        assert_eq!(server.wait().code(), Some(0), "{code}");
    }
}

#[test]
fn no_calls_while_too_many_are_abandoned() {
    const MAX_ABANDONED: u32 = 16;
    let folder = Folder::new("stuck", &for_slow_senders(SHELL));
    // One state for each call, so that none waits, and a timeout that allows starting all of them.
    let mut server = folder.start(&["--lua-timeout", TIMEOUT, "--lua-states", "16"]);
    let senders = (0..MAX_ABANDONED).map(|_| {
        let mut connection = server.connect_smtp();
        connection.expect("220");
        connection.command("EHLO client.test", "250");
        connection.send("MAIL FROM:<slow@x.org>\r\n");
        connection
    });
    let mut senders: Vec<_> = senders.collect();
    for connection in &mut senders {
        connection.expect("250");
    }
    wait_for(&server, "abandoned", MAX_ABANDONED.into());
    send(&server, "bob@x.org", "without call");
    assert_eq!(server.count("bob"), 1);
    server.wait_for_log("the script was not called: no thread was free in time");
    wait_for_calls(&server, "before.mail_from_accepted", "busy", 1);

    folder.release("go");
    wait_for(&server, "abandoned", 0.0);
    send(&server, "bob@x.org", "with call");
    wait_for_calls(&server, "before.mail_from_accepted", "ok", 1);
}

#[test]
fn blocked_call_delays_no_other_call() {
    let folder = Folder::new(
        "held",
        r#"
local hold, note = require("hold"), require("note")

local function wait_for_slow(address)
  if address == "slow@x.org" then
    note("holds")
    hold("go")
  end
end

function inbucket.before.mail_from_accepted(session) wait_for_slow(session.from.address) end
function inbucket.before.rcpt_to_accepted(session) wait_for_slow(session.to[#session.to].address) end
function inbucket.before.message_stored(msg) if msg.subject == "slow" then wait_for_slow("slow@x.org") end end
"#,
    );
    let server = folder.start(&["--lua-states", "1", "--lua-timeout", "1m"]);
    let mut senders = server.connect_smtp();
    senders.expect("220");
    senders.command("EHLO client.test", "250");
    senders.send("MAIL FROM:<slow@x.org>\r\n");
    let mut recipients = server.connect_smtp();
    recipients.start_message("bob@x.org");
    recipients.send("RCPT TO:<slow@x.org>\r\n");
    let mut messages = server.connect_smtp();
    messages.start_message("bob@x.org");
    messages.command("DATA", "354");
    messages.send("Subject: slow\r\n\r\nhello\r\n.\r\n");
    folder.notes(3);

    for number in 0..20 {
        send(&server, "quick@x.org", &number.to_string());
    }
    assert_eq!(server.count("quick"), 20);
    assert_eq!(server.count("bob"), 0);
    folder.release("go");
    for connection in [&mut senders, &mut recipients, &mut messages] {
        connection.expect("250");
    }
    assert_eq!(subjects(&server, "bob"), ["slow"]);
}

/// Notes the start and the end of each event, and waits for `go` in between.
const BLOCKED: &str = r#"
local hold, note = require("hold"), require("note")

function inbucket.after.message_stored(meta)
  note("begins", meta.subject)
  hold("go")
  note("ends", meta.subject)
end
"#;

#[test]
fn events_above_the_queue_limit_are_dropped_and_deliveries_continue() {
    let folder = Folder::new("overflow", BLOCKED);
    let mut server = folder.start(&["--lua-states", "1", "--lua-queue", "2", "--lua-timeout", "1m"]);
    send(&server, "bob@x.org", "0");
    folder.notes(1);
    for number in 1..10 {
        send(&server, "bob@x.org", &number.to_string());
    }
    assert_eq!(server.count("bob"), 10);
    wait_for(&server, "waiting", 2.0);
    wait_for(&server, "dropped_total", 7.0);
    let line = server.wait_for_log("script events are dropped: the queue is full");
    assert!(line.contains("event=after.message_stored"), "{line}");
    folder.release("go");
    let notes = folder.notes(6);
    assert_eq!(notes, ["begins 0", "ends 0", "begins 1", "ends 1", "begins 2", "ends 2"]);
    wait_for_calls(&server, "after.message_stored", "ok", 3);
    wait_for(&server, "waiting", 0.0);
}

#[test]
fn shutdown_waits_for_queued_events() {
    let folder = Folder::new("end", BLOCKED);
    let mut server = folder.start(&["--lua-states", "1", "--lua-timeout", "1m"]);
    for number in 0..3 {
        send(&server, "bob@x.org", &number.to_string());
    }
    folder.notes(1);
    server.signal("TERM");
    server.wait_for_log("shutting down");
    assert!(server.is_running());
    folder.release("go");
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(folder.notes(6)[5], "ends 2");
    assert!(!server.full_log().contains("script events are dropped"));
}

#[test]
fn repeated_signals_stop_the_server_before_the_script() {
    let folder = Folder::new("insist", BLOCKED);
    let mut server = folder.start(&["--lua-states", "1", "--lua-timeout", "1m"]);
    for number in 0..3 {
        send(&server, "bob@x.org", &number.to_string());
    }
    folder.notes(1);
    server.signal("TERM");
    server.wait_for_log("shutting down");
    eventually("the server exits", || {
        if server.is_running() {
            server.signal("TERM");
            return None;
        }
        Some(())
    });
    assert_eq!(server.wait().code(), Some(0));
    folder.notes(1);
}
