//! Reloading the script with SIGHUP.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use super::folder::{Folder, metric, send, subjects, wait_for};

/// Returns a script that adds its version to subjects.
fn version(number: u32) -> String {
    format!(
        "local tag = require('lib.tag')\n\
         function inbucket.before.message_stored(msg)\n\
         msg.subject = tag .. 'v{number} ' .. msg.subject\nreturn msg\nend\n"
    )
}

#[test]
fn reload_replaces_the_script_its_files_and_events() {
    let folder = Folder::new("reload", &version(1));
    folder.write("lib/tag.lua", "return 'old '");
    let mut server = folder.start(&[]);
    send(&server, "bob@x.org", "a");

    folder.write("rules.lua", &version(2));
    folder.write("lib/tag.lua", "return 'new '");
    server.signal("HUP");
    server.wait_for_log("reloaded script rules.lua: before.message_stored");
    send(&server, "bob@x.org", "b");

    folder.write("rules.lua", "function inbucket.before.mail_from_accepted() return smtp.deny(450) end");
    server.signal("HUP");
    server.wait_for_log("reloaded script rules.lua: before.mail_from_accepted");
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    connection.command("MAIL FROM:<ann@x.org>", "450");

    folder.write("rules.lua", "-- nothing");
    server.signal("HUP");
    server.wait_for_log("reloaded script rules.lua: no handlers");
    send(&server, "bob@x.org", "c");
    assert_eq!(subjects(&server, "bob"), ["old v1 a", "new v2 b", "c"]);
    assert!((metric(&server, "reloads_total{outcome=\"ok\"}") - 3.0).abs() < 1e-9);
}

#[test]
fn failed_reload_keeps_the_old_script() {
    let folder = Folder::new("broken", &version(1));
    folder.write("lib/tag.lua", "return ''");
    let mut server = folder.start(&["--lua-timeout", "3s"]);
    let broken = [
        ("\nfunction f(\n", "rules.lua:3: "),
        ("function inbucket.after.no_such_event() end", "rules.lua:1: there is no event"),
        ("\n\nerror('not today')", "rules.lua:3: not today"),
        // On a busy machine the server may stop waiting before the loop is stopped, hence two possible texts.
        ("while true do end", "rules.lua:1: took longer than 3s|rules.lua: loading takes too long"),
        ("io.popen('exec sleep 60 2>/dev/null'):close()", "rules.lua: loading takes too long"),
    ];
    for (number, (script, problem)) in (1..).zip(broken) {
        folder.write("rules.lua", script);
        server.signal("HUP");
        wait_for(&server, "reloads_total{outcome=\"failed\"}", f64::from(number));
        let line = server.wait_for_any_log(&problem.split('|').collect::<Vec<_>>());
        assert!(line.contains("cannot reload the script, still using the old one"), "{line}");
        send(&server, "bob@x.org", &number.to_string());
    }
    folder.remove("rules.lua");
    server.signal("HUP");
    server.wait_for_log("rules.lua: the file no longer exists");
    send(&server, "bob@x.org", "6");
    assert_eq!(subjects(&server, "bob"), ["v1 1", "v1 2", "v1 3", "v1 4", "v1 5", "v1 6"]);

    folder.write("rules.lua", &version(2));
    server.signal("HUP");
    wait_for(&server, "reloads_total{outcome=\"ok\"}", 1.0);
    send(&server, "bob@x.org", "7");
    assert_eq!(subjects(&server, "bob").last().map(String::as_str), Some("v2 7"));
}

#[test]
fn reload_finds_a_new_script() {
    let folder = Folder::empty("late");
    let mut server = crate::support::Server::spawn(&mut folder.command());
    send(&server, "bob@x.org", "a");
    folder.write("lib/tag.lua", "return ''");
    folder.write("inbucket.lua", &version(1));
    server.signal("HUP");
    server.wait_for_log("reloaded script inbucket.lua");
    send(&server, "bob@x.org", "b");
    assert_eq!(subjects(&server, "bob"), ["a", "v1 b"]);
}

#[test]
fn reload_keeps_the_script_if_others_may_write_the_new_one() {
    let folder = Folder::empty("untrusted-reload");
    folder.write("lib/tag.lua", "return ''");
    folder.write("restante.lua", &version(2));
    folder.set_mode("restante.lua", 0o666);
    let mut server = crate::support::Server::spawn(&mut folder.command());
    server.wait_for_log("no script is loaded: restante.lua: the file has the mode 0666");
    // Another mode, because the same line is in the log already.
    folder.set_mode("restante.lua", 0o646);
    server.signal("HUP");
    server.wait_for_log("no script is loaded: restante.lua: the file has the mode 0646");

    folder.write("restante.lua", &version(1));
    server.signal("HUP");
    server.wait_for_log("reloaded script restante.lua");
    folder.write("restante.lua", &version(2));
    folder.set_mode("restante.lua", 0o666);
    server.signal("HUP");
    server.wait_for_log("cannot reload the script, still using the old one");
    send(&server, "bob@x.org", "a");
    assert_eq!(subjects(&server, "bob"), ["v1 a"]);
}

#[test]
fn no_message_is_lost_during_reloads() {
    const SENDERS: usize = 4;
    const VERSIONS: u32 = 5;
    let folder = Folder::new("load", &version(1));
    folder.write("lib/tag.lua", "return ''");
    let mut server = folder.start(&["--storage-mailboxmsgcap", "0"]);
    let smtp = server.smtp;
    let done = AtomicBool::new(false);
    let sent: Vec<usize> = std::thread::scope(|scope| {
        let send_on = |sender: usize| {
            let mut connection = crate::support::LineConnection::new(crate::support::connect(smtp));
            connection.expect("220");
            connection.command("EHLO client.test", "250");
            let mut sent = 0;
            while !done.load(SeqCst) {
                connection.command("MAIL FROM:<ann@x.org>", "250");
                connection.command(&format!("RCPT TO:<sender{sender}@x.org>"), "250");
                connection.command("DATA", "354");
                connection.command(&format!("Subject: {sent}\r\n\r\nhello\r\n."), "250");
                sent += 1;
            }
            sent
        };
        let senders: Vec<_> = (0..SENDERS).map(|sender| scope.spawn(move || send_on(sender))).collect();
        for number in 2..=VERSIONS {
            folder.write("rules.lua", &version(number));
            server.signal("HUP");
            wait_for(&server, "reloads_total{outcome=\"ok\"}", f64::from(number - 1));
            send(&server, "after@x.org", "hi");
        }
        done.store(true, SeqCst);
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    });

    // A new session uses the new script. A session sees the versions in order, and every message has exactly one version.
    let expected: Vec<String> = (2..=VERSIONS).map(|number| format!("v{number} hi")).collect();
    assert_eq!(subjects(&server, "after"), expected);
    for (sender, sent) in sent.into_iter().enumerate() {
        let subjects = subjects(&server, &format!("sender{sender}"));
        assert_eq!(subjects.len(), sent);
        let mut last = 1;
        for (number, subject) in subjects.iter().enumerate() {
            let (version, rest) = subject.split_once(' ').unwrap_or_else(|| panic!("{subject} has no version"));
            let version: u32 = version.strip_prefix('v').unwrap().parse().unwrap();
            assert!((last..=VERSIONS).contains(&version), "{subject} after v{last}");
            assert_eq!(rest, number.to_string());
            last = version;
        }
    }
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    assert!(!server.full_log().contains("ERROR"));
}

#[test]
fn concurrent_signals_cause_at_most_two_reloads() {
    let folder = Folder::new("storm", "-- nothing");
    let mut server = folder.start(&["--lua-timeout", "1m"]);
    folder.write("rules.lua", "require('note')('loads') require('hold')('go')");
    server.signal("HUP");
    server.wait_for_log("reloaded log file");
    folder.notes(1);
    for _ in 0..10 {
        server.signal("HUP");
        server.wait_for_log("reloaded log file");
    }
    assert!(metric(&server, "abandoned").abs() < 1e-9, "the load was abandoned");
    folder.release("go");
    wait_for(&server, "reloads_total{outcome=\"ok\"}", 2.0);
    server.signal("HUP");
    wait_for(&server, "reloads_total{outcome=\"ok\"}", 3.0);
    assert_eq!(folder.notes(3), ["loads"; 3]);
}
