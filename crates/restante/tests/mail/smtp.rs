//! SMTP and LMTP from the outside: a real SMTP client, and clients that misbehave.

use std::io::Write as _;
use std::time::Duration;

use lettre::message::header::ContentType;
use lettre::message::{Attachment, MultiPart, SinglePart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::{Message, SmtpTransport, Transport as _};
use restante_testdir::TestDir;

use crate::support::durability::eventually;
use crate::support::tls::Wire;
use crate::support::{LONG, Server, Talk, connect};

fn transport(server: &Server) -> lettre::transport::smtp::SmtpTransportBuilder {
    SmtpTransport::builder_dangerous("127.0.0.1").port(server.smtp.port()).timeout(Some(LONG))
}

fn mail(to: &str) -> lettre::message::MessageBuilder {
    Message::builder().from("Ännchen <ann@x.org>".parse().unwrap()).to(to.parse().unwrap()).subject("Grüße")
}

/// A mail as the client sends it: it ends the last line, which RFC 5321 section 4.1.1.4 wants, also when it is ended.
fn as_received(mail: &Message) -> Vec<u8> {
    [&mail.formatted()[..], b"\r\n"].concat()
}

#[test]
fn a_mail_comes_back_as_it_was_sent() {
    let server = Server::start(&[]);
    let picture = Attachment::new("Bild ä.png".into()).body(vec![0_u8, 159, 146, 150], "image/png".parse().unwrap());
    let parts = MultiPart::mixed()
        .multipart(MultiPart::alternative_plain_html(
            "Code: 12345 ß".to_owned(),
            "<p>Code: <b>12345</b></p>".to_owned(),
        ))
        .singlepart(picture);
    let sent = mail("Bob <Bob+shop@y.org>").multipart(parts).unwrap();
    transport(&server).build().send(&sent).unwrap();

    let list = server.json("/api/v1/mailbox/bob");
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(list[0]["subject"], "Grüße");
    assert_eq!(list[0]["from"], "Ännchen <ann@x.org>");
    assert_eq!(list[0]["to"][0], "Bob <Bob+shop@y.org>");
    let id = list[0]["id"].as_str().unwrap();

    let message = server.json(&format!("/api/v1/mailbox/Bob%2Bx@y.org/{id}"));
    assert_eq!(message["body"]["text"].as_str().unwrap().trim_end(), "Code: 12345 ß");
    assert_eq!(message["body"]["html"].as_str().unwrap().trim_end(), "<p>Code: <b>12345</b></p>");
    assert_eq!(message, server.json("/api/v1/mailbox/bob/latest"));
    let attachment = &message["attachments"][0];
    assert_eq!((&attachment["filename"], &attachment["content-type"]), (&"Bild ä.png".into(), &"image/png".into()));
    for link in ["download-link", "view-link"] {
        let link = attachment[link].as_str().unwrap();
        let bytes = ureq::get(link).call().unwrap().body_mut().read_to_vec().unwrap();
        assert_eq!(bytes, [0, 159, 146, 150], "{link}");
    }

    let source = server.bytes(&format!("/api/v1/mailbox/bob/{id}/source"));
    assert_eq!(source.len() as u64, list[0]["size"].as_u64().unwrap());
    assert!(source.ends_with(&as_received(&sent)), "byte for byte");
    assert!(source.starts_with(b"Return-Path: <ann@x.org>\r\nReceived: from "));

    let mut answer = ureq::delete(server.url(&format!("/api/v1/mailbox/bob/{id}"))).call().unwrap();
    assert_eq!(answer.body_mut().read_to_vec().unwrap(), b"\"OK\"\n");
    assert_eq!(server.count("bob"), 0);
}

#[test]
fn dots_and_line_ends_survive() {
    let server = Server::start(&[]);
    let text = ".\r\n..\r\n.hidden\r\nend\r\n";
    let body = SinglePart::builder().header(ContentType::TEXT_PLAIN).body(text.to_owned());
    let sent = mail("bob@y.org").singlepart(body).unwrap();
    transport(&server).build().send(&sent).unwrap();
    assert!(server.bytes("/api/v1/mailbox/bob/latest/source").ends_with(&as_received(&sent)));
}

#[test]
fn one_mail_for_many_recipients_is_in_every_mailbox_once() {
    let server = Server::start(&[]);
    let sent = mail("a@x.org").to("b@x.org".parse().unwrap()).to("A@y.org".parse().unwrap());
    transport(&server).build().send(&sent.body("hello".to_owned()).unwrap()).unwrap();
    assert_eq!((server.count("a"), server.count("b")), (1, 1));
}

#[test]
fn a_login_is_checked_when_there_are_credentials_and_never_logged() {
    let arguments = ["--smtp-credentials", "ann:tops3cret", "--smtp-requireauth", "--netdebug"];
    let mut server = Server::start(&arguments);
    let sent = mail("bob@x.org").body("hello".to_owned()).unwrap();
    let with = |password: &str| {
        let credentials = Credentials::new("ann".into(), password.into());
        transport(&server).credentials(credentials).build().send(&sent)
    };
    assert!(transport(&server).build().send(&sent).unwrap_err().to_string().contains("5.7.0"));
    assert!(with("wrong-one").is_err());
    with("tops3cret").unwrap();
    assert_eq!(server.count("bob"), 1);
    server.signal("TERM");
    server.wait();
    let log = server.whole_log();
    assert!(log.contains("EHLO") && log.contains("AUTH PLAIN ***"), "the dialogue is there: {log}");
    // Base64 of the PLAIN messages, and the passwords in the clear.
    for secret in ["tops3cret", "wrong-one", "AGFubgB0b3BzM2NyZXQ=", "AGFubgB3cm9uZy1vbmU="] {
        assert!(!log.contains(secret), "{secret}");
    }
}

#[test]
fn a_peer_that_never_reads_over_tls_loses_its_place() {
    let tls = ["--smtp-tlsenabled", "--smtp-tlscert=self-signed", "--smtp-forcetls"];
    let server = Server::start(&[&tls[..], &["--smtp-timeout=1s", "--smtp-maxconnections=1"]].concat());
    let greeted = || {
        let mut talk = Talk::new(Wire::Plain(connect(server.smtp)));
        talk.stream.start_tls();
        talk
    };
    let mut deaf = greeted();
    if let Wire::Tls(stream) = &mut deaf.stream {
        stream.sock.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    }
    // The server stops reading when its answers are not taken; then this write times out.
    let _ = deaf.stream.write_all(&b"NOOP\r\n".repeat(2_000_000));
    eventually("its place is not free", || {
        let mut line = [0; 3];
        std::io::Read::read(&mut greeted().stream, &mut line).is_ok_and(|count| count == 3 && line == *b"220")
    });
}

#[test]
fn sighup_takes_up_a_new_certificate_and_not_a_broken_one() {
    let dir = TestDir::new();
    let (cert, key) = (dir.path().join("crt"), dir.path().join("key"));
    let renew = || {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        made.cert.der().to_vec()
    };
    let first = renew();
    let mut server = Server::start(&[
        "--smtp-tlsenabled",
        "--smtp-forcetls",
        &format!("--smtp-tlscert={}", cert.display()),
        &format!("--smtp-tlsprivkey={}", key.display()),
    ]);
    let shown = |server: &Server| {
        let mut talk = Talk::new(Wire::Plain(connect(server.smtp)));
        talk.stream.start_tls();
        talk.expect("220");
        let Wire::Tls(stream) = &talk.stream else { panic!("TLS is on") };
        stream.conn.peer_certificates().unwrap()[0].to_vec()
    };
    assert_eq!(shown(&server), first);
    let second = renew();
    assert_eq!(shown(&server), first, "nobody has told the server yet");
    server.signal("HUP");
    server.logged("reloaded certificate");
    assert_eq!(shown(&server), second);
    std::fs::write(&cert, "junk").unwrap();
    server.signal("HUP");
    server.logged("the certificate stays as it was");
    assert_eq!(shown(&server), second);
    for path in [cert, key] {
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn half_open_clients_leave_nothing_behind() {
    let server = Server::start(&[]);
    for partial in [
        "",
        "DATA\r\n",
        "DATA\r\nSubject: x\r\n\r\nhalf a mail",
        "DATA\r\nSubject: x\r\n\r\nhalf\r\n.",
        "BDAT 100\r\nhalf",
    ] {
        let mut talk = server.talk();
        talk.open_mail("bob@x.org");
        talk.send(partial);
        drop(talk);
    }
    // The server lives on, and what it stores is whole.
    let mut talk = server.talk();
    talk.open_mail("bob@x.org");
    talk.say("DATA", "354");
    talk.say("Subject: whole\r\n\r\nhello\r\n.", "250");
    let list = server.json("/api/v1/mailbox/bob");
    assert_eq!((list.as_array().unwrap().len(), &list[0]["subject"]), (1, &"whole".into()));
}

#[test]
fn slow_loris_is_sent_away_by_smtp() {
    let server = Server::start(&["--smtp-timeout", "1s"]);
    let mut talk = server.talk();
    talk.expect("220");
    talk.send("EHL");
    talk.expect("421");
    assert_eq!(talk.line(), None);
}

#[test]
fn slow_loris_by_dripping_is_sent_away_too() {
    // Time enough for a few commands on a busy machine.
    let server = Server::start(&["--smtp-timeout", "3s"]);
    let drip = |mut talk: Talk<std::net::TcpStream>| {
        talk.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        eventually("it is not sent away", || {
            let mut answer = [0; 3];
            // The write fails when the server has gone; then it has spoken before.
            let _ = talk.stream.write_all(b"x");
            std::io::Read::read(&mut talk.stream, &mut answer).is_ok_and(|count| count == 3 && answer == *b"421")
        });
    };
    let mut command = server.talk();
    command.expect("220");
    drip(command);
    let mut endless = server.talk();
    endless.expect("220");
    endless.send("x".repeat(10_000));
    drip(endless);
    let mut data = server.talk();
    data.open_mail("bob@x.org");
    data.say("DATA", "354");
    drip(data);
    assert_eq!(server.count("bob"), 0);
}

#[test]
fn an_aborted_message_gives_its_memory_back() {
    let server = Server::start(&["--smtp-maxinflightkb", "1024", "--smtp-maxmessagebytes", "1000000"]);
    let chunk = [&b"BDAT 640000\r\n"[..], &b"x".repeat(640_000)].concat();
    let mut talks = [server.talk(), server.talk(), server.talk()];
    for talk in &mut talks {
        talk.open_mail("bob@x.org");
    }
    let [first, second, third] = &mut talks;
    first.send(&chunk);
    first.expect("250");
    second.send(&chunk);
    second.expect("250");
    // There is no room for a third one until the first is given up.
    third.send(&chunk);
    third.stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(std::io::Read::read(&mut third.stream, &mut [0]).is_err(), "it waits");
    third.stream.set_read_timeout(Some(LONG)).unwrap();
    first.say("RSET", "250");
    third.expect("250");
}

#[test]
fn too_many_connections_are_told_so() {
    let server = Server::start(&["--smtp-maxconnections", "2"]);
    let mut first = server.talk();
    let mut second = server.talk();
    first.expect("220");
    second.expect("220");
    let mut third = server.talk();
    third.expect("421");
    assert_eq!(third.line(), None);
    first.say("QUIT", "221");
    assert_eq!(first.line(), None);
    // The place is free a moment after the connection is closed.
    eventually("its place is not free", || server.talk().line().is_some_and(|line| line.starts_with("220")));
}

#[test]
fn too_many_connections_from_one_peer_are_told_so() {
    let server = Server::start(&["--smtp-maxconnectionsperip", "1"]);
    let mut first = server.talk();
    first.expect("220");
    server.talk().expect("421");
}

#[test]
fn messages_that_do_not_fit_into_memory_together_wait_for_each_other() {
    let arguments = ["--smtp-maxinflightkb", "1024", "--smtp-maxmessagebytes", "1000000"];
    let server = Server::start(&arguments);
    let line = [&[b'x'; 78][..], b"\r\n"].concat();
    let text = line.repeat(12_000);
    std::thread::scope(|scope| {
        for sender in 0..8 {
            let (mut talk, text) = (server.talk(), &text);
            scope.spawn(move || {
                talk.open_mail(&format!("bob{sender}@x.org"));
                talk.say("DATA", "354");
                talk.send(text);
                talk.say(".", "250");
            });
        }
    });
    for sender in 0..8 {
        assert_eq!(server.count(&format!("bob{sender}")), 1);
    }
}

#[test]
fn a_mail_that_the_store_has_no_room_for_is_not_acknowledged() {
    let server = Server::start(&["--storage-params", "maxkb:64"]);
    let mut talk = server.talk();
    talk.expect("220");
    assert!(talk.say("EHLO client.test", "250").contains("\n250-SIZE 64512\n"));
    talk.say("MAIL FROM:<a@x.org> SIZE=64513", "552");
    talk.say("MAIL FROM:<a@x.org>", "250");
    talk.say("RCPT TO:<bob@x.org>", "250");
    talk.say("DATA", "354");
    talk.send(b"x".repeat(64_500));
    talk.say("\r\n.", "250");
    assert_eq!(server.count("bob"), 1);
}

#[test]
fn retention_and_cap_are_kept() {
    let server = Server::start(&["--storage-mailboxmsgcap", "2", "--storage-retentionperiod", "1s"]);
    for _ in 0..3 {
        transport(&server).build().send(&mail("bob@x.org").body("hello".to_owned()).unwrap()).unwrap();
    }
    assert!(server.count("bob") <= 2);
    eventually("old mail stays", || server.count("bob") == 0);
}

#[cfg(unix)]
#[test]
fn lmtp_over_a_unix_socket_answers_for_every_recipient() {
    let dir = TestDir::new();
    let path = dir.path().join("lmtp.sock");
    let mut server = Server::start(&["--lmtp-addr", &format!("unix:{}", path.display())]);
    server.logged("LMTP listening on unix");
    let stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut talk = Talk::new(stream);
    talk.expect("220");
    talk.say("EHLO client.test", "502");
    talk.say("LHLO client.test", "250");
    talk.say("MAIL FROM:<>", "250");
    talk.say("RCPT TO:<a@x.org>", "250");
    talk.say("RCPT TO:<b@x.org>", "250");
    talk.say("DATA", "354");
    talk.send("Subject: hi\r\n\r\nhello\r\n.\r\n");
    talk.expect("250");
    talk.expect("250");
    assert_eq!((server.count("a"), server.count("b")), (1, 1));
    server.signal("TERM");
    server.wait();
    assert!(!path.exists());
}

#[test]
fn refusals_are_in_the_log_of_those_who_look_for_them() {
    let mut server = Server::start(&["--loglevel", "debug", "--smtp-rejectdomains", "deny.org"]);
    let mut talk = server.talk();
    talk.open_mail("bob@x.org");
    talk.say("RCPT TO:<a@deny.org>", "550");
    let line = server.logged("550 5.7.1 Mail to this domain");
    assert!(line.contains("SMTP 1 127.0.0.1"), "{line}");
}
