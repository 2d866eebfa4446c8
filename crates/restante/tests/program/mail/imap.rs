//! The listeners of IMAP: addresses, TLS and proxies. And changes by other protocols.

use crate::support::imap::Imap;
use crate::support::tls::ClientStream;
use crate::support::{LineConnection, Server, connect};

const TLS: [&str; 2] = ["--imap-tlsenabled", "--imap-tlscert=self-signed"];

#[test]
fn imap_can_be_disabled() {
    let mut server = Server::start(&["--imap-addr="]);
    server.signal("TERM");
    server.wait();
    assert!(!server.full_log().contains("IMAP"));
}

#[test]
fn listeners_with_tls_greet_after_the_handshake() {
    let table: [(&[&str], &str); 2] = [
        (&["--imap-tlsaddr=127.0.0.1:0"], "IMAP with TLS listening on tcp4 "),
        (&["--imap-forcetls"], "IMAP listening on tcp4 "),
    ];
    for (settings, listener) in table {
        let mut server = Server::start(&[&TLS[..], settings].concat());
        let mut connection = LineConnection::new(ClientStream::Plain(connect(server.address_of(listener))));
        connection.stream.start_tls();
        assert!(connection.line().unwrap().starts_with("* OK "), "{listener}");
    }
}

#[test]
fn clients_of_a_proxy_send_a_header() {
    let mut server = Server::start(&["--imap-proxyprotocol=127.0.0.1", "--loglevel=debug"]);
    let address = server.address_of("IMAP listening on tcp4 ");
    let mut connection = LineConnection::new(connect(address));
    connection.send("PROXY TCP4 203.0.113.7 127.0.0.1 40000 143\r\n");
    assert!(connection.line().unwrap().starts_with("* OK "));
    drop(connection);
    server.wait_for_log("ended session=\"IMAP 1 203.0.113.7\"");
    let mut without_header = LineConnection::new(connect(address));
    without_header.send("a LOGOUT\r\n");
    assert_eq!(without_header.line(), None, "a reply without a PROXY header");
}

#[test]
fn changes_by_smtp_and_rest_arrive_in_idle() {
    let mut server = Server::start(&[]);
    let mut imap = Imap::login(&mut server, "james");
    imap.ok("SELECT INBOX");
    imap.connection.send("b IDLE\r\n");
    let mut expect = |expected: &[&str]| {
        for line in expected {
            assert_eq!(imap.connection.line().as_deref(), Some(*line));
        }
    };
    expect(&["+ idling"]);
    server.deliver("james@x.org", b"Subject: Hello\r\n\r\nHi\r\n");
    expect(&["* 1 EXISTS", "* 1 RECENT"]);
    let url = server.url(&format!("/api/v1/mailbox/james/{}", server.ids("james")[0]));
    ureq::patch(&url).send(r#"{"seen":true}"#).unwrap();
    expect(&[r"* 1 FETCH (FLAGS (\Seen \Recent))"]);
    ureq::delete(&url).call().unwrap();
    expect(&["* 1 EXPUNGE"]);
}
