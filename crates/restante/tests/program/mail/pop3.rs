//! POP3 with the real program: messages that arrived by SMTP are read and deleted, and the replies agree with the REST API.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::support::disk::Disk;
use crate::support::durability::eventually;
use crate::support::exposition::Exposition;
use crate::support::pop3::{Pop3, digest};
use crate::support::tls::ClientStream;
use crate::support::{LineConnection, Server, command, connect};

const MAIL: &[u8] = b"Subject: Hello\r\n\r\nHi\r\n";
const TLS: [&str; 2] = ["--pop3-tlsenabled", "--pop3-tlscert=self-signed"];

/// Starts a server whose mailbox `james` has `count` messages.
fn with_messages(arguments: &[&str], count: usize) -> Server {
    let server = Server::start(arguments);
    for _ in 0..count {
        server.deliver("james@x.org", MAIL);
    }
    server
}

#[test]
fn retr_returns_the_source() {
    let large = [&b"Subject: large\r\n\r\n"[..], &b".a line of text\r\n".repeat(65_536)].concat();
    let endless = [&b"Subject: one line\r\n\r\n"[..], &b".".repeat(1_000_000)].concat();
    let all_bytes: Vec<u8> = (0..=255).collect();
    let mails: [&[u8]; 14] = [
        MAIL,
        b"Subject: dots\r\n\r\n.\r\n..\r\n...\r\n.hidden\r\nend.\r\n",
        b"Subject: bare LF\n\nline\n.\n..\n.hidden\nend\n",
        b"Subject: smuggled\r\n\r\n\n.\r\n+OK 0 octets\r\n\r.\r\n",
        b"Subject: bare CR\r\rline\r.\r",
        b"Subject: no last line end\r\n\r\nend",
        b"Subject: half a line end\r\n\r\nend\r",
        b"Subject: a dot at the end\r\n\r\n.",
        b"Subject: 8 bits\r\n\r\n\xc3\xa4 \xe4 \xff\xfe\x00\r\n",
        b"",
        b"\r\n",
        &all_bytes,
        &large,
        &endless,
    ];
    let mut server = Server::start(&[]);
    for mail in mails {
        server.deliver("james@x.org", mail);
    }
    let mut pop3 = Pop3::login(&mut server, "james");
    for ((number, id), mail) in (1..).zip(server.ids("james")).zip(mails) {
        let source = server.bytes(&format!("/api/v1/mailbox/james/{id}/source"));
        assert!(source.ends_with(mail));
        assert!(pop3.ok(&format!("LIST {number}")).ends_with(&format!(" {number} {}", source.len())));
        let text = pop3.text(&format!("RETR {number}"));
        // A reply consists of lines, so an incomplete last line is terminated.
        let complete = source.ends_with(b"\r\n");
        let expected = if complete { source } else { [&source[..], b"\r\n"].concat() };
        assert!(text == expected, "{}", String::from_utf8_lossy(mail));
    }
    pop3.quit();
}

#[test]
fn uidl_list_stat_and_top_match_the_rest_api() {
    let mut server = with_messages(&[], 3);
    let mut pop3 = Pop3::login(&mut server, "james");
    assert_eq!(pop3.uidl(), server.ids("james"));
    let list = server.json("/api/v1/mailbox/james");
    let sizes: Vec<u64> = list.as_array().unwrap().iter().map(|message| message["size"].as_u64().unwrap()).collect();
    let listed: Vec<String> = (1..).zip(&sizes).map(|(number, size)| format!("{number} {size}")).collect();
    assert_eq!(pop3.lines("LIST"), listed);
    assert_eq!(pop3.ok("STAT"), format!("+OK 3 {}", sizes.iter().sum::<u64>()));
    let top = pop3.text("TOP 1 0");
    assert!(top.ends_with(b"Subject: Hello\r\n\r\n"), "{}", String::from_utf8_lossy(&top));
    assert!(pop3.text("TOP 1 1").ends_with(b"\r\n\r\nHi\r\n"));
}

#[test]
fn messages_are_deleted_at_quit_only() {
    let mut server = with_messages(&[], 3);
    let ids = server.ids("james");
    let mut pop3 = Pop3::login(&mut server, "james");
    pop3.ok("DELE 1");
    pop3.ok("DELE 3");
    pop3.err("RETR 1");
    assert_eq!(server.count("james"), 3);
    pop3.quit();
    assert_eq!(server.ids("james"), ids[1..2]);
}

#[test]
fn broken_session_deletes_nothing() {
    let mut server = with_messages(&["--pop3-maxconnections=1"], 2);
    let mut pop3 = Pop3::login(&mut server, "james");
    pop3.ok("DELE 1");
    drop(pop3);
    // When another connection is accepted, the previous session has ended.
    let address = server.address_of("POP3 listening on tcp4 ");
    let is_free = || LineConnection::new(connect(address)).line().is_some_and(|line| line.starts_with("+OK"));
    eventually("the session does not end", is_free);
    assert_eq!(server.count("james"), 2);
}

#[test]
fn several_sessions_can_open_a_mailbox() {
    let mut server = with_messages(&[], 3);
    let mut first = Pop3::login(&mut server, "james");
    let mut second = Pop3::login(&mut server, "james");
    first.ok("DELE 1");
    assert_eq!(second.lines("LIST").len(), 3);
    first.quit();
    // The message numbers stay valid, but their messages may be deleted.
    let reply = second.err("RETR 1");
    assert_eq!(second.lines("LIST").len(), 3, "{reply}");
    let id = &server.ids("james")[0];
    ureq::delete(server.url(&format!("/api/v1/mailbox/james/{id}"))).call().unwrap();
    second.err("TOP 2 0");
    second.text("RETR 3");
    // Deleting a message that is already deleted is not an error.
    for number in 1..=3 {
        second.ok(&format!("DELE {number}"));
    }
    second.quit();
    assert_eq!(server.count("james"), 0);
}

#[test]
fn messages_that_arrive_during_a_session_are_in_the_next() {
    let mut server = with_messages(&[], 1);
    let mut pop3 = Pop3::login(&mut server, "james");
    server.deliver("james@x.org", MAIL);
    assert_eq!(pop3.lines("LIST").len(), 1);
    pop3.quit();
    assert_eq!(Pop3::login(&mut server, "james").lines("LIST").len(), 2);
}

#[test]
fn users_are_mailboxes_or_addresses() {
    // The naming, the users that open the mailbox of James+Spam@X.org, and users that open another mailbox.
    let table: [(&str, &[&str], &[&str]); 3] = [
        ("local", &["james", "JAMES", "james+x", "james@y.org"], &["x.org", "jim@x.org"]),
        ("full", &["james@x.org", "James+other@X.ORG"], &["james", "james@y.org"]),
        ("domain", &["x.org", "jim@X.org"], &["james", "james@y.org"]),
    ];
    for (naming, same, other) in table {
        let mut server = Server::start(&["--mailboxnaming", naming]);
        server.deliver("James+Spam@X.org", MAIL);
        for (users, count) in [(same, 1), (other, 0)] {
            for user in users {
                let mut pop3 = Pop3::login(&mut server, user);
                assert_eq!(pop3.uidl().len(), count, "{user} under {naming}");
            }
        }
        let mut pop3 = Pop3::connect(&mut server);
        pop3.ok("USER ..@x.org");
        pop3.err("PASS anything");
    }
}

#[test]
fn any_password_opens_a_mailbox_without_credentials() {
    let mut server = with_messages(&[], 1);
    let mut pop3 = Pop3::connect(&mut server);
    pop3.ok("APOP james 00000000000000000000000000000000");
    assert_eq!(pop3.uidl().len(), 1);
    let mut pop3 = Pop3::connect(&mut server);
    // Base64 of NUL james NUL x.
    pop3.ok("AUTH PLAIN AGphbWVzAHg=");
    assert_eq!(pop3.uidl().len(), 1);
}

#[test]
fn credentials_are_checked_and_never_logged() {
    let arguments = ["--pop3-credentials=James@x.org:tops3cret,ann:ann5,*:m4ster", "--netdebug", "--loglevel=debug"];
    let mut server = with_messages(&arguments, 1);
    let user_pass = |server: &mut Server, user: &str, password: &str| {
        let mut pop3 = Pop3::connect(server);
        pop3.ok(&format!("USER {user}"));
        pop3.command(&format!("PASS {password}"))
    };
    let apop = |server: &mut Server, user: &str, password: &str| {
        let mut pop3 = Pop3::connect(server);
        let digest = digest(&pop3.greeting, password);
        pop3.command(&format!("APOP {user} {digest}"))
    };
    for log_in in [&user_pass as &dyn Fn(&mut Server, &str, &str) -> String, &apop] {
        for (user, password) in [("james", "tops3cret"), ("JAMES+a@y.org", "tops3cret"), ("james", "m4ster")] {
            let reply = log_in(&mut server, user, password);
            assert!(reply.starts_with("+OK"), "{user} {password}: {reply}");
        }
        let reply = log_in(&mut server, "james", "TOPS3cret");
        assert!(reply.starts_with("-ERR [AUTH] "), "{reply}");
    }
    // Acting as another user needs the password for `*`: base64 of james NUL ann NUL ann5, and of james NUL ann NUL m4ster.
    for (message, opens) in [("amFtZXMAYW5uAGFubjU=", false), ("amFtZXMAYW5uAG00c3Rlcg==", true)] {
        let reply = Pop3::connect(&mut server).command(&format!("AUTH PLAIN {message}"));
        assert_eq!(reply.starts_with("+OK"), opens, "{reply}");
    }
    server.signal("TERM");
    server.wait();
    let log = server.full_log();
    assert!(log.contains("login failed") && log.contains("PASS ***"), "the dialogue is not logged: {log}");
    for secret in ["tops3cret", "TOPS3cret", "ann5", "m4ster", "amFtZXM"] {
        assert!(!log.contains(secret), "{secret}");
    }
}

#[test]
fn invalid_mailbox_name_is_a_failed_login() {
    // The delay slows down guessing. Without credentials there is nothing to guess, and no delay.
    let table: [(&[&str], Duration); 2] =
        [(&[], Duration::ZERO), (&["--pop3-credentials=*:m4ster"], Duration::from_secs(1))];
    for (arguments, delay) in table {
        let mut server = Server::start(arguments);
        let mut pop3 = Pop3::connect(&mut server);
        pop3.ok("USER ..");
        let start = Instant::now();
        assert!(pop3.err("PASS m4ster").starts_with("-ERR [AUTH] Bad mailbox name: "));
        assert!(start.elapsed() >= delay, "{arguments:?}");
        server.wait_for_log("login failed");
        let metrics = Exposition::parse(&String::from_utf8(server.bytes("/metrics")).unwrap());
        let count =
            |outcome| metrics.value(&format!("restante_logins_total{{protocol=\"pop3\",outcome=\"{outcome}\"}}"));
        assert_eq!((count("ok"), count("failed")), (0.0, 1.0), "{arguments:?}");
    }
}

#[test]
fn stls_encrypts_the_session() {
    let mut server = with_messages(&TLS, 1);
    let mut pop3 = Pop3::connect(&mut server);
    assert!(pop3.lines("CAPA").contains(&"STLS".to_owned()));
    pop3.ok("STLS");
    pop3.connection.stream.start_tls();
    assert!(!pop3.lines("CAPA").contains(&"STLS".to_owned()));
    pop3.ok("USER james");
    pop3.ok("PASS x");
    assert!(pop3.text("RETR 1").ends_with(MAIL));
    pop3.quit();
}

#[test]
fn implicit_tls() {
    let mut forced = with_messages(&[&TLS[..], &["--pop3-forcetls"]].concat(), 1);
    let mut separate = with_messages(&[&TLS[..], &["--pop3-tlsaddr=127.0.0.1:0"]].concat(), 1);
    let addresses =
        [forced.address_of("POP3 listening on tcp4 "), separate.address_of("POP3 with TLS listening on tcp4 ")];
    for address in addresses {
        let mut pop3 = Pop3::connect_tls(address);
        assert!(!pop3.lines("CAPA").contains(&"STLS".to_owned()));
        pop3.ok("USER james");
        pop3.ok("PASS x");
        assert!(pop3.text("RETR 1").ends_with(MAIL));
        pop3.quit();
    }
    Pop3::connect(&mut separate).quit();
}

#[test]
fn sighup_reloads_the_certificate() {
    let disk = Disk::new("pop3-certificate");
    std::fs::create_dir_all(disk.data()).unwrap();
    let (cert, key) = (disk.data().join("crt"), disk.data().join("key"));
    let renew = || {
        let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&cert, generated.cert.pem()).unwrap();
        std::fs::write(&key, generated.signing_key.serialize_pem()).unwrap();
        generated.cert.der().to_vec()
    };
    let first = renew();
    let (cert, key) = (format!("--pop3-tlscert={}", cert.display()), format!("--pop3-tlsprivkey={}", key.display()));
    let mut server = Server::start(&["--pop3-tlsenabled", "--pop3-forcetls", &cert, &key]);
    let address = server.address_of("POP3 listening on tcp4 ");
    let current_certificate = || {
        let pop3 = Pop3::connect_tls(address);
        let ClientStream::Tls(stream) = &pop3.connection.stream else { panic!("TLS is off") };
        stream.conn.peer_certificates().unwrap()[0].to_vec()
    };
    assert_eq!(current_certificate(), first);
    let second = renew();
    server.signal("HUP");
    server.wait_for_log("reloaded certificate");
    assert_eq!(current_certificate(), second);
}

#[test]
fn pop3_can_be_disabled() {
    let mut server = Server::start(&["--pop3-addr="]);
    server.signal("TERM");
    server.wait();
    assert!(!server.full_log().contains("POP3"));
}

#[test]
fn user_without_a_valid_mailbox_name_stops_the_start() {
    let arguments = ["--pop3-credentials=ann:x,first last:s3cret"];
    let output = command().args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("pop3-credentials") && text.contains("the user of entry 2 is not a mailbox name"), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
}

#[test]
fn idle_session_is_closed_without_a_reply_and_deletes_nothing() {
    // Long enough to log in on a busy machine.
    let mut server = with_messages(&["--pop3-timeout=3s"], 1);
    let mut pop3 = Pop3::login(&mut server, "james");
    pop3.ok("DELE 1");
    pop3.connection.send("NOO");
    assert_eq!(pop3.connection.line(), None);
    assert_eq!(server.count("james"), 1);
}

#[test]
fn slow_input_does_not_extend_the_timeout() {
    let mut server = with_messages(&["--pop3-timeout=1s"], 0);
    // A command that is never completed, and a line that is too long for a command.
    for start_of_line in ["NOOP", &"x".repeat(10_000)] {
        let mut pop3 = Pop3::connect(&mut server);
        pop3.connection.send(start_of_line);
        let ClientStream::Plain(stream) = &mut pop3.connection.stream else { panic!("TLS is off") };
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        eventually("the session does not end", || {
            // The write fails after the server has closed the connection.
            let written = stream.write_all(b"x");
            written.is_err() || stream.read(&mut [0; 100]).is_ok_and(|count| count == 0)
        });
    }
}

#[test]
fn sigterm_closes_idle_sessions_and_deletes_nothing() {
    let disk = Disk::new("pop3-sigterm");
    let data = ["--data", disk.data().to_str().unwrap()];
    let mut server = with_messages(&data, 1);
    let mut unauthenticated = Pop3::connect(&mut server);
    let mut reader = Pop3::login(&mut server, "james");
    reader.ok("DELE 1");
    server.signal("TERM");
    for pop3 in [&mut unauthenticated, &mut reader] {
        let reply = pop3.connection.line().unwrap();
        assert!(reply.starts_with("-ERR [SYS/TEMP] "), "{reply}");
        assert_eq!(pop3.connection.line(), None);
    }
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(Server::start(&data).count("james"), 1);
}

#[test]
fn sigterm_completes_the_current_reply() {
    let mut server = Server::start(&[]);
    let mail = [&b"Subject: large\r\n\r\n"[..], &b"a line of text\r\n".repeat(600_000)].concat();
    server.deliver("james@x.org", &mail);
    let mut pop3 = Pop3::login(&mut server, "james");
    pop3.connection.send("RETR 1\r\n");
    assert!(pop3.connection.line().unwrap().starts_with("+OK"));
    // The message is larger than the socket buffers, so the server is still sending.
    server.signal("TERM");
    server.wait_for_log("shutting down");
    let text = pop3.connection.until(b"\r\n.\r\n");
    assert!(text[..text.len() - 3].ends_with(&mail));
    assert!(pop3.connection.line().unwrap().starts_with("-ERR [SYS/TEMP] "));
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn too_many_connections_are_refused_with_a_reply() {
    for limit in ["--pop3-maxconnections=1", "--pop3-maxconnectionsperip=1"] {
        let mut server = Server::start(&[limit]);
        let first = Pop3::connect(&mut server);
        let address = server.address_of("POP3 listening on tcp4 ");
        let mut second = LineConnection::new(connect(address));
        let reply = second.line().unwrap();
        assert!(reply.starts_with("-ERR [SYS/TEMP] "), "{limit}: {reply}");
        assert_eq!(second.line(), None);
        first.quit();
    }
}

#[test]
fn client_that_never_reads_is_disconnected() {
    // Long enough to log in on a busy machine.
    let mut server = Server::start(&["--pop3-timeout=3s", "--pop3-maxconnections=1"]);
    let mail = [&b"Subject: large\r\n\r\n"[..], &b"a line of text\r\n".repeat(600_000)].concat();
    server.deliver("james@x.org", &mail);
    let mut blocked = Pop3::login(&mut server, "james");
    blocked.connection.send(b"RETR 1\r\n".repeat(100));
    let address = server.address_of("POP3 listening on tcp4 ");
    let is_free = || LineConnection::new(connect(address)).line().is_some_and(|line| line.starts_with("+OK"));
    eventually("its connection slot is not freed", is_free);
}

#[test]
fn large_mailbox_on_disk() {
    // More than one page of a listing, and more than one batch of deletions.
    const COUNT: usize = 1100;
    let disk = Disk::new("pop3-large");
    let data = disk.data().to_str().unwrap();
    let mut server = Server::start(&["--data", data, "--storage-mailboxmsgcap=0"]);
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.command("EHLO client.test", "250");
    let mail = "MAIL FROM:<a@x.org>\r\nRCPT TO:<james@x.org>\r\nBDAT 5 LAST\r\nHi\r\n\n";
    for _ in 0..COUNT / 100 {
        connection.send(mail.repeat(100));
        (0..300).for_each(|_| drop(connection.expect("250")));
    }
    let mut pop3 = Pop3::login(&mut server, "james");
    let ids = pop3.uidl();
    assert_eq!(ids, server.ids("james"));
    assert_eq!(ids.len(), COUNT);
    assert!(pop3.text(&format!("RETR {COUNT}")).ends_with(b"Hi\r\n\n\r\n"));
    let commands: Vec<String> = (2..=COUNT).map(|number| format!("DELE {number}\r\n")).collect();
    pop3.connection.send(commands.concat());
    (2..=COUNT).for_each(|_| assert!(pop3.connection.line().unwrap().starts_with("+OK")));
    pop3.quit();
    assert_eq!(server.ids("james"), ids[..1]);
    // Deleted messages stay deleted.
    server.kill();
    let server = Server::start(&["--data", data]);
    assert_eq!(server.ids("james"), ids[..1]);
}

#[test]
fn messages_are_deleted_if_the_client_does_not_wait_for_the_reply_to_quit() {
    let mut server = with_messages(&[], 2);
    let mut pop3 = Pop3::login(&mut server, "james");
    pop3.connection.send("DELE 1\r\nDELE 2\r\nQUIT\r\n");
    drop(pop3);
    eventually("the messages are not deleted", || server.count("james") == 0);
}

#[test]
fn netdebug_logs_the_dialogue() {
    let mut server = with_messages(&["--netdebug"], 1);
    let mut pop3 = Pop3::login(&mut server, "james");
    pop3.text("RETR 1");
    pop3.quit();
    let line = server.wait_for_log("< RETR 1");
    assert!(line.contains("POP3 1 127.0.0.1"), "{line}");
    server.signal("TERM");
    server.wait();
    let log = server.full_log();
    assert!(log.contains("> +OK Restante POP3 server ready <"), "{log}");
    assert!(!log.contains("anything") && !log.contains("Return-Path"), "a password or a message is logged: {log}");
}

#[test]
fn debug_log_contains_refusals() {
    let mut server = Server::start(&["--loglevel=debug"]);
    server.deliver("james@x.org", b"Subject: no refusal\r\n\r\n-ERR is how it begins\r\n");
    let mut pop3 = Pop3::login(&mut server, "james");
    pop3.text("RETR 1");
    pop3.err("RETR 2");
    pop3.quit();
    let line = server.wait_for_log("-ERR There is no such message");
    assert!(line.contains("refused session=\"POP3 1 127.0.0.1\""), "{line}");
    server.signal("TERM");
    server.wait();
    let log = server.full_log();
    assert!(!log.contains("is how it begins") && !log.contains("+OK"), "more than refusals is logged: {log}");
}
