//! APIs at an address of their own, and below a path.

use std::net::SocketAddr;

use crate::support::tls::ClientStream;
use crate::support::{LineConnection, Server, command, connect};

/// Returns the status line of a GET request.
fn status(address: SocketAddr, path: &str) -> String {
    status_on(ClientStream::Plain(connect(address)), path)
}

fn status_on(stream: ClientStream, path: &str) -> String {
    let mut connection = LineConnection::new(stream);
    connection.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    connection.line().expect("a status line")
}

#[test]
fn apis_at_an_address_and_below_a_path() {
    let mut server = Server::start(&["--web-listeners=127.0.0.1:0 mailpit,127.0.0.1:0 /pit operations,/old mailpit"]);
    server.deliver("james@x.org", b"Subject: x\r\n\r\nx");
    let other = server.address_of("HTTP APIs listening on tcp4 ");
    let table = [
        (other, "/api/v1/message/latest", "HTTP/1.1 200 OK"),
        (other, "/pit/livez", "HTTP/1.1 200 OK"),
        (other, "/api/v2/messages", "HTTP/1.1 404 Not Found"),
        (server.http, "/old/api/v1/message/latest", "HTTP/1.1 200 OK"),
        (server.http, "/api/v1/message/latest", "HTTP/1.1 200 OK"),
        (server.http, "/pit/livez", "HTTP/1.1 404 Not Found"),
    ];
    for (address, path, expected) in table {
        assert_eq!(status(address, path), expected, "{address}{path}");
    }
}

#[test]
fn an_address_with_tls_uses_https_and_others_http() {
    let listeners = "--web-listeners=127.0.0.1:0 tls operations,127.0.0.1:0 tls /pit mailpit,/old mailpit";
    let mut server = Server::start(&[listeners, "--web-tlscert=self-signed"]);
    let https = server.address_of("HTTPS APIs listening on tcp4 ");
    for (path, expected) in [("/livez", "200 OK"), ("/pit/api/v1/info", "200 OK"), ("/api/v1/info", "404 Not Found")] {
        let mut stream = ClientStream::Plain(connect(https));
        stream.start_tls();
        assert_eq!(status_on(stream, path), format!("HTTP/1.1 {expected}"), "{path}");
    }
    assert_eq!(status(https, "/livez"), "HTTP/1.1 400 Bad Request");
    assert_eq!(status(server.http, "/old/api/v1/info"), "HTTP/1.1 200 OK");
}

#[test]
fn collision_prevents_the_start() {
    let output = command().arg("--web-listeners=127.0.0.1:0 mailpit,127.0.0.1:0 mailpit").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("web.listeners: the API mailpit is served twice at /api/v1/messages"), "{text}");
}
