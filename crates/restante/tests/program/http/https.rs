//! HTTPS with the real program: listeners, certificates, and clients without TLS. HTTP/2 itself is tested in `restante-http`.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};

use crate::support::disk::Disk;
use crate::support::installed::is_installed;
use crate::support::tls::ClientStream;
use crate::support::{LineConnection, Server, TEST_TIMEOUT, command, connect};

/// The environment variable that makes a missing client an error.
const REQUIRED: &str = "REQUIRE_CLIENTS";
const SELF_SIGNED: &str = "--web-tlscert=self-signed";
const SEPARATE_LISTENER: [&str; 2] = ["--web-tlsaddr=127.0.0.1:0", SELF_SIGNED];
const GET: &str = "GET /api/v1/mailbox/james HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Starts a server with HTTP and HTTPS, and returns the address of HTTPS.
fn start_with_https(arguments: &[&str]) -> (Server, SocketAddr) {
    let mut server = Server::start(&[&SEPARATE_LISTENER[..], arguments].concat());
    let address = server.address_of("HTTPS listening on tcp4 ");
    (server, address)
}

/// Connects with TLS and offers these protocols.
fn connect_tls(address: SocketAddr, protocols: &[&str]) -> ClientStream {
    let mut stream = ClientStream::Plain(connect(address));
    stream.start_tls_for(protocols);
    stream
}

/// Sends a request and returns everything until the server closes the connection.
fn exchange(mut stream: ClientStream, request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// Returns the negotiated protocol, or an error if the handshake fails.
fn negotiated_protocol(address: SocketAddr, protocols: &[&str]) -> std::io::Result<Option<String>> {
    let ClientStream::Tls(mut stream) = connect_tls(address, protocols) else { panic!("TLS is off") };
    stream.conn.complete_io(&mut stream.sock)?;
    Ok(stream.conn.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()))
}

#[test]
fn https_on_a_separate_listener() {
    let (server, address) = start_with_https(&[]);
    server.deliver("james@x.org", b"Content-Type: image/png\r\n\r\nx");
    let response = exchange(connect_tls(address, &[]), &GET.replace("james", "james/latest"));
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.contains("\"https://localhost/mailbox/dattach/james/"), "the links are not HTTPS: {response}");
    let plain = String::from_utf8(server.bytes("/api/v1/mailbox/james/latest")).unwrap();
    assert!(plain.contains(&format!("\"http://{}/mailbox/dattach/james/", server.http)), "{plain}");
    let metrics = String::from_utf8(server.bytes("/metrics")).unwrap();
    assert!(metrics.contains("restante_tls_handshakes_total{protocol=\"http\",outcome=\"ok\"} 1\n"), "{metrics}");
}

#[test]
fn https_instead_of_http() {
    let mut server = Server::start(&["--web-tlsenabled", SELF_SIGNED]);
    assert!(exchange(connect_tls(server.http, &["http/1.1"]), GET).ends_with("\r\n\r\n[]\n"));
    let http = server.http.to_string();
    let mut health = command();
    health.args(["health", "--web-addr", &http, "--web-tlsenabled", SELF_SIGNED]).stdout(Stdio::piped());
    let Output { status, stdout, .. } = health.output().unwrap();
    let text = String::from_utf8(stdout).unwrap();
    assert_eq!((status.code(), text), (Some(0), format!("healthy: HTTPS on {http} is ready\n")));
    server.signal("TERM");
    assert!(server.wait().success());
    assert!(!server.full_log().contains("HTTP listening"), "it is logged as plain HTTP");
}

#[test]
fn protocol_is_negotiated() {
    let (_server, address) = start_with_https(&[]);
    let table: [(&[&str], Option<&str>); 4] = [
        (&["h2", "http/1.1"], Some("h2")),
        (&["http/1.1", "h2"], Some("h2")),
        (&["spdy/3", "http/1.1"], Some("http/1.1")),
        (&[], None),
    ];
    for (offered, expected) in table {
        assert_eq!(negotiated_protocol(address, offered).unwrap().as_deref(), expected, "{offered:?}");
    }
    negotiated_protocol(address, &["pop3"]).unwrap_err();
}

#[test]
fn plain_http_request_gets_an_explanation() {
    let disk = Disk::new("https-plain");
    std::fs::create_dir_all(disk.data()).unwrap();
    let socket = disk.data().join("web.sock");
    let (_server, address) = start_with_https(&[&format!("--web-tlsaddr=127.0.0.1:0,unix:{}", socket.display())]);
    let mut unix = UnixStream::connect(&socket).unwrap();
    unix.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    unix.write_all(GET.as_bytes()).unwrap();
    let mut by_socket = String::new();
    unix.read_to_string(&mut by_socket).unwrap();
    for response in [exchange(ClientStream::Plain(connect(address)), GET), by_socket] {
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{head}");
        assert_eq!(body, "This port speaks HTTPS: the URL must begin with https://.\n");
    }
}

#[test]
fn slow_handshakes_do_not_block_other_clients() {
    let (_server, address) = start_with_https(&[]);
    let silent: Vec<_> = (0..200).map(|_| connect(address)).collect();
    let halves = silent.iter().step_by(2);
    // The start of a TLS record that is never completed.
    halves.for_each(|mut stream| stream.write_all(b"\x16\x03\x01\x02").unwrap());
    assert!(exchange(connect_tls(address, &[]), GET).ends_with("\r\n\r\n[]\n"));
    drop(silent);
}

#[test]
fn websocket_over_https() {
    let (server, address) = start_with_https(&[]);
    let mut connection = LineConnection::new(connect_tls(address, &["http/1.1"]));
    connection.send(
        "GET /api/v2/monitor/messages HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
    );
    assert_eq!(connection.line().as_deref(), Some("HTTP/1.1 101 Switching Protocols"));
    server.deliver("james@x.org", b"Subject: live\r\n\r\n");
    connection.until(b"\"subject\":\"live\"");
}

#[test]
fn tls_after_a_proxy_header() {
    let (_server, address) = start_with_https(&["--web-proxyprotocol=127.0.0.1"]);
    let mut stream = connect(address);
    stream.write_all(b"PROXY TCP4 192.0.2.1 192.0.2.9 1234 443\r\n").unwrap();
    let mut stream = ClientStream::Plain(stream);
    stream.start_tls();
    assert!(exchange(stream, GET).ends_with("\r\n\r\n[]\n"));
}

#[test]
fn sighup_reloads_the_certificate() {
    let disk = Disk::new("https-certificate");
    std::fs::create_dir_all(disk.data()).unwrap();
    let (cert, key) = (disk.data().join("crt"), disk.data().join("key"));
    let renew = || {
        let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&cert, generated.cert.pem()).unwrap();
        std::fs::write(&key, generated.signing_key.serialize_pem()).unwrap();
        generated.cert.der().to_vec()
    };
    let first = renew();
    let (cert, key) = (format!("--web-tlscert={}", cert.display()), format!("--web-tlsprivkey={}", key.display()));
    let mut server = Server::start(&["--web-tlsenabled", &cert, &key]);
    let current_certificate = |address| {
        let ClientStream::Tls(mut stream) = connect_tls(address, &["h2"]) else { panic!("TLS is off") };
        stream.conn.complete_io(&mut stream.sock).unwrap();
        assert_eq!(stream.conn.alpn_protocol(), Some(&b"h2"[..]));
        stream.conn.peer_certificates().unwrap()[0].to_vec()
    };
    assert_eq!(current_certificate(server.http), first);
    let second = renew();
    server.signal("HUP");
    server.wait_for_log("reloaded certificate");
    assert_eq!(current_certificate(server.http), second);
}

#[test]
fn curl() {
    if !is_installed("curl", &["--version"], "HTTP2", REQUIRED) {
        return;
    }
    let disk = Disk::new("https-curl");
    std::fs::create_dir_all(disk.data()).unwrap();
    let socket = disk.data().join("web.sock").display().to_string();
    let (server, address) = start_with_https(&[&format!("--web-tlsaddr=127.0.0.1:0,unix:{socket}")]);
    server.deliver("james@x.org", &[b"Subject: x\r\n\r\n", "x".repeat(200_000).as_bytes()].concat());
    let source = server.bytes("/api/v1/mailbox/james/latest/source");
    let url = format!("https://{address}/api/v1/mailbox/james/latest/source");
    // A hundred concurrent requests, on one connection with HTTP/2.
    let many = format!("{url}?[1-100]");
    let table: [(&[&str], &str, usize); 4] = [
        (&["--http2"], "2", 1),
        (&["--http1.1"], "1.1", 1),
        (&["--http2", "--unix-socket", &socket], "2", 1),
        (&["--http2", "--parallel", "--parallel-max", "100"], "2", 100),
    ];
    for (options, version, count) in table {
        let mut curl = Command::new("curl");
        curl.args(["--no-progress-meter", "--insecure", "--fail", "--max-time", "20"]).args(options);
        curl.args(["--write-out", "%{stderr}%{http_version} "]).arg(if count == 1 { &url } else { &many });
        let Output { status, stdout, stderr } = curl.output().unwrap();
        let versions = String::from_utf8(stderr).unwrap();
        assert!(status.success(), "{options:?}: {versions}");
        assert_eq!(versions, format!("{version} ").repeat(count), "{options:?}");
        assert!(stdout.len() == source.len() * count, "{options:?}: {} bytes", stdout.len());
    }
}

#[test]
fn python() {
    if !is_installed("python3", &["-c", "import ssl; print(ssl.OPENSSL_VERSION)"], "OpenSSL", REQUIRED) {
        return;
    }
    let (_server, address) = start_with_https(&[]);
    let script = "import ssl, sys, urllib.request\n\
                  context = ssl._create_unverified_context()\n\
                  print(urllib.request.urlopen(sys.argv[1], context=context).read().decode(), end='')";
    let url = format!("https://{address}/api/v1/mailbox/james");
    let Output { stdout, stderr, .. } = Command::new("python3").args(["-c", script, &url]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&stdout), "[]\n", "{}", String::from_utf8_lossy(&stderr));
}
