//! Which script is found, and scripts with which there is no start.

use std::fmt::Write as _;

use super::folder::{Folder, metric, send};

use crate::support::Server;

/// A script that notes its name for every sender.
fn signed(name: &str) -> String {
    format!("local note = require('note')\nfunction inbucket.before.mail_from_accepted() note('{name}') end\n")
}

#[test]
fn the_script_is_found_where_it_is_said_to_be_or_usually_is() {
    type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a [(&'a str, &'a str)], &'a str);
    let table: [Case<'_>; 10] = [
        (&["inbucket.lua"], &[], &[], "inbucket.lua"),
        (&["restante.lua"], &[], &[], "restante.lua"),
        (&["inbucket.lua", "restante.lua"], &[], &[], "restante.lua"),
        (&["inbucket.lua", "mine.lua"], &["--lua-path", "mine.lua"], &[], "mine.lua"),
        (&["inbucket.lua", "mine.lua"], &[], &[("INBUCKET_LUA_PATH", "mine.lua")], "mine.lua"),
        (
            &["inbucket.lua", "mine.lua"],
            &[],
            &[("RESTANTE_LUA_PATH", "mine.lua"), ("INBUCKET_LUA_PATH", "inbucket.lua")],
            "mine.lua",
        ),
        (&["lib/deep.lua"], &[], &[("INBUCKET_LUA_PATH", "lib/deep.lua")], "lib/deep.lua"),
        (
            &["mine.lua", "inbucket.lua"],
            &["--lua-path", "mine.lua"],
            &[("INBUCKET_LUA_PATH", "inbucket.lua")],
            "mine.lua",
        ),
        (&["mine.lua", "yours.lua"], &["--lua-path", "none.lua,yours.lua,mine.lua"], &[], "yours.lua"),
        (&["mine.lua"], &["--lua-path", "lib,mine.lua"], &[], "mine.lua"),
    ];
    for (files, arguments, environment, used) in table {
        let folder = Folder::empty("found");
        for file in files {
            folder.write(file, &signed(file));
        }
        folder.write("lib/note.lua", "return dofile('note.lua')");
        let mut server = Server::spawn(folder.command().args(arguments).envs(environment.iter().copied()));
        server.talk().open_mail("bob@x.org");
        assert_eq!(folder.notes(1), [used], "{files:?} {arguments:?} {environment:?}");
        server.logged(&format!("script {used}: before.mail_from_accepted"));
        server.signal("TERM");
        assert!(server.wait().success());
        let log = server.whole_log();
        let warnings = usize::from(files.len() == 2 && arguments.is_empty() && environment.is_empty());
        assert_eq!(log.matches("there are two scripts; one is ignored").count(), warnings, "{log}");
    }
}

#[test]
fn without_the_file_there_is_no_script() {
    for paths in [None, Some("missing.lua"), Some("missing.lua,lib")] {
        let folder = Folder::empty("missing");
        let mut command = folder.command();
        command.args(paths.map(|paths| format!("--lua-path={paths}")));
        let mut server = Server::spawn(&mut command);
        send(&server, "bob@x.org", "hi");
        assert_eq!(server.count("bob"), 1);
        assert!(metric(&server, "loaded").abs() < 1e-9);
        server.signal("TERM");
        assert!(server.wait().success());
        let log = server.whole_log();
        match paths {
            Some(paths) => {
                let told = format!("there is no script: no such file: {}", paths.replace(',', ", "));
                assert!(log.contains(&told), "{log}");
            }
            None => assert!(!log.contains("there is no script"), "{log}"),
        }
    }
}

#[test]
fn an_empty_list_of_files_switches_scripts_off() {
    let folder = Folder::empty("off");
    folder.write("inbucket.lua", "error('this must not run')");
    let mut by_flag = folder.command();
    let mut by_variable = folder.command();
    for command in [by_flag.arg("--lua-path="), by_variable.env("INBUCKET_LUA_PATH", "")] {
        let server = Server::spawn(command);
        assert!(metric(&server, "loaded").abs() < 1e-9);
    }
}

#[test]
fn a_script_with_a_mistake_stops_the_start() {
    let table = [
        ("local x = 1\nfunction f(\n", "rules.lua:3: "),
        ("\nfunction inbucket.before.no_such_event() end", "rules.lua:2: there is no event before.no_such_event"),
        ("function restante.after.mail_from_accepted() end", "rules.lua:1: there is no event after.mail_from_accepted"),
        ("function inbucket.during.mail_from_accepted() end", "rules.lua:1: "),
        ("\n\ninbucket.during = {}", "rules.lua:3: attempt to set field 'during' of inbucket"),
        ("inbucket.before.message_stored = 'yes'", "rules.lua:1: inbucket.before.message_stored must be a function"),
        ("\nerror('not today')", "rules.lua:2: not today"),
        ("\n\nlocal x = nil + 1", "rules.lua:3: attempt to perform arithmetic"),
        ("require('nowhere')", "module 'nowhere' not found"),
        ("require('lib.broken')", "lib/broken.lua:2: "),
        ("\nlocal t = {}\nwhile true do t[#t + 1] = {} end", "rules.lua:3: needs more than 1024 KiB of memory"),
        ("\u{1b}Lua", "rules.lua"),
    ];
    let mut seen = String::new();
    for (script, problem) in table {
        let folder = Folder::new("mistakes", script);
        folder.write("lib/broken.lua", "\nnonsense");
        let limits = ["--lua-path", "rules.lua", "--lua-memorykb", "1024"];
        match Server::try_spawn(folder.command().args(limits)) {
            Ok(_) => panic!("it starts with {script}"),
            Err((status, log)) => {
                assert_eq!(status.code(), Some(2), "{log}");
                assert!(log.contains(problem), "{script}: {log}");
                writeln!(seen, "{log}").unwrap();
            }
        }
    }
    assert!(!seen.contains("listening"), "{seen}");
}

#[test]
fn a_script_that_takes_too_long_may_be_quicker_at_the_next_start() {
    for script in ["while true do end", "io.popen('exec sleep 60 2>/dev/null'):close()"] {
        let folder = Folder::new("slow", script);
        let limits = ["--lua-path", "rules.lua", "--lua-timeout", "300ms"];
        let Err((status, log)) = Server::try_spawn(folder.command().args(limits)) else {
            panic!("it starts with {script}");
        };
        assert_eq!(status.code(), Some(1), "{log}");
        assert!(log.contains("rules.lua"), "{script}: {log}");
    }
}

#[test]
fn who_wants_the_end_does_not_wait_for_a_script_that_is_being_loaded() {
    for signal in ["TERM", "INT"] {
        // The shell is a child of the server. As long as it lives, there is more of the log to come.
        let script = format!("os.execute('kill -{signal} $PPID; exec sleep 3600')");
        let folder = Folder::new("impatient", &script);
        let limits = ["--lua-path", "rules.lua", "--lua-timeout", "1h"];
        let Err((status, log)) = Server::try_spawn(folder.command().args(limits)) else {
            panic!("it starts with {script}");
        };
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(log.contains("shutting down"), "{log}");
    }
}
