//! The program as a replacement for Mailpit: flags, variables, log lines and commands.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use restante::mailpit::render_options;
use restante_testdir::TestDir;

use crate::support::Server;

/// The program under the name `mailpit`, in a directory that is removed with it.
struct Mailpit {
    dir: TestDir,
}

impl Mailpit {
    fn new() -> Self {
        let dir = TestDir::new();
        symlink(env!("CARGO_BIN_EXE_restante"), dir.path().join("mailpit")).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the program with an empty environment.
    fn command(&self) -> Command {
        let mut command = Command::new(self.path("mailpit"));
        command.env_clear().env("USER", "tester").stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Returns the server on free ports, with its log on standard error.
    fn server(&self) -> Command {
        let mut command = self.command();
        command.args(["--smtp", "127.0.0.1:0", "--listen", "127.0.0.1:0"]);
        command.env("RESTANTE_LOGFILE", "stderr").stderr(Stdio::piped());
        command
    }

    /// Runs a command with this input. Returns the exit code, standard output and standard error.
    fn run(&self, args: &[&str], env: &[(&str, &str)], input: &str) -> (i32, String, String) {
        self.run_as("mailpit", args, env, input)
    }

    /// Runs the program under another name.
    fn run_as(&self, name: &str, args: &[&str], env: &[(&str, &str)], input: &str) -> (i32, String, String) {
        let path = self.path(name);
        if !path.exists() {
            symlink("mailpit", &path).unwrap();
        }
        let mut command = Command::new(path);
        command.env_clear().env("USER", "tester").args(args).envs(env.iter().copied());
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that has already failed does not read it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }
}

#[test]
fn ready_line_is_on_standard_output() {
    let mailpit = Mailpit::new();
    let with_flag = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_restante"));
        command.env_clear().args(["--as", "mailpit"]);
        command
    };
    for mut command in [mailpit.command(), with_flag()] {
        command.env("MP_WEBROOT", "/mp/").env("MP_UI_BIND_ADDR", "127.0.0.1:0");
        let command = command.args(["-s", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = Vec::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            lines.push(line);
            if lines.last().is_some_and(|line| line.contains("accessible via")) {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let ready = lines.last().unwrap();
        let (_, url) = ready.split_once(" [http] accessible via ").unwrap_or_else(|| panic!("{lines:?}"));
        assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/mp/"), "{url}");
        assert!(
            lines.iter().any(|line| line.ends_with("[smtpd] starting on 127.0.0.1:0 (no encryption)")),
            "{lines:?}"
        );
    }
}

#[test]
fn readyz_and_sendmail_use_the_server() {
    let mailpit = Mailpit::new();
    let mut server = Server::spawn(mailpit.server().env("MP_WEBROOT", "mp"));
    server.wait_for_log("[http] accessible via ");
    let (web, smtp) = (server.http.to_string(), server.smtp.to_string());

    assert_eq!(mailpit.run(&["readyz", "-l", &web, "--webroot", "/mp"], &[], ""), (0, String::new(), String::new()));
    let env = [("MP_UI_BIND_ADDR", web.as_str()), ("MP_WEBROOT", "mp")];
    assert_eq!(mailpit.run(&["readyz", "--wait", "--timeout=10s"], &env, "").0, 0);
    let (code, _, stderr) = mailpit.run(&["readyz", "-l", &web, "--webroot", "other"], &[], "");
    assert!(code == 1 && stderr.contains("responds with 404"), "{stderr}");
    assert_eq!(mailpit.run(&["readyz", "--listen", "nowhere"], &[], "").0, 1);
    // The settings of Restante override them, as for the server.
    let env = [("MP_UI_BIND_ADDR", ":1"), ("RESTANTE_WEB_ADDR", web.as_str()), ("RESTANTE_WEB_BASEPATH", "mp")];
    assert_eq!(mailpit.run(&["readyz"], &env, "").0, 0);

    // As PHP calls it.
    let mail = "To: Ann <ann@x.test>\nCc: bob@x.test\nBcc: cid@x.test\nSubject: hello\n\ntext\n";
    let sent = mailpit.run(&["sendmail", "-t", "-i", "--smtp-addr", &smtp, "-f", "app@x.test"], &[], mail);
    assert_eq!(sent, (0, String::new(), String::new()));
    let message = &server.json("/mp/api/v2/messages")["messages"][0];
    assert_eq!(message["recipients"], serde_json::json!(["ann@x.test", "bob@x.test", "cid@x.test"]));
    assert_eq!(message["subject"], "hello");

    // The sender of the envelope can have a name, or only a local part.
    for (from, sender) in [("App <app2@x.test>", "app2@x.test"), ("<app3@x.test>", "app3@x.test")] {
        assert_eq!(mailpit.run(&["sendmail", "-S", &smtp, "-f", from], &[], mail).0, 0, "{from}");
        assert_eq!(server.json("/mp/api/v2/messages/latest")["sender"], sender);
    }
    for from in ["", "<>", "a@x.test, b@x.test"] {
        let (code, _, stderr) = mailpit.run(&["sendmail", "-S", &smtp, &format!("--from={from}")], &[], mail);
        assert!(code == 11 && stderr.contains("is not a"), "{from:?} {code} {stderr}");
    }

    // Recipients on the command line replace those of the header.
    let env = [("MP_SENDMAIL_SMTP_ADDR", smtp.as_str())];
    assert_eq!(mailpit.run(&["sendmail", "dora@x.test"], &env, mail).0, 0);
    assert_eq!(server.json("/mp/api/v2/messages")["messages"][0]["recipients"], serde_json::json!(["dora@x.test"]));
    let (code, replies, _) = mailpit.run(&["sendmail", "-bs"], &env, "NOOP\r\nQUIT\r\n");
    assert!(code == 0 && replies.starts_with("220 ") && replies.ends_with("221 2.0.0 Bye\r\n"), "{replies}");

    let (code, _, stderr) = mailpit.run(&["sendmail"], &env, "Subject: x\n\n");
    assert!(code == 1 && stderr.contains("no recipients"), "{stderr}");
    let (code, _, stderr) = mailpit.run(&["sendmail", "dora@x.test"], &env, "Hello\n\ntext\n");
    assert!(code == 11 && stderr.contains("\"Hello\" is not a header field"), "{stderr}");
    assert_eq!(mailpit.run(&["sendmail", "-t"], &[("MP_SENDMAIL_SMTP_ADDR", "127.0.0.1:1")], mail).0, 1);
}

#[test]
fn sendmail_uses_the_name_of_the_user_without_variables() {
    let mailpit = Mailpit::new();
    let server = Server::spawn(&mut mailpit.server());
    let id = Command::new("id").arg("-un").output().unwrap();
    // The user of a container may have no name.
    let user = if id.status.success() { String::from_utf8(id.stdout).unwrap() } else { "nobody".to_owned() };
    let smtp = server.smtp.to_string();
    let mail = "To: ann@x.test\n\ntext\n";
    for (name, args) in [("mailpit", &["sendmail", "-S", &smtp][..]), ("sendmail", &["-t", "-S", &smtp])] {
        // Empty variables count as missing.
        assert_eq!(mailpit.run_as(name, args, &[("USER", "")], mail), (0, String::new(), String::new()));
        let sender = server.json("/api/v2/messages/latest")["sender"].to_string();
        assert!(sender.starts_with(&format!("\"{}@", user.trim())), "{name} {sender}");
    }
}

#[test]
fn sendmail_has_other_names() {
    let mailpit = Mailpit::new();
    let addr = format!("unix:{}", mailpit.path("smtp.sock").display());
    let mut server = Server::spawn(mailpit.server().env("RESTANTE_SMTP_ADDR", format!("127.0.0.1:0,{addr}")));
    server.wait_for_log("[http] accessible via ");
    let (smtp, web) = (server.smtp.to_string(), server.url(""));
    let mail = "From: bob@x.test\nTo: ann@x.test\nSubject: hello\n\ntext\n";
    let (here, nowhere) = (("MP_SENDMAIL_SMTP_ADDR", smtp.as_str()), ("MP_SENDMAIL_SMTP_ADDR", "127.0.0.1:1"));

    // Names with both words are the command of Mailpit.
    for name in ["mailpit-sendmail", "Mailpit_send"] {
        assert_eq!(mailpit.run_as(name, &["-S", &smtp], &[], mail), (0, String::new(), String::new()), "{name}");
        let (code, _, stderr) = mailpit.run_as(name, &["-t"], &[nowhere], mail);
        assert!(code == 1 && stderr.contains("127.0.0.1:1 cannot be reached"), "{stderr}");
    }
    assert_eq!(server.count("ann"), 2);

    // The name sendmail is that of Restante, with the options of Mailpit that select the server and the sender.
    let cases: &[Case<'_>] = &[
        (&["-t", "-S", &smtp], &[], "bob@x.test"),
        (&["-t", "--smtp-addr", &smtp, "-v", "--verbose"], &[nowhere], "bob@x.test"),
        (&["-t", "--smtp-addr", &addr, "--from", "App <app@x.test>"], &[], "app@x.test"),
        (&["-t"], &[here, ("MP_SENDMAIL_FROM", "App <app2@x.test>")], "app2@x.test"),
        (&["-t", "-f", "app3@x.test"], &[here, ("MP_SENDMAIL_FROM", "app2@x.test")], "app3@x.test"),
        (&["-t"], &[nowhere, ("RESTANTE_SMTP", &smtp)], "bob@x.test"),
        (&["-t"], &[nowhere, ("RESTANTE_SERVER", &web)], "bob@x.test"),
    ];
    for (args, env, sender) in cases {
        let before = server.count("ann");
        assert_eq!(mailpit.run_as("sendmail", args, env, mail), (0, String::new(), String::new()), "{args:?} {env:?}");
        assert_eq!(server.count("ann"), before + 1, "{args:?} {env:?}");
        assert_eq!(server.json("/api/v2/messages/latest")["sender"], *sender, "{args:?} {env:?}");
    }
    let (code, replies, _) = mailpit.run_as("sendmail", &["-bs"], &[here], "NOOP\r\nQUIT\r\n");
    assert!(code == 0 && replies.starts_with("220 ") && replies.ends_with("221 2.0.0 Bye\r\n"), "{replies}");
    let (code, _, stderr) = mailpit.run_as("sendmail", &["-bs"], &[nowhere], "QUIT\r\n");
    assert!(code == 75 && stderr.contains("127.0.0.1:1 cannot be reached"), "{code} {stderr}");
}

#[test]
fn sendmail_uses_unix_sockets() {
    let mailpit = Mailpit::new();
    let addr = format!("unix:{}", mailpit.path("smtp.sock").display());
    let mut server = Server::spawn(mailpit.server().env("RESTANTE_SMTP_ADDR", format!("127.0.0.1:0,{addr}")));
    server.wait_for_log("[http] accessible via ");
    let mail = "To: ann@x.test\nSubject: hello\n\ntext\n";
    assert_eq!(mailpit.run(&["sendmail", "--smtp-addr", &addr], &[], mail), (0, String::new(), String::new()));
    assert_eq!(server.count("ann"), 1);
    let (code, replies, _) = mailpit.run(&["sendmail", "-bs", "-S", &addr], &[], "NOOP\r\nQUIT\r\n");
    assert!(code == 0 && replies.starts_with("220 ") && replies.ends_with("221 2.0.0 Bye\r\n"), "{replies}");
    let (code, _, stderr) = mailpit.run(&["sendmail", "-S", "unix:/nowhere/smtp.sock"], &[], mail);
    assert!(code == 1 && stderr.contains("unix:/nowhere/smtp.sock cannot be reached"), "{stderr}");
}

#[test]
fn sockets_have_the_mode_of_their_address() {
    let mailpit = Mailpit::new();
    let socket = |name: &str, mode: &str| format!("unix:{}:{mode}", mailpit.path(name).display());
    let (web, smtp) = (socket("web.sock", "0600"), socket("smtp.sock", "660"));
    let mut server = mailpit.command().args(["--listen", &web, "--smtp", &smtp]).spawn().unwrap();
    let (code, _, stderr) = mailpit.run(&["readyz", "--wait", "--timeout", "120s", "--listen", &web], &[], "");
    let mode = |name: &str| std::fs::metadata(mailpit.path(name)).map(|file| file.permissions().mode() & 0o777).ok();
    let modes = (mode("web.sock"), mode("smtp.sock"));
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!((code, modes), (0, (Some(0o600), Some(0o660))), "{stderr}");

    let (code, _, stderr) = mailpit.run(&["--listen", &socket("web.sock", "0888")], &[], "");
    assert!(code == 1 && stderr.contains("(flag --listen): ") && stderr.contains("invalid mode"), "{stderr}");
}

#[test]
fn logins_are_limited_to_the_given_users() {
    let mailpit = Mailpit::new();
    let server =
        Server::spawn(mailpit.server().env("MP_SMTP_AUTH", "u1:p1 u2:p,2").env("MP_SMTP_AUTH_ALLOW_INSECURE", "1"));
    let mut client = server.connect_smtp();
    client.expect("220");
    client.command("EHLO client.test", "250");
    client.command("MAIL FROM:<a@x.test>", "530");
    // u1 with a wrong password, then u2.
    client.command("AUTH PLAIN AHUxAHg=", "535");
    client.command("AUTH PLAIN AHUyAHAsMg==", "235");
    client.command("MAIL FROM:<a@x.test>", "250");
}

#[test]
fn script_in_the_working_directory_is_not_loaded() {
    let mailpit = Mailpit::new();
    std::fs::write(mailpit.path("restante.lua"), "error('this must not run')").unwrap();
    let mut server = Server::spawn(mailpit.server().current_dir(mailpit.dir.path()));
    server.wait_for_log(
        "restante.lua is not loaded, because the server runs as mailpit: to load it, set RESTANTE_LUA_PATH",
    );

    std::fs::write(mailpit.path("restante.lua"), "function restante.after.message_stored() end").unwrap();
    let mut server =
        Server::spawn(mailpit.server().current_dir(mailpit.dir.path()).env("RESTANTE_LUA_PATH", "restante.lua"));
    server.wait_for_log("script restante.lua: after.message_stored");
}

#[test]
fn variables_become_settings() {
    let mailpit = Mailpit::new();
    let mut server = Server::spawn(
        mailpit
            .server()
            .args(["--smtp-allowed-recipients", "@ok[.]test$", "--smtp-max-recipients=1"])
            .env("MP_POP3_AUTH", "ann:secret")
            .env("MP_POP3_BIND_ADDR", "127.0.0.1:0")
            .env("MP_UI_AUTH", "admin:secret"),
    );
    server.wait_for_log("POP3 listening on tcp4 127.0.0.1:");
    let mut client = server.connect_smtp();
    client.expect("220");
    client.command("EHLO client.test", "250");
    client.command("MAIL FROM:<a@x.test>", "250");
    client.command("RCPT TO:<b@other.test>", "550");
    client.command("RCPT TO:<b@ok.test>", "250");
    client.command("RCPT TO:<c@ok.test>", "452");
    let status = |credentials: Option<&str>| {
        let request = ureq::get(server.url("/api/v2/messages")).config().http_status_as_error(false).build();
        let request = match credentials {
            Some(credentials) => request.header("Authorization", format!("Basic {credentials}")),
            None => request,
        };
        request.call().unwrap().status().as_u16()
    };
    assert_eq!((status(None), status(Some("YWRtaW46c2VjcmV0"))), (401, 200));
    assert_eq!(mailpit.run(&["readyz", "-l", &server.http.to_string()], &[], "").0, 0);
}

#[test]
fn allowed_hosts_are_accepted() {
    let mailpit = Mailpit::new();
    let hosts = "mail.example.test, Web.example.test:8025,[::1],127.0.0.1:80";
    let server = Server::spawn(mailpit.server().env("MP_ALLOWED_HOSTS", hosts));
    let status = |host: &str| {
        let request = ureq::get(server.url("/api/v1/messages")).config().http_status_as_error(false).build();
        request.header("Host", host).call().unwrap().status().as_u16()
    };
    for host in ["mail.example.test", "MAIL.example.test:1234", "web.example.test", "localhost", "127.0.0.1", "[::1]"] {
        assert_eq!(status(host), 200, "{host}");
    }
    assert_eq!(status("evil.example.test"), 421);
    let wrong = mailpit.server().args(["--allowed-hosts", "a/b"]).output().unwrap();
    let stderr = String::from_utf8(wrong.stderr).unwrap();
    assert!(!wrong.status.success() && stderr.contains("--allowed-hosts") && stderr.contains("a/b"), "{stderr}");
}

#[test]
fn tags_come_from_the_plus_addresses_of_the_header() {
    let mailpit = Mailpit::new();
    let mail = b"From: Ann <ann+news@x.test>\r\nTo: bob+list@x.test\r\nX-Tags: header\r\n\r\ntext\r\n";
    let table =
        [("", vec!["header", "list", "news"]), ("plus-addresses", vec!["header"]), ("x-tags", vec!["list", "news"])];
    for (disabled, expected) in table {
        let mut command = mailpit.server();
        if !disabled.is_empty() {
            command.env("MP_TAGS_DISABLE", disabled);
        }
        let server = Server::spawn(&mut command);
        server.deliver("bob@x.test", mail);
        assert_eq!(server.json("/api/v1/message/latest")["Tags"], serde_json::json!(expected), "{disabled}");
    }
    // Our own default considers only the recipients of the envelope.
    let server = Server::start(&[]);
    server.deliver("bob@x.test", mail);
    assert_eq!(server.json("/api/v1/message/latest")["Tags"], serde_json::json!(["header"]));
}

#[test]
fn database_of_mailpit_is_not_touched() {
    let mailpit = Mailpit::new();
    let database = mailpit.path("mailpit.db");
    let content = b"SQLite format 3\0 and more";
    std::fs::write(&database, content).unwrap();
    let mut server = Server::spawn(mailpit.server().arg("-d").arg(&database));
    let warning = server.wait_for_log("is not used");
    let expected = format!("restante import --from {} --data ", database.display());
    assert!(warning.contains(&expected) && warning.contains("MP_MAX_MESSAGES"), "{warning}");
    server.deliver("ann@x.test", b"Subject: x\r\n\r\ny\r\n");
    drop(server);
    assert_eq!(std::fs::read(&database).unwrap(), content);
    // The messages are in a directory beside it.
    let mut server = Server::spawn(mailpit.server().env("MP_DATABASE", &database));
    assert_eq!(server.count("ann"), 1);
    assert!(mailpit.path("mailpit.restante").is_dir());
    // The warning is not repeated.
    server.signal("TERM");
    server.wait();
    let log = server.full_log();
    assert!(!log.contains("is not used"), "{log}");
}

#[test]
fn tenants_have_separate_data_directories() {
    let mailpit = Mailpit::new();
    let database = mailpit.path("mailpit.db");
    let start = |tenant: &str| {
        let mut command = mailpit.server();
        Server::spawn(command.env("MP_DATABASE", &database).env("MP_TENANT_ID", tenant))
    };
    // Both run at the same time.
    let servers = ["acme", "Other Ltd"].map(start);
    servers[0].deliver("ann@x.test", b"Subject: x\r\n\r\ny\r\n");
    assert_eq!(servers.each_ref().map(|server| server.count("ann")), [1, 0]);
    drop(servers);
    assert_eq!(start("ACME_").count("ann"), 1);
    for name in ["mailpit@acme.restante", "mailpit@other_ltd.restante"] {
        assert!(mailpit.path(name).is_dir(), "{name}");
    }
    assert!(!mailpit.path("mailpit.restante").exists());
}

#[test]
fn the_warning_names_the_import_of_the_tenant() {
    let mailpit = Mailpit::new();
    let database = mailpit.path("mailpit.db");
    std::fs::write(&database, b"SQLite format 3\0 and more").unwrap();
    let mut server = Server::spawn(mailpit.server().env("MP_DATABASE", &database).env("MP_TENANT_ID", "Other Ltd"));
    let warning = server.wait_for_log("is not used");
    let directory = mailpit.path("mailpit@other_ltd.restante");
    let (database, directory) = (database.display(), directory.display());
    let expected = format!("run restante import --from {database} --tenant other_ltd_ --data {directory};");
    assert!(warning.contains(&expected), "{warning}");
}

#[test]
fn variables_without_effect_cause_one_warning() {
    let mailpit = Mailpit::new();
    let mut server = Server::spawn(
        mailpit
            .server()
            .env("MP_SMTP_RELAY_PORT", "25")
            .env("MP_SMTP_RELAY_ALL", "false")
            .env("MP_SMTP_RELAY_AUTH", "none")
            .env("MP_SMTP_RELAY_STARTTLS", "false")
            .env("MP_SMTP_RELAY_TLS", "false")
            .env("MP_SMTP_RELAY_ALLOW_INSECURE", "false")
            .env("MP_SMTP_RELAY_FWD_SMTP_ERRORS", "true")
            .env("MP_SMTP_DISABLE_RDNS", "true")
            .env("MP_NEW_IN_THE_FUTURE", "1")
            .env("MP_SMTP_TLS_REQUIRED", "false"),
    );
    server.signal("TERM");
    server.wait();
    let log = server.full_log();
    let expected = [
        "no effect because messages are relayed after they were accepted: variable MP_SMTP_RELAY_FWD_SMTP_ERRORS",
        "unknown variables are ignored: MP_NEW_IN_THE_FUTURE",
        "variable MP_SMTP_TLS_REQUIRED is deprecated: use MP_SMTP_REQUIRE_STARTTLS",
    ];
    for line in expected {
        assert_eq!(log.matches(line).count(), 1, "{line}\n{log}");
    }
    assert!(!log.contains("RDNS") && log.matches("RELAY").count() == 1, "{log}");
}

#[test]
fn messages_are_relayed_forwarded_and_released() {
    let (mailpit, receiver) = (Mailpit::new(), Server::start(&[]));
    let port = receiver.smtp.port().to_string();
    let file = mailpit.path("forward.yml");
    std::fs::write(&file, format!("# all messages\nto: team@x.test\nhost: 127.0.0.1\nport: {port}\n")).unwrap();
    let server = Server::spawn(
        mailpit
            .server()
            .args(["--smtp-relay-matching", "^auto@"])
            .env("MP_SMTP_FORWARD_CONFIG", &file)
            .env("MP_SMTP_RELAY_HOST", "127.0.0.1")
            .env("MP_SMTP_RELAY_PORT", &port)
            .env("MP_SMTP_RELAY_BLOCKED_RECIPIENTS", "^boss@"),
    );
    let wait_for = |expected: [usize; 4]| {
        let counts = || ["auto", "bob", "team", "qa"].map(|mailbox| receiver.count(mailbox));
        let deadline = Instant::now() + Duration::from_mins(1);
        while counts() != expected {
            assert!(Instant::now() < deadline, "{:?}, expected {expected:?}", counts());
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    server.deliver("auto@x.test", b"From: ann@x.test\r\nSubject: 1\r\n\r\nHello\r\n");
    wait_for([1, 0, 1, 0]);
    server.deliver("bob@x.test", b"From: ann@x.test\r\nSubject: 2\r\n\r\nHello\r\n");
    wait_for([1, 0, 2, 0]);

    let id = server.json("/api/v1/messages")["messages"][0]["ID"].as_str().unwrap().to_owned();
    let release = |to: &str| {
        let request = ureq::post(server.url(&format!("/api/v1/message/{id}/release")));
        let request = request.config().http_status_as_error(false).build();
        let mut response = request.send(format!("{{\"To\":[\"{to}\"]}}")).unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    };
    assert_eq!(release("boss@y.test"), (400, "Failed: 1 Address found on blocklist: boss@y.test".to_owned()));
    assert_eq!(release("qa@y.test"), (200, "ok".to_owned()));
    wait_for([1, 0, 2, 1]);
    let relay = &server.json("/api/v1/webui")["MessageRelay"];
    assert_eq!((&relay["Enabled"], &relay["SMTPServer"]), (&true.into(), &format!("127.0.0.1:{port}").into()));
}

/// Arguments, variables, and a part of the error.
type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], &'a str);

#[test]
fn wrong_values_are_errors() {
    let mailpit = Mailpit::new();
    let cases: &[Case<'_>] = &[
        (&["--nope"], &[], "Error: unknown flag: --nope\n"),
        (&["foo"], &[], "Error: unknown command \"foo\" for \"mailpit\"\n"),
        (&["--quiet", "foo"], &[], "Error: unknown command \"foo\" for \"mailpit\"\n"),
        (&["--smtp"], &[], "Error: flag needs an argument: --smtp\n"),
        (&["dump"], &[], "use restante export"),
        (&["ingest", "x"], &[], "use restante import"),
        (&["--max", "abc"], &[], "flag --max = \"abc\": must be a whole number"),
        (&[], &[("MP_MAX_MESSAGES", "abc")], "variable MP_MAX_MESSAGES = \"abc\": must be a whole number"),
        (&[], &[("MP_MAX_AGE", "3y")], "= \"3y\" (variable MP_MAX_AGE): must be a duration such as"),
        (&[], &[("MP_VERBOSE", "maybe")], "variable MP_VERBOSE = \"maybe\": must be true or false"),
        (&[], &[("MP_UI_BIND_ADDR", "8025")], "variable MP_UI_BIND_ADDR = \"8025\": must be an address and a port"),
        (&[], &[("MP_WEBROOT", "a b")], "web.basepath = \"a b\" (variable MP_WEBROOT): must be a path"),
        (&[], &[("MP_SMTP_ALLOWED_RECIPIENTS", "(")], "(variable MP_SMTP_ALLOWED_RECIPIENTS): must be a regular"),
        (&[], &[("MP_DATABASE", "http://user:secret@db:4001")], "variable MP_DATABASE: must be the path"),
        (&[], &[("MP_SMTP_AUTH", "a:b")], "logins by SMTP need TLS: set MP_SMTP_TLS_CERT"),
        (&["--smtp-auth-accept-any"], &[], "logins by SMTP need TLS"),
        (&["--smtp-require-tls"], &[], "TLS cannot be required without a certificate"),
        (&["--smtp-tls-cert", "sans:localhost"], &[], "--smtp-tls-cert and --smtp-tls-key must be given together"),
        (&["--ui-auth-file", "/nowhere"], &[], "flag --ui-auth-file = \"/nowhere\": the password file cannot be read"),
        (&["--smtp-relay-all"], &[], "messages can be relayed only with a relay: set MP_SMTP_RELAY_HOST"),
        (&["--smtp-relay-config", "/nowhere"], &[], "flag --smtp-relay-config = \"/nowhere\": the file cannot be read"),
        (
            &["--smtp-relay-matching", "("],
            &[("MP_SMTP_RELAY_HOST", "mx.example.org")],
            "relay.forward = \"relay recipients=/%28/\" (variable MP_SMTP_RELAY_HOST): entry 1 has an invalid regular",
        ),
        (
            &["--smtp-auth-accept-any", "--smtp-auth-allow-insecure"],
            &[("MP_SMTP_AUTH", "a:b")],
            "(flag --smtp-auth-accept-any): cannot be combined with smtp.credentials",
        ),
        (
            &["--smtp-auth-allow-insecure"],
            &[("MP_SMTP_AUTH", "secret")],
            "smtp.credentials = \"***\" (variable MP_SMTP_AUTH)",
        ),
    ];
    for (args, env, expected) in cases {
        let (code, out, stderr) = mailpit.run(args, env, "");
        assert!(code == 1 && out.is_empty() && stderr.contains(expected), "{args:?} {env:?} {code} {out} {stderr}");
        assert!(!stderr.contains("secret"), "{stderr}");
    }
}

#[test]
fn passwords_without_entries_are_errors() {
    let mailpit = Mailpit::new();
    let file = mailpit.path("passwords");
    std::fs::write(&file, " \n\t\n").unwrap();
    let file = file.to_str().unwrap();
    let no_entries = "must contain at least one USER:PASSWORD";
    let cases: &[Case<'_>] = &[
        (&["--ui-auth-file", file], &[], "flag --ui-auth-file = "),
        (&["--smtp-auth-file", file, "--smtp-auth-allow-insecure"], &[], "flag --smtp-auth-file = "),
        (&["--pop3-auth-file", file], &[], "flag --pop3-auth-file = "),
        (&[], &[("MP_UI_AUTH_FILE", file)], "variable MP_UI_AUTH_FILE = "),
        (&[], &[("MP_UI_AUTH", "")], "variable MP_UI_AUTH = \"\""),
        (&[], &[("MP_SMTP_AUTH", " ")], "variable MP_SMTP_AUTH = \" \""),
        (&[], &[("MP_POP3_AUTH", "")], "variable MP_POP3_AUTH = \"\""),
    ];
    for (args, env, expected) in cases {
        let (code, _, stderr) = mailpit.run(args, env, "");
        assert!(code == 1 && stderr.contains(expected) && stderr.contains(no_entries), "{args:?} {env:?} {stderr}");
    }
    let (code, _, stderr) = mailpit.run(&[], &[("MP_UI_AUTH_FILE", "")], "");
    assert!(code == 1 && stderr.contains("variable MP_UI_AUTH_FILE = \"\": the password file"), "{stderr}");
}

#[test]
fn credentials_for_the_send_api_need_users() {
    let mailpit = Mailpit::new();
    let expected = "MP_SEND_API_AUTH: credentials for the send API alone are not supported: set MP_UI_AUTH";
    for secret in ["", "ann:secret"] {
        let (code, _, stderr) = mailpit.run(&[], &[("MP_SEND_API_AUTH", secret)], "");
        assert!(code == 1 && stderr.contains(expected) && !stderr.contains("secret"), "{stderr}");
    }
    let (code, _, stderr) = mailpit.run(&["--send-api-auth-file", "/nowhere"], &[], "");
    assert!(code == 1 && stderr.contains("flag --send-api-auth-file: credentials for the send API"), "{stderr}");
    for users in ["MP_UI_AUTH", "RESTANTE_AUTH_CREDENTIALS"] {
        let mut server = Server::spawn(mailpit.server().env("MP_SEND_API_AUTH", "ann:secret").env(users, "bob:secret"));
        server.wait_for_log("no effect because POST /api/v1/send accepts the credentials of the web interface");
    }
}

#[test]
fn prints_help_and_version() {
    let mailpit = Mailpit::new();
    for args in [&["--help"][..], &["-h"], &["help"]] {
        let (code, out, _) = mailpit.run(args, &[], "");
        assert!(code == 0 && out.contains("-s, --smtp string") && out.contains("readyz"), "{args:?} {out}");
    }
    let (code, out, _) = mailpit.run(&["version", "--no-release-check"], &[], "");
    assert!(code == 0 && out.contains(env!("CARGO_PKG_VERSION")), "{out}");
    assert!(mailpit.run(&["readyz", "-h"], &[], "").1.contains("--wait"));
    assert!(mailpit.run(&["sendmail", "-h"], &[], "").1.contains("--smtp-addr"));
}

#[test]
fn other_programs_are_refused() {
    for (args, expected) in [
        (&["--as", "postfix"][..], "needs the name of the program to replace: mailpit"),
        (&["--loglevel=warn", "--as=mailpit"], "must be the first argument"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_restante")).args(args).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && stderr.contains(expected), "{args:?} {stderr}");
    }
}

#[test]
fn documented_options_are_up_to_date() {
    let page = include_str!("../../../../../docs/from-mailpit.md");
    let table = render_options();
    assert!(page.contains(&table), "the table of options in docs/from-mailpit.md is outdated, write:\n{table}");
}

#[test]
fn image_has_the_interface_of_the_image_of_mailpit() {
    let dockerfile = include_str!("../../../../../packaging/Dockerfile");
    let stages: Vec<&str> = dockerfile.split("\nFROM ").collect();
    let image = stages.iter().find(|stage| stage.starts_with("scratch AS mailpit\n")).unwrap();
    for line in [
        "COPY --from=build /restante /restante",
        "COPY --from=build /links/ /",
        "VOLUME /data",
        "EXPOSE 1025/tcp 1110/tcp 8025/tcp",
        "ENTRYPOINT [\"/mailpit\"]",
    ] {
        assert!(image.lines().any(|found| found == line), "{line}\n{image}");
    }
    assert!(image.contains("CMD [\"/mailpit\", \"readyz\"]"), "{image}");
    assert!(dockerfile.contains("ln -s restante /links/mailpit\n"), "{dockerfile}");
    // The image without a target is that of the last stage.
    assert!(stages.last().unwrap().contains("ENTRYPOINT [\"/restante\"]"));
}
