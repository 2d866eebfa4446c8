//! Finding the script at startup, and scripts that stop the start.

use std::fmt::Write as _;
use std::process::Command;

use super::folder::{Folder, metric, send};

use crate::support::Server;

/// Returns a script that notes its name for every sender.
fn named_script(name: &str) -> String {
    format!("local note = require('note')\nfunction inbucket.before.mail_from_accepted() note('{name}') end\n")
}

#[test]
fn script_is_found_by_settings_or_default_name() {
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
            folder.write(file, &named_script(file));
        }
        folder.write("lib/note.lua", "return dofile('note.lua')");
        let mut server = Server::spawn(folder.command().args(arguments).envs(environment.iter().copied()));
        server.connect_smtp().start_message("bob@x.org");
        assert_eq!(folder.notes(1), [used], "{files:?} {arguments:?} {environment:?}");
        server.wait_for_log(&format!("script {used}: before.mail_from_accepted"));
        server.signal("TERM");
        assert!(server.wait().success());
        let log = server.full_log();
        let warnings = usize::from(files.len() == 2 && arguments.is_empty() && environment.is_empty());
        assert_eq!(log.matches("there are two scripts, one is ignored").count(), warnings, "{log}");
    }
}

#[test]
fn missing_file_means_no_script() {
    for paths in [None, Some("missing.lua"), Some("missing.lua,lib")] {
        let folder = Folder::empty("missing");
        let mut command = folder.command();
        command.envs(paths.map(|paths| ("INBUCKET_LUA_PATH", paths)));
        let mut server = Server::spawn(&mut command);
        send(&server, "bob@x.org", "hi");
        assert_eq!(server.count("bob"), 1);
        assert!(metric(&server, "loaded").abs() < 1e-9);
        server.signal("TERM");
        assert!(server.wait().success());
        let log = server.full_log();
        match paths {
            Some(paths) => {
                let warning = format!("no script is loaded, none of these files exists: {}", paths.replace(',', ", "));
                assert!(log.contains(&warning), "{log}");
            }
            None => assert!(!log.contains("no script is loaded"), "{log}"),
        }
    }
}

#[test]
fn missing_script_that_is_configured_stops_the_start() {
    let folder = Folder::empty("configured");
    folder.write("restante.toml", "[lua]\npath = \"rules.lua\"\n");
    let table = [
        (&["--lua-path=no.lua"][..], None, "lua.path = \"no.lua\" (flag --lua-path): there is no such file\n"),
        (&["--lua-path=no.lua,lib"], None, "lua.path = \"no.lua,lib\" (flag --lua-path): none of these files exists\n"),
        (&[], Some("no.lua"), "lua.path = \"no.lua\" (variable RESTANTE_LUA_PATH): there is no such file\n"),
        (&["--config=restante.toml"], None, "lua.path = \"rules.lua\" (file restante.toml:2): there is no such file\n"),
    ];
    for (arguments, variable, problem) in table {
        let mut command = folder.command();
        command.args(arguments).envs(variable.map(|value| ("RESTANTE_LUA_PATH", value)));
        let output = command.output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{log}");
        assert!(log.contains(problem), "{log}");
    }
    let default = folder.command().args(["--lua-path=restante.lua,inbucket.lua", "config", "check"]).output().unwrap();
    assert_eq!(default.status.code(), Some(0), "{default:?}");
}

#[test]
fn empty_script_path_disables_scripts() {
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
fn default_script_that_others_may_write_is_not_loaded() {
    for (file, mode, reason) in [
        ("restante.lua", 0o666, "restante.lua: the file has the mode 0666, so other users may write it"),
        ("", 0o1777, "restante.lua: its directory has the mode 1777, so other users may write it"),
    ] {
        let folder = Folder::empty("untrusted");
        folder.write("restante.lua", &named_script("ran"));
        folder.set_mode(file, mode);
        let mut server = Server::spawn(&mut folder.command());
        server.wait_for_log(&format!("no script is loaded: {reason}"));
        send(&server, "bob@x.org", "hi");
        assert!(metric(&server, "loaded").abs() < 1e-9);

        let server = Server::spawn(folder.command().args(["--lua-path", "restante.lua"]));
        server.connect_smtp().start_message("bob@x.org");
        assert_eq!(folder.notes(1), ["ran"], "only the second server runs the script");
    }
}

#[test]
fn default_script_loads_no_modules_that_others_may_write() {
    let folder = Folder::empty("module");
    folder.write("lib/rules.lua", "");
    folder.write("restante.lua", "require('lib.rules')");
    folder.set_mode("lib", 0o777);
    let output = folder.command().output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{log}");
    assert!(log.contains("restante.lua:1: ") && log.contains("its directory has the mode 0777"), "{log}");
}

#[test]
fn scripts_load_no_modules_of_the_working_directory() {
    let folder = Folder::empty("elsewhere");
    folder.write("lib/rules.lua", "print('this must not run')");
    folder.set_mode("lib", 0o777);
    for name in ["lib/rules", "./lib/rules", "lib//rules"] {
        folder.write("restante.lua", &format!("require('{name}')"));
        let output = folder.command().output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{log}");
        assert!(log.contains(&format!("module '{name}' not found")) && !log.contains("must not run"), "{log}");
    }
    folder.remove("restante.lua");

    let other = Folder::new("other", "require('lib.rules')");
    let output = folder.command().arg("--lua-path").arg(other.path().join("rules.lua")).output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{log}");
    assert!(log.contains("module 'lib.rules' not found") && !log.contains("must not run"), "{log}");
}

#[test]
fn default_script_that_is_a_fifo_is_not_loaded() {
    let folder = Folder::empty("fifo");
    let fifo = folder.path().join("restante.lua");
    assert!(Command::new("mkfifo").args(["-m", "600"]).arg(fifo).status().unwrap().success());
    let mut server = Server::spawn(&mut folder.command());
    server.wait_for_log("no script is loaded: restante.lua: it is not a regular file");
}

#[test]
fn invalid_script_stops_the_start() {
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
fn script_that_loads_too_slowly_stops_the_start_with_a_retryable_code() {
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
fn signal_stops_the_server_while_a_script_loads() {
    for signal in ["TERM", "INT"] {
        // The shell is a child of the server and keeps the log open while it runs.
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
