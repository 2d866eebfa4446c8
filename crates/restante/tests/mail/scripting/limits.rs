//! Scripts that take too long or too much: their calls end, mail goes on, and nobody else waits for them.

use std::thread;

use super::folder::{EVENTS, Folder, eventually, metric, says_time_is_up, send, subjects, wait_for, wait_for_calls};

/// So short that a test can wait for it, and enough for a script that does little, also on a busy machine.
const TIMEOUT: &str = "3s";

/// A script of which every event does this.
fn everywhere(code: &str) -> String {
    format!(
        "local function f(it)\n  {code}\nend\n\
         inbucket.before.mail_from_accepted, inbucket.before.rcpt_to_accepted = f, f\n\
         inbucket.before.message_stored = f\n\
         inbucket.after.message_stored, inbucket.after.message_deleted = f, f\n"
    )
}

#[test]
fn an_endless_loop_in_any_event_is_ended_and_mail_goes_on() {
    let loops = [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do coroutine.wrap(function() while true do end end)() end",
    ];
    thread::scope(|scope| {
        for code in loops {
            scope.spawn(move || an_endless_loop_in_any_event(code));
        }
    });
}

fn an_endless_loop_in_any_event(code: &str) {
    let folder = Folder::new("loops", &everywhere(code));
    let mut server = folder.start(&["--lua-timeout", TIMEOUT, "--smtp-rejectdomains", "bad.test"]);
    let mut talk = server.talk();
    talk.open_mail("bob@x.org");
    talk.say("RCPT TO:<bob@bad.test>", "550");
    talk.say("DATA", "354");
    talk.say("Subject: hi\r\n\r\nhello\r\n.", "250");
    assert_eq!(subjects(&server, "bob"), ["hi"]);
    assert_eq!(ureq::delete(server.url("/api/v1/mailbox/bob")).call().unwrap().status(), 200);
    for event in EVENTS {
        let line = server.logged(&format!("script=rules.lua line=2 event={event}"));
        assert!(says_time_is_up(&line, TIMEOUT), "{line}");
        wait_for_calls(&server, event, "limit", if event == "before.rcpt_to_accepted" { 2 } else { 1 });
    }
    // All of the loops have ended.
    wait_for(&server, "abandoned", 0.0);
}

#[test]
fn memory_is_bounded_and_mail_goes_on() {
    let bombs = [
        "local t = {} while true do t[#t + 1] = { #t } end",
        "local s = 'x' while true do s = s .. s end",
        "local s = ('x'):rep(1e9)",
        "while true do pcall(string.rep, 'x', 1e9) end",
        "local t = {} pcall(function() while true do t[#t + 1] = { #t } end end) while true do end",
        "it.from.name = ('x'):rep(2e7)",
    ];
    for code in bombs {
        let script = format!("function inbucket.before.mail_from_accepted(it) {code} end\n");
        let folder = Folder::new("memory", &script);
        let mut server = folder.start(&["--lua-memorykb", "4096"]);
        server.talk().open_mail("bob@x.org");
        server
            .logged("ERROR needs more than 4096 KiB of memory script=rules.lua line=1 event=before.mail_from_accepted");
        wait_for_calls(&server, "before.mail_from_accepted", "limit", 1);
        // The next call has a state of its own.
        server.talk().open_mail("bob@x.org");
        wait_for_calls(&server, "before.mail_from_accepted", "limit", 2);
    }
}

/// Waits in a way that Lua cannot stop, until the test lets go of `go`, has removed its folder, or has failed long ago. The
/// shell does not hold the log open.
const SHELL: &str =
    "io.popen('for i in $(seq 2000); do [ -e go ] || [ ! -e rules.lua ] && exit; sleep 0.02; done 2>&-'):close()";

/// A script that does this for `slow@x.org`.
fn for_slow_senders(code: &str) -> String {
    format!(
        "function inbucket.before.mail_from_accepted(session)\n\
         if session.from.address == 'slow@x.org' then local x = {code} end\n\
         end\n"
    )
}

#[test]
fn what_cannot_be_stopped_is_left_behind() {
    for code in [SHELL, "(('a'):rep(100)):find(('a-'):rep(30) .. 'b')"] {
        let folder = Folder::new("abandoned", &for_slow_senders(code));
        let mut server = folder.start(&["--lua-timeout", TIMEOUT]);
        let mut talk = server.talk();
        talk.expect("220");
        talk.say("EHLO client.test", "250");
        talk.say("MAIL FROM:<slow@x.org>", "250");
        let line = server.logged("ERROR the call took too long and was given up");
        assert!(line.contains("script=rules.lua line=1 event=before.mail_from_accepted"), "{line}");
        assert!((metric(&server, "abandoned") - 1.0).abs() < 1e-9, "{code}");
        // Others are asked as before.
        server.talk().open_mail("bob@x.org");
        wait_for_calls(&server, "before.mail_from_accepted", "ok", 1);
        // Nor does the end wait for it.
        talk.say("QUIT", "221");
        server.signal("TERM");
        assert_eq!(server.wait().code(), Some(0), "{code}");
    }
}

#[test]
fn when_too_many_calls_are_left_behind_no_more_are_made_until_they_return() {
    const MOST: u32 = 16;
    let folder = Folder::new("stuck", &for_slow_senders(SHELL));
    // A state for each of them, so that none has to wait for its turn, and time enough to make them all.
    let mut server = folder.start(&["--lua-timeout", TIMEOUT, "--lua-states", "16"]);
    let senders = (0..MOST).map(|_| {
        let mut talk = server.talk();
        talk.expect("220");
        talk.say("EHLO client.test", "250");
        talk.send("MAIL FROM:<slow@x.org>\r\n");
        talk
    });
    let mut senders: Vec<_> = senders.collect();
    for talk in &mut senders {
        talk.expect("250");
    }
    wait_for(&server, "abandoned", MOST.into());
    send(&server, "bob@x.org", "unasked");
    assert_eq!(server.count("bob"), 1);
    server.logged("the script was not called: its calls take too long");
    wait_for_calls(&server, "before.mail_from_accepted", "busy", 1);

    folder.let_go("go");
    wait_for(&server, "abandoned", 0.0);
    send(&server, "bob@x.org", "asked");
    wait_for_calls(&server, "before.mail_from_accepted", "ok", 1);
}

#[test]
fn a_held_up_call_holds_up_nobody_else() {
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
    let mut senders = server.talk();
    senders.expect("220");
    senders.say("EHLO client.test", "250");
    senders.send("MAIL FROM:<slow@x.org>\r\n");
    let mut recipients = server.talk();
    recipients.open_mail("bob@x.org");
    recipients.send("RCPT TO:<slow@x.org>\r\n");
    let mut messages = server.talk();
    messages.open_mail("bob@x.org");
    messages.say("DATA", "354");
    messages.send("Subject: slow\r\n\r\nhello\r\n.\r\n");
    folder.notes(3);

    for number in 0..20 {
        send(&server, "quick@x.org", &number.to_string());
    }
    assert_eq!(server.count("quick"), 20);
    assert_eq!(server.count("bob"), 0);
    folder.let_go("go");
    for talk in [&mut senders, &mut recipients, &mut messages] {
        talk.expect("250");
    }
    assert_eq!(subjects(&server, "bob"), ["slow"]);
}

/// Notes what was stored, when it is let go.
const HELD_UP: &str = r#"
local hold, note = require("hold"), require("note")

function inbucket.after.message_stored(meta)
  note("begins", meta.subject)
  hold("go")
  note("ends", meta.subject)
end
"#;

#[test]
fn when_too_many_events_wait_the_rest_is_dropped_and_delivery_goes_on() {
    let folder = Folder::new("overflow", HELD_UP);
    let mut server = folder.start(&["--lua-states", "1", "--lua-queue", "2", "--lua-timeout", "1m"]);
    send(&server, "bob@x.org", "0");
    folder.notes(1);
    for number in 1..10 {
        send(&server, "bob@x.org", &number.to_string());
    }
    assert_eq!(server.count("bob"), 10);
    wait_for(&server, "waiting", 2.0);
    wait_for(&server, "dropped_total", 7.0);
    let line = server.logged("events were not told to the script: too many wait for it already");
    assert!(line.contains("event=after.message_stored"), "{line}");
    folder.let_go("go");
    let notes = folder.notes(6);
    assert_eq!(notes, ["begins 0", "ends 0", "begins 1", "ends 1", "begins 2", "ends 2"]);
    wait_for_calls(&server, "after.message_stored", "ok", 3);
    wait_for(&server, "waiting", 0.0);
}

#[test]
fn the_end_waits_for_events_that_wait() {
    let folder = Folder::new("end", HELD_UP);
    let mut server = folder.start(&["--lua-states", "1", "--lua-timeout", "1m"]);
    for number in 0..3 {
        send(&server, "bob@x.org", &number.to_string());
    }
    folder.notes(1);
    server.signal("TERM");
    server.logged("shutting down");
    assert!(server.lives());
    folder.let_go("go");
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(folder.notes(6)[5], "ends 2");
    assert!(!server.whole_log().contains("the script was not told"));
}

#[test]
fn whoever_insists_ends_the_server_before_the_script() {
    let folder = Folder::new("insist", HELD_UP);
    let mut server = folder.start(&["--lua-states", "1", "--lua-timeout", "1m"]);
    for number in 0..3 {
        send(&server, "bob@x.org", &number.to_string());
    }
    folder.notes(1);
    server.signal("TERM");
    server.logged("shutting down");
    eventually("the server is gone", || {
        if server.lives() {
            server.signal("TERM");
            return None;
        }
        Some(())
    });
    assert_eq!(server.wait().code(), Some(0));
    folder.notes(1);
}
