//! Rules choose the projects of messages. Addresses of recipients never do.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use restante_mail::naming::MailboxName;
use restante_testdir::TestDir;

use crate::support::Server;

const RULES: &str = "{1} login=*-ci; srs header=X-Application:srs; acme domain=*.acme.test; \
                     legacy helo=legacy-* client=127.0.0.0/8; socket listener=unix:*; bounces sender=mailer-daemon@*";

/// Returns the names of all mailboxes.
fn mailboxes(server: &Server) -> Vec<String> {
    let list = server.json("/api/v2/mailboxes");
    list["mailboxes"].as_array().unwrap().iter().map(|mailbox| mailbox["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn rules_choose_the_project_of_a_message() {
    // The name in EHLO, the login, the sender, the recipient, the message, and the mailbox.
    let table = [
        ("client.test", "", "ann@x.org", "bob@x.org", "Subject: a", "bob"),
        ("client.test", "Shop-CI", "ann@x.org", "bob@qa.acme.test", "X-Application: srs", "shop:bob"),
        ("client.test", "", "ann@x.org", "bob@qa.acme.test", "X-Application: srs", "srs:bob"),
        ("client.test", "", "ann@x.org", "bob@qa.acme.test", "X-Application: other", "acme:bob"),
        ("legacy-7", "", "ann@x.org", "bob@x.org", "Subject: a", "legacy:bob"),
        ("client.test", "", "Mailer-Daemon@x.org", "bob@x.org", "Subject: a", "bounces:bob"),
    ];
    let server = Server::start(&["--projects-rules", RULES]);
    for (helo, login, from, to, header, _) in table {
        let mut connection = server.connect_smtp();
        connection.expect("220");
        connection.command(&format!("EHLO {helo}"), "250");
        if !login.is_empty() {
            connection.command(&format!("AUTH PLAIN {}", STANDARD.encode(format!("\0{login}\0secret"))), "235");
        }
        connection.command(&format!("MAIL FROM:<{from}>"), "250");
        connection.command(&format!("RCPT TO:<{to}>"), "250");
        connection.command("DATA", "354");
        connection.command(&format!("{header}\r\n\r\nX-Application: srs\r\n."), "250");
        connection.command("QUIT", "221");
    }
    let mut expected: Vec<&str> = table.iter().map(|row| row.5).collect();
    expected.sort_unstable();
    let mut found = mailboxes(&server);
    found.sort_unstable();
    assert_eq!(found, expected);
    let ids = server.ids("shop:bob");
    assert_eq!(ids.len(), 1);
}

#[test]
fn rules_choose_the_project_by_listener() {
    let dir = TestDir::new();
    let socket = dir.path().join("smtp.sock");
    let listeners = format!("127.0.0.1:0,unix:{}", socket.display());
    let server = Server::start(&["--smtp-addr", &listeners, "--projects-rules", RULES]);
    let stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
    let mut connection = crate::support::LineConnection::new(stream);
    connection.start_message("bob@x.org");
    connection.command("DATA", "354");
    connection.command("Subject: a\r\n\r\n.", "250");
    server.deliver("ann@x.org", b"Subject: a\r\n\r\n");
    let mut found = mailboxes(&server);
    found.sort_unstable();
    assert_eq!(found, ["ann", "socket:bob"]);
}

#[test]
fn no_recipient_chooses_a_project() {
    let recipients = [
        "shop:bob@x.org",
        "\"shop:bob\"@x.org",
        "\"shop\\:bob\"@x.org",
        "shop%3abob@x.org",
        ":bob@x.org",
        "shop：bob@x.org",
        "bob@[IPv6:2001:db8::1]",
        "bob@[shop:1]",
        "bob@shop:x.org",
        "@shop:bob@x.org",
        "@shop,@acme:bob@x.org",
        "shop:@x.org:bob@x.org",
        "bob+shop:x@x.org",
        "bob@x.org",
    ];
    for naming in ["local", "full", "domain"] {
        let server = Server::start(&["--mailboxnaming", naming]);
        let mut connection = server.connect_smtp();
        connection.expect("220");
        connection.command("EHLO client.test", "250");
        let mut accepted = 0;
        for recipient in recipients {
            connection.command("MAIL FROM:<ann@x.org> SMTPUTF8", "250");
            connection.send(format!("RCPT TO:<{recipient}>\r\n"));
            if connection.line().unwrap().starts_with("250") {
                connection.command("DATA", "354");
                connection.command("Subject: a\r\n\r\n.", "250");
                accepted += 1;
            } else {
                connection.command("RSET", "250");
            }
        }
        assert!(accepted >= 4, "{accepted}");
        let found = mailboxes(&server);
        assert!(
            !found.is_empty() && found.iter().all(|name| MailboxName::from(name.clone()).project().is_none()),
            "{found:?}"
        );
    }
}
