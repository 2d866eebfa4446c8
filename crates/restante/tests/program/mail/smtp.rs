//! SMTP and LMTP with a common SMTP client, and with clients that misbehave.

use std::io::Write as _;
use std::time::Duration;

use lettre::message::header::ContentType;
use lettre::message::{Attachment, MultiPart, SinglePart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::{Message, SmtpTransport, Transport as _};
use restante_testdir::TestDir;

use crate::support::durability::eventually;
use crate::support::tls::ClientStream;
use crate::support::{LineConnection, Server, TEST_TIMEOUT, connect};

fn transport(server: &Server) -> lettre::transport::smtp::SmtpTransportBuilder {
    SmtpTransport::builder_dangerous("127.0.0.1").port(server.smtp.port()).timeout(Some(TEST_TIMEOUT))
}

fn mail(to: &str) -> lettre::message::MessageBuilder {
    Message::builder().from("Ännchen <ann@x.org>".parse().unwrap()).to(to.parse().unwrap()).subject("Grüße")
}

/// Returns a message as the client sends it: it adds a line break after the last line (RFC 5321 section 4.1.1.4).
fn as_received(mail: &Message) -> Vec<u8> {
    [&mail.formatted()[..], b"\r\n"].concat()
}

#[test]
fn message_is_stored_as_it_was_sent() {
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
    assert!(source.ends_with(&as_received(&sent)), "the source differs");
    assert!(source.starts_with(b"Return-Path: <ann@x.org>\r\nReceived: from "));

    let mut response = ureq::delete(server.url(&format!("/api/v1/mailbox/bob/{id}"))).call().unwrap();
    assert_eq!(response.body_mut().read_to_vec().unwrap(), b"\"OK\"\n");
    assert_eq!(server.count("bob"), 0);
}

#[test]
fn dots_and_line_ends_are_preserved() {
    let server = Server::start(&[]);
    let text = ".\r\n..\r\n.hidden\r\nend\r\n";
    let body = SinglePart::builder().header(ContentType::TEXT_PLAIN).body(text.to_owned());
    let sent = mail("bob@y.org").singlepart(body).unwrap();
    transport(&server).build().send(&sent).unwrap();
    assert!(server.bytes("/api/v1/mailbox/bob/latest/source").ends_with(&as_received(&sent)));
}

#[test]
fn message_for_several_recipients_is_stored_once_per_mailbox() {
    let server = Server::start(&[]);
    let sent = mail("a@x.org").to("b@x.org".parse().unwrap()).to("A@y.org".parse().unwrap());
    transport(&server).build().send(&sent.body("hello".to_owned()).unwrap()).unwrap();
    assert_eq!((server.count("a"), server.count("b")), (1, 1));
}

#[test]
fn credentials_are_checked_and_never_logged() {
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
    let log = server.full_log();
    assert!(log.contains("EHLO") && log.contains("AUTH PLAIN ***"), "the dialogue is not logged: {log}");
    // Base64 of the PLAIN messages, and the passwords in clear text.
    for secret in ["tops3cret", "wrong-one", "AGFubgB0b3BzM2NyZXQ=", "AGFubgB3cm9uZy1vbmU="] {
        assert!(!log.contains(secret), "{secret}");
    }
}

#[test]
fn client_that_never_reads_over_tls_is_disconnected() {
    let tls = ["--smtp-tlsenabled", "--smtp-tlscert=self-signed", "--smtp-forcetls"];
    let server = Server::start(&[&tls[..], &["--smtp-timeout=1s", "--smtp-maxconnections=1"]].concat());
    let connect_tls = || {
        let mut connection = LineConnection::new(ClientStream::Plain(connect(server.smtp)));
        connection.stream.start_tls();
        connection
    };
    let mut blocked = connect_tls();
    if let ClientStream::Tls(stream) = &mut blocked.stream {
        stream.sock.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    }
    // The server stops reading when its replies are not read. Then this write times out.
    let _ = blocked.stream.write_all(&b"NOOP\r\n".repeat(2_000_000));
    eventually("its connection slot is not freed", || {
        let mut line = [0; 3];
        std::io::Read::read(&mut connect_tls().stream, &mut line).is_ok_and(|count| count == 3 && line == *b"220")
    });
}

#[test]
fn sighup_reloads_a_valid_certificate_only() {
    let dir = TestDir::new();
    let (cert, key) = (dir.path().join("crt"), dir.path().join("key"));
    let renew = || {
        let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&cert, generated.cert.pem()).unwrap();
        std::fs::write(&key, generated.signing_key.serialize_pem()).unwrap();
        generated.cert.der().to_vec()
    };
    let first = renew();
    let mut server = Server::start(&[
        "--smtp-tlsenabled",
        "--smtp-forcetls",
        &format!("--smtp-tlscert={}", cert.display()),
        &format!("--smtp-tlsprivkey={}", key.display()),
    ]);
    let current_certificate = |server: &Server| {
        let mut connection = LineConnection::new(ClientStream::Plain(connect(server.smtp)));
        connection.stream.start_tls();
        connection.expect("220");
        let ClientStream::Tls(stream) = &connection.stream else { panic!("TLS is off") };
        stream.conn.peer_certificates().unwrap()[0].to_vec()
    };
    assert_eq!(current_certificate(&server), first);
    let second = renew();
    assert_eq!(current_certificate(&server), first, "the certificate was reloaded without a signal");
    server.signal("HUP");
    server.wait_for_log("reloaded certificate");
    assert_eq!(current_certificate(&server), second);
    std::fs::write(&cert, "junk").unwrap();
    server.signal("HUP");
    server.wait_for_log("cannot reload the certificate, still using the old one");
    assert_eq!(current_certificate(&server), second);
    for path in [cert, key] {
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn aborted_messages_are_not_stored() {
    let server = Server::start(&[]);
    for partial in [
        "",
        "DATA\r\n",
        "DATA\r\nSubject: x\r\n\r\nhalf a mail",
        "DATA\r\nSubject: x\r\n\r\nhalf\r\n.",
        "BDAT 100\r\nhalf",
    ] {
        let mut connection = server.connect_smtp();
        connection.start_message("bob@x.org");
        connection.send(partial);
        drop(connection);
    }
    // The server still works, and stores only complete messages.
    let mut connection = server.connect_smtp();
    connection.start_message("bob@x.org");
    connection.command("DATA", "354");
    connection.command("Subject: whole\r\n\r\nhello\r\n.", "250");
    let list = server.json("/api/v1/mailbox/bob");
    assert_eq!((list.as_array().unwrap().len(), &list[0]["subject"]), (1, &"whole".into()));
}

#[test]
fn idle_smtp_client_is_disconnected() {
    let server = Server::start(&["--smtp-timeout", "1s"]);
    let mut connection = server.connect_smtp();
    connection.expect("220");
    connection.send("EHL");
    connection.expect("421");
    assert_eq!(connection.line(), None);
}

#[test]
fn slow_smtp_client_is_disconnected() {
    // Long enough for a few commands on a busy machine.
    let server = Server::start(&["--smtp-timeout", "3s"]);
    let drip = |mut connection: LineConnection<std::net::TcpStream>| {
        connection.stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        eventually("the client is not disconnected", || {
            let mut reply = [0; 3];
            // The write fails after the server has closed the connection; the reply was sent before.
            let _ = connection.stream.write_all(b"x");
            std::io::Read::read(&mut connection.stream, &mut reply).is_ok_and(|count| count == 3 && reply == *b"421")
        });
    };
    let mut command = server.connect_smtp();
    command.expect("220");
    drip(command);
    let mut endless = server.connect_smtp();
    endless.expect("220");
    endless.send("x".repeat(10_000));
    drip(endless);
    let mut data = server.connect_smtp();
    data.start_message("bob@x.org");
    data.command("DATA", "354");
    drip(data);
    assert_eq!(server.count("bob"), 0);
}

#[test]
fn aborted_message_releases_its_memory() {
    let server = Server::start(&["--smtp-maxinflightkb", "1024", "--smtp-maxmessagebytes", "1000000"]);
    let chunk = [&b"BDAT 640000\r\n"[..], &b"x".repeat(640_000)].concat();
    let mut connections = [server.connect_smtp(), server.connect_smtp(), server.connect_smtp()];
    for connection in &mut connections {
        connection.start_message("bob@x.org");
    }
    let [first, second, third] = &mut connections;
    first.send(&chunk);
    first.expect("250");
    second.send(&chunk);
    second.expect("250");
    // The memory budget has no space for a third message until the first one is aborted.
    third.send(&chunk);
    third.stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(std::io::Read::read(&mut third.stream, &mut [0]).is_err(), "it does not wait");
    third.stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    first.command("RSET", "250");
    third.expect("250");
}

#[test]
fn too_many_connections_are_refused_with_a_reply() {
    let server = Server::start(&["--smtp-maxconnections", "2"]);
    let mut first = server.connect_smtp();
    let mut second = server.connect_smtp();
    first.expect("220");
    second.expect("220");
    let mut third = server.connect_smtp();
    third.expect("421");
    assert_eq!(third.line(), None);
    first.command("QUIT", "221");
    assert_eq!(first.line(), None);
    // The slot is freed shortly after the connection is closed.
    eventually("its connection slot is not freed", || {
        server.connect_smtp().line().is_some_and(|line| line.starts_with("220"))
    });
}

#[test]
fn too_many_connections_of_one_client_are_refused_with_a_reply() {
    let server = Server::start(&["--smtp-maxconnectionsperip", "1"]);
    let mut first = server.connect_smtp();
    first.expect("220");
    server.connect_smtp().expect("421");
}

#[test]
fn messages_wait_for_the_memory_budget() {
    let arguments = ["--smtp-maxinflightkb", "1024", "--smtp-maxmessagebytes", "1000000"];
    let server = Server::start(&arguments);
    let line = [&[b'x'; 78][..], b"\r\n"].concat();
    let text = line.repeat(12_000);
    std::thread::scope(|scope| {
        for sender in 0..8 {
            let (mut connection, text) = (server.connect_smtp(), &text);
            scope.spawn(move || {
                connection.start_message(&format!("bob{sender}@x.org"));
                connection.command("DATA", "354");
                connection.send(text);
                connection.command(".", "250");
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
    let mut connection = server.connect_smtp();
    connection.expect("220");
    assert!(connection.command("EHLO client.test", "250").contains("\n250-SIZE 64512\n"));
    connection.command("MAIL FROM:<a@x.org> SIZE=64513", "552");
    connection.command("MAIL FROM:<a@x.org>", "250");
    connection.command("RCPT TO:<bob@x.org>", "250");
    connection.command("DATA", "354");
    connection.send(b"x".repeat(64_500));
    connection.command("\r\n.", "250");
    assert_eq!(server.count("bob"), 1);
}

#[test]
fn retention_and_message_cap_are_enforced() {
    let server = Server::start(&["--storage-mailboxmsgcap", "2", "--storage-retentionperiod", "1s"]);
    for _ in 0..3 {
        transport(&server).build().send(&mail("bob@x.org").body("hello".to_owned()).unwrap()).unwrap();
    }
    assert!(server.count("bob") <= 2);
    eventually("expired messages are not deleted", || server.count("bob") == 0);
}

#[test]
fn number_of_all_messages_is_limited() {
    let server = Server::start(&["--storage-maxmessages", "2"]);
    for mailbox in ["ann", "bob", "cid"] {
        let mail = mail(&format!("{mailbox}@x.org")).body("hello".to_owned()).unwrap();
        transport(&server).build().send(&mail).unwrap();
    }
    eventually("the oldest message is not deleted", || server.count("ann") == 0);
    assert_eq!((server.count("bob"), server.count("cid")), (1, 1));
}

#[cfg(unix)]
#[test]
fn lmtp_over_a_unix_socket_replies_for_every_recipient() {
    let dir = TestDir::new();
    let path = dir.path().join("lmtp.sock");
    let mut server = Server::start(&["--lmtp-addr", &format!("unix:{}", path.display())]);
    server.wait_for_log("LMTP listening on unix");
    let stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let mut connection = LineConnection::new(stream);
    connection.expect("220");
    connection.command("EHLO client.test", "502");
    connection.command("LHLO client.test", "250");
    connection.command("MAIL FROM:<>", "250");
    connection.command("RCPT TO:<a@x.org>", "250");
    connection.command("RCPT TO:<b@x.org>", "250");
    connection.command("DATA", "354");
    connection.send("Subject: hi\r\n\r\nhello\r\n.\r\n");
    connection.expect("250");
    connection.expect("250");
    assert_eq!((server.count("a"), server.count("b")), (1, 1));
    server.signal("TERM");
    server.wait();
    assert!(!path.exists());
}

#[test]
fn debug_log_contains_refusals() {
    let mut server = Server::start(&["--loglevel", "debug", "--smtp-rejectdomains", "deny.org"]);
    let mut connection = server.connect_smtp();
    connection.start_message("bob@x.org");
    connection.command("RCPT TO:<a@deny.org>", "550");
    let line = server.wait_for_log("550 5.7.1 Mail to this domain");
    assert!(line.contains("SMTP 1 127.0.0.1"), "{line}");
}
