//! POP3 from the outside: what arrived by SMTP is read and deleted, and what POP3 says agrees with the REST interface.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::support::disk::Disk;
use crate::support::durability::eventually;
use crate::support::exposition::Exposition;
use crate::support::pop3::{Pop3, digest};
use crate::support::tls::Wire;
use crate::support::{Server, Talk, command, connect};

const MAIL: &[u8] = b"Subject: Hello\r\n\r\nHi\r\n";
const TLS: [&str; 2] = ["--pop3-tlsenabled", "--pop3-tlscert=self-signed"];

/// A mailbox `james` with so many mails.
fn with_mails(arguments: &[&str], count: usize) -> Server {
    let server = Server::start(arguments);
    for _ in 0..count {
        server.deliver("james@x.org", MAIL);
    }
    server
}

#[test]
fn retr_gives_the_bytes_of_source() {
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
        // An answer consists of lines, so the last one gets an end where it has none.
        let complete = source.ends_with(b"\r\n");
        let expected = if complete { source } else { [&source[..], b"\r\n"].concat() };
        assert!(text == expected, "{}", String::from_utf8_lossy(mail));
    }
    pop3.quit();
}

#[test]
fn ids_sizes_and_tops() {
    let mut server = with_mails(&[], 3);
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
fn deletions_are_made_at_quit_and_only_there() {
    let mut server = with_mails(&[], 3);
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
fn a_session_that_breaks_off_deletes_nothing() {
    let mut server = with_mails(&["--pop3-maxconnections=1"], 2);
    let mut pop3 = Pop3::login(&mut server, "james");
    pop3.ok("DELE 1");
    drop(pop3);
    // As soon as there is a place for another, the session before has ended.
    let address = server.address_of("POP3 listening on tcp4 ");
    let is_free = || Talk::new(connect(address)).line().is_some_and(|line| line.starts_with("+OK"));
    eventually("the session does not end", is_free);
    assert_eq!(server.count("james"), 2);
}

#[test]
fn a_mailbox_has_many_readers() {
    let mut server = with_mails(&[], 3);
    let mut first = Pop3::login(&mut server, "james");
    let mut second = Pop3::login(&mut server, "james");
    first.ok("DELE 1");
    assert_eq!(second.lines("LIST").len(), 3);
    first.quit();
    // The numbers stay; what is behind them may be gone.
    let answer = second.err("RETR 1");
    assert_eq!(second.lines("LIST").len(), 3, "{answer}");
    let id = &server.ids("james")[0];
    ureq::delete(server.url(&format!("/api/v1/mailbox/james/{id}"))).call().unwrap();
    second.err("TOP 2 0");
    second.text("RETR 3");
    // To delete what is gone already is no failure.
    for number in 1..=3 {
        second.ok(&format!("DELE {number}"));
    }
    second.quit();
    assert_eq!(server.count("james"), 0);
}

#[test]
fn what_arrives_during_a_session_is_in_the_next() {
    let mut server = with_mails(&[], 1);
    let mut pop3 = Pop3::login(&mut server, "james");
    server.deliver("james@x.org", MAIL);
    assert_eq!(pop3.lines("LIST").len(), 1);
    pop3.quit();
    assert_eq!(Pop3::login(&mut server, "james").lines("LIST").len(), 2);
}

#[test]
fn users_are_mailboxes_or_addresses() {
    // The naming, and then the users that open the mailbox of James+Spam@X.org and those that open another.
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
fn anything_opens_every_mailbox_unless_there_are_credentials() {
    let mut server = with_mails(&[], 1);
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
    let mut server = with_mails(&arguments, 1);
    let user_pass = |server: &mut Server, user: &str, password: &str| {
        let mut pop3 = Pop3::connect(server);
        pop3.ok(&format!("USER {user}"));
        pop3.say(&format!("PASS {password}"))
    };
    let apop = |server: &mut Server, user: &str, password: &str| {
        let mut pop3 = Pop3::connect(server);
        let digest = digest(&pop3.greeting, password);
        pop3.say(&format!("APOP {user} {digest}"))
    };
    for log_in in [&user_pass as &dyn Fn(&mut Server, &str, &str) -> String, &apop] {
        for (user, password) in [("james", "tops3cret"), ("JAMES+a@y.org", "tops3cret"), ("james", "m4ster")] {
            let answer = log_in(&mut server, user, password);
            assert!(answer.starts_with("+OK"), "{user} {password}: {answer}");
        }
        let answer = log_in(&mut server, "james", "TOPS3cret");
        assert!(answer.starts_with("-ERR [AUTH] "), "{answer}");
    }
    // Who acts as another needs the password for all: base64 of james NUL ann NUL ann5, and of james NUL ann NUL m4ster.
    for (message, opens) in [("amFtZXMAYW5uAGFubjU=", false), ("amFtZXMAYW5uAG00c3Rlcg==", true)] {
        let answer = Pop3::connect(&mut server).say(&format!("AUTH PLAIN {message}"));
        assert_eq!(answer.starts_with("+OK"), opens, "{answer}");
    }
    server.signal("TERM");
    server.wait();
    let log = server.whole_log();
    assert!(log.contains("login failed") && log.contains("PASS ***"), "the dialogue is there: {log}");
    for secret in ["tops3cret", "TOPS3cret", "ann5", "m4ster", "amFtZXM"] {
        assert!(!log.contains(secret), "{secret}");
    }
}

#[test]
fn a_name_that_no_mailbox_has_is_a_failed_login() {
    // The longer wait is for those who guess; where nothing is to be guessed, nobody waits.
    let table: [(&[&str], Duration); 2] =
        [(&[], Duration::ZERO), (&["--pop3-credentials=*:m4ster"], Duration::from_secs(1))];
    for (arguments, penalty) in table {
        let mut server = Server::start(arguments);
        let mut pop3 = Pop3::connect(&mut server);
        pop3.ok("USER ..");
        let begun = Instant::now();
        assert!(pop3.err("PASS m4ster").starts_with("-ERR [AUTH] Bad mailbox name: "));
        assert!(begun.elapsed() >= penalty, "{arguments:?}");
        server.logged("login failed");
        let metrics = Exposition::parse(&String::from_utf8(server.bytes("/metrics")).unwrap());
        let count =
            |outcome| metrics.value(&format!("restante_logins_total{{protocol=\"pop3\",outcome=\"{outcome}\"}}"));
        assert_eq!((count("ok"), count("failed")), (0.0, 1.0), "{arguments:?}");
    }
}

#[test]
fn stls_encrypts_the_session() {
    let mut server = with_mails(&TLS, 1);
    let mut pop3 = Pop3::connect(&mut server);
    assert!(pop3.lines("CAPA").contains(&"STLS".to_owned()));
    pop3.ok("STLS");
    pop3.talk.stream.start_tls();
    assert!(!pop3.lines("CAPA").contains(&"STLS".to_owned()));
    pop3.ok("USER james");
    pop3.ok("PASS x");
    assert!(pop3.text("RETR 1").ends_with(MAIL));
    pop3.quit();
}

#[test]
fn tls_from_the_first_byte() {
    let mut forced = with_mails(&[&TLS[..], &["--pop3-forcetls"]].concat(), 1);
    let mut beside = with_mails(&[&TLS[..], &["--pop3-tlsaddr=127.0.0.1:0"]].concat(), 1);
    let addresses =
        [forced.address_of("POP3 listening on tcp4 "), beside.address_of("POP3 with TLS listening on tcp4 ")];
    for address in addresses {
        let mut pop3 = Pop3::connect_tls(address);
        assert!(!pop3.lines("CAPA").contains(&"STLS".to_owned()));
        pop3.ok("USER james");
        pop3.ok("PASS x");
        assert!(pop3.text("RETR 1").ends_with(MAIL));
        pop3.quit();
    }
    Pop3::connect(&mut beside).quit();
}

#[test]
fn sighup_takes_up_a_new_certificate() {
    let disk = Disk::new("pop3-certificate");
    std::fs::create_dir_all(disk.data()).unwrap();
    let (cert, key) = (disk.data().join("crt"), disk.data().join("key"));
    let renew = || {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        made.cert.der().to_vec()
    };
    let first = renew();
    let (cert, key) = (format!("--pop3-tlscert={}", cert.display()), format!("--pop3-tlsprivkey={}", key.display()));
    let mut server = Server::start(&["--pop3-tlsenabled", "--pop3-forcetls", &cert, &key]);
    let address = server.address_of("POP3 listening on tcp4 ");
    let shown = || {
        let pop3 = Pop3::connect_tls(address);
        let Wire::Tls(stream) = &pop3.talk.stream else { panic!("TLS is on") };
        stream.conn.peer_certificates().unwrap()[0].to_vec()
    };
    assert_eq!(shown(), first);
    let second = renew();
    server.signal("HUP");
    server.logged("reloaded certificate");
    assert_eq!(shown(), second);
}

#[test]
fn pop3_can_be_switched_off() {
    let mut server = Server::start(&["--pop3-addr="]);
    server.signal("TERM");
    server.wait();
    assert!(!server.whole_log().contains("POP3"));
}

#[test]
fn a_user_who_names_no_mailbox_stops_the_start() {
    let arguments = ["--pop3-credentials=ann:x,first last:s3cret"];
    let output = command().args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("pop3-credentials") && text.contains("the user of entry 2 names no mailbox"), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
}

#[test]
fn silence_ends_a_session_without_a_word_and_without_deleting() {
    // Time enough to log in on a busy machine.
    let mut server = with_mails(&["--pop3-timeout=3s"], 1);
    let mut pop3 = Pop3::login(&mut server, "james");
    pop3.ok("DELE 1");
    pop3.talk.send("NOO");
    assert_eq!(pop3.talk.line(), None);
    assert_eq!(server.count("james"), 1);
}

#[test]
fn dripping_ends_a_session_like_silence() {
    let mut server = with_mails(&["--pop3-timeout=1s"], 0);
    // A command that never ends, and a line that is too long for one.
    for beginning in ["NOOP", &"x".repeat(10_000)] {
        let mut pop3 = Pop3::connect(&mut server);
        pop3.talk.send(beginning);
        let Wire::Plain(stream) = &mut pop3.talk.stream else { panic!("TLS is off") };
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        eventually("the session does not end", || {
            // The write fails when the server has gone.
            let written = stream.write_all(b"x");
            written.is_err() || stream.read(&mut [0; 100]).is_ok_and(|count| count == 0)
        });
    }
}

#[test]
fn sigterm_sends_idle_sessions_away_and_deletes_nothing() {
    let disk = Disk::new("pop3-sigterm");
    let data = ["--data", disk.data().to_str().unwrap()];
    let mut server = with_mails(&data, 1);
    let mut visitor = Pop3::connect(&mut server);
    let mut reader = Pop3::login(&mut server, "james");
    reader.ok("DELE 1");
    server.signal("TERM");
    for pop3 in [&mut visitor, &mut reader] {
        let last_words = pop3.talk.line().unwrap();
        assert!(last_words.starts_with("-ERR [SYS/TEMP] "), "{last_words}");
        assert_eq!(pop3.talk.line(), None);
    }
    assert_eq!(server.wait().code(), Some(0));
    assert_eq!(Server::start(&data).count("james"), 1);
}

#[test]
fn sigterm_lets_a_message_under_way_finish() {
    let mut server = Server::start(&[]);
    let mail = [&b"Subject: large\r\n\r\n"[..], &b"a line of text\r\n".repeat(600_000)].concat();
    server.deliver("james@x.org", &mail);
    let mut pop3 = Pop3::login(&mut server, "james");
    pop3.talk.send("RETR 1\r\n");
    assert!(pop3.talk.line().unwrap().starts_with("+OK"));
    // More than the system keeps for a connection, so the server is still at it.
    server.signal("TERM");
    server.logged("shutting down");
    let text = pop3.talk.until(b"\r\n.\r\n");
    assert!(text[..text.len() - 3].ends_with(&mail));
    assert!(pop3.talk.line().unwrap().starts_with("-ERR [SYS/TEMP] "));
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn too_many_connections_are_told_so() {
    for limit in ["--pop3-maxconnections=1", "--pop3-maxconnectionsperip=1"] {
        let mut server = Server::start(&[limit]);
        let first = Pop3::connect(&mut server);
        let address = server.address_of("POP3 listening on tcp4 ");
        let mut second = Talk::new(connect(address));
        let answer = second.line().unwrap();
        assert!(answer.starts_with("-ERR [SYS/TEMP] "), "{limit}: {answer}");
        assert_eq!(second.line(), None);
        first.quit();
    }
}

#[test]
fn a_peer_that_never_reads_loses_its_place() {
    // Time enough to log in on a busy machine.
    let mut server = Server::start(&["--pop3-timeout=3s", "--pop3-maxconnections=1"]);
    let mail = [&b"Subject: large\r\n\r\n"[..], &b"a line of text\r\n".repeat(600_000)].concat();
    server.deliver("james@x.org", &mail);
    let mut deaf = Pop3::login(&mut server, "james");
    deaf.talk.send(b"RETR 1\r\n".repeat(100));
    let address = server.address_of("POP3 listening on tcp4 ");
    let is_free = || Talk::new(connect(address)).line().is_some_and(|line| line.starts_with("+OK"));
    eventually("its place is not free", is_free);
}

#[test]
fn large_mailboxes_on_disk() {
    // More than a page of the listing, and than deletions go at once.
    const COUNT: usize = 1100;
    let disk = Disk::new("pop3-large");
    let data = disk.data().to_str().unwrap();
    let mut server = Server::start(&["--data", data, "--storage-mailboxmsgcap=0"]);
    let mut talk = server.talk();
    talk.expect("220");
    talk.say("EHLO client.test", "250");
    let mail = "MAIL FROM:<a@x.org>\r\nRCPT TO:<james@x.org>\r\nBDAT 5 LAST\r\nHi\r\n\n";
    for _ in 0..COUNT / 100 {
        talk.send(mail.repeat(100));
        (0..300).for_each(|_| drop(talk.expect("250")));
    }
    let mut pop3 = Pop3::login(&mut server, "james");
    let ids = pop3.uidl();
    assert_eq!(ids, server.ids("james"));
    assert_eq!(ids.len(), COUNT);
    assert!(pop3.text(&format!("RETR {COUNT}")).ends_with(b"Hi\r\n\n\r\n"));
    let commands: Vec<String> = (2..=COUNT).map(|number| format!("DELE {number}\r\n")).collect();
    pop3.talk.send(commands.concat());
    (2..=COUNT).for_each(|_| assert!(pop3.talk.line().unwrap().starts_with("+OK")));
    pop3.quit();
    assert_eq!(server.ids("james"), ids[..1]);
    // What was deleted stays so.
    server.kill();
    let server = Server::start(&["--data", data]);
    assert_eq!(server.ids("james"), ids[..1]);
}

#[test]
fn a_client_that_does_not_wait_for_the_answer_to_quit_has_deleted_all_the_same() {
    let mut server = with_mails(&[], 2);
    let mut pop3 = Pop3::login(&mut server, "james");
    pop3.talk.send("DELE 1\r\nDELE 2\r\nQUIT\r\n");
    drop(pop3);
    eventually("they are not deleted", || server.count("james") == 0);
}

#[test]
fn the_dialogue_is_in_the_log_of_those_who_ask_for_it() {
    let mut server = with_mails(&["--netdebug"], 1);
    let mut pop3 = Pop3::login(&mut server, "james");
    pop3.text("RETR 1");
    pop3.quit();
    let line = server.logged("< RETR 1");
    assert!(line.contains("POP3 1 127.0.0.1"), "{line}");
    server.signal("TERM");
    server.wait();
    let log = server.whole_log();
    assert!(log.contains("> +OK Restante POP3 server ready <"), "{log}");
    assert!(!log.contains("anything") && !log.contains("Return-Path"), "neither password nor mail: {log}");
}

#[test]
fn refusals_are_in_the_log_of_those_who_look_closely() {
    let mut server = Server::start(&["--loglevel=debug"]);
    server.deliver("james@x.org", b"Subject: no refusal\r\n\r\n-ERR is how it begins\r\n");
    let mut pop3 = Pop3::login(&mut server, "james");
    pop3.text("RETR 1");
    pop3.err("RETR 2");
    pop3.quit();
    let line = server.logged("-ERR There is no such message");
    assert!(line.contains("refused session=\"POP3 1 127.0.0.1\""), "{line}");
    server.signal("TERM");
    server.wait();
    let log = server.whole_log();
    assert!(!log.contains("is how it begins") && !log.contains("+OK"), "nothing else is: {log}");
}
