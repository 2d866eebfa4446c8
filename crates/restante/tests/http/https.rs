//! HTTPS with the real program: its listeners, its certificate, and those who come without TLS. What HTTP/2 does inside is
//! tested in the library.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};

use crate::support::disk::Disk;
use crate::support::installed::is_there;
use crate::support::tls::Wire;
use crate::support::{LONG, Server, Talk, command, connect};

/// The variable that does not put up with a client that is missing.
const REQUIRED: &str = "REQUIRE_CLIENTS";
const SELF_SIGNED: &str = "--web-tlscert=self-signed";
const BESIDE: [&str; 2] = ["--web-tlsaddr=127.0.0.1:0", SELF_SIGNED];
const GET: &str = "GET /api/v1/mailbox/james HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// A server with HTTP and HTTPS, and the address of the latter.
fn beside(arguments: &[&str]) -> (Server, SocketAddr) {
    let mut server = Server::start(&[&BESIDE[..], arguments].concat());
    let address = server.address_of("HTTPS listening on tcp4 ");
    (server, address)
}

/// A connection with TLS, to speak one of these protocols.
fn secure(address: SocketAddr, protocols: &[&str]) -> Wire {
    let mut wire = Wire::Plain(connect(address));
    wire.start_tls_for(protocols);
    wire
}

/// The whole answer to a request that ends the connection.
fn converse(mut wire: Wire, request: &str) -> String {
    wire.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    wire.read_to_string(&mut answer).unwrap();
    answer
}

/// What was agreed on, once the handshake is done; an error when there is no agreement.
fn agreed(address: SocketAddr, protocols: &[&str]) -> std::io::Result<Option<String>> {
    let Wire::Tls(mut stream) = secure(address, protocols) else { panic!("TLS was asked for") };
    stream.conn.complete_io(&mut stream.sock)?;
    Ok(stream.conn.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()))
}

#[test]
fn beside_http() {
    let (server, address) = beside(&[]);
    server.deliver("james@x.org", b"Content-Type: image/png\r\n\r\nx");
    let answer = converse(secure(address, &[]), &GET.replace("james", "james/latest"));
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\"https://localhost/mailbox/dattach/james/"), "links are for HTTPS: {answer}");
    let plain = String::from_utf8(server.bytes("/api/v1/mailbox/james/latest")).unwrap();
    assert!(plain.contains(&format!("\"http://{}/mailbox/dattach/james/", server.http)), "{plain}");
    let metrics = String::from_utf8(server.bytes("/metrics")).unwrap();
    assert!(metrics.contains("restante_tls_handshakes_total{protocol=\"http\",outcome=\"ok\"} 1\n"), "{metrics}");
}

#[test]
fn instead_of_http() {
    let mut server = Server::start(&["--web-tlsenabled", SELF_SIGNED]);
    assert!(converse(secure(server.http, &["http/1.1"]), GET).ends_with("\r\n\r\n[]\n"));
    let http = server.http.to_string();
    let mut ask = command();
    ask.args(["health", "--web-addr", &http, "--web-tlsenabled", SELF_SIGNED]).stdout(Stdio::piped());
    let Output { status, stdout, .. } = ask.output().unwrap();
    let said = String::from_utf8(stdout).unwrap();
    assert_eq!((status.code(), said), (Some(0), format!("healthy: HTTPS on {http} is ready\n")));
    server.signal("TERM");
    assert!(server.wait().success());
    assert!(!server.whole_log().contains("HTTP listening"), "nobody shall take it for plain HTTP");
}

#[test]
fn the_protocol_is_agreed_on() {
    let (_server, address) = beside(&[]);
    let table: [(&[&str], Option<&str>); 4] = [
        (&["h2", "http/1.1"], Some("h2")),
        (&["http/1.1", "h2"], Some("h2")),
        (&["spdy/3", "http/1.1"], Some("http/1.1")),
        (&[], None),
    ];
    for (offered, expected) in table {
        assert_eq!(agreed(address, offered).unwrap().as_deref(), expected, "{offered:?}");
    }
    agreed(address, &["pop3"]).unwrap_err();
}

#[test]
fn who_comes_without_tls_is_told() {
    let disk = Disk::new("https-plain");
    std::fs::create_dir_all(disk.data()).unwrap();
    let socket = disk.data().join("web.sock");
    let (_server, address) = beside(&[&format!("--web-tlsaddr=127.0.0.1:0,unix:{}", socket.display())]);
    let mut unix = UnixStream::connect(&socket).unwrap();
    unix.set_read_timeout(Some(LONG)).unwrap();
    unix.write_all(GET.as_bytes()).unwrap();
    let mut by_socket = String::new();
    unix.read_to_string(&mut by_socket).unwrap();
    for answer in [converse(Wire::Plain(connect(address)), GET), by_socket] {
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{head}");
        assert_eq!(body, "This port speaks HTTPS: the URL must begin with https://.\n");
    }
}

#[test]
fn handshakes_that_take_long_hinder_nobody() {
    let (_server, address) = beside(&[]);
    let silent: Vec<_> = (0..200).map(|_| connect(address)).collect();
    let halves = silent.iter().step_by(2);
    // The beginning of a record that never ends.
    halves.for_each(|mut stream| stream.write_all(b"\x16\x03\x01\x02").unwrap());
    assert!(converse(secure(address, &[]), GET).ends_with("\r\n\r\n[]\n"));
    drop(silent);
}

#[test]
fn a_web_socket() {
    let (server, address) = beside(&[]);
    let mut talk = Talk::new(secure(address, &["http/1.1"]));
    talk.send(
        "GET /api/v2/monitor/messages HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
    );
    assert_eq!(talk.line().as_deref(), Some("HTTP/1.1 101 Switching Protocols"));
    server.deliver("james@x.org", b"Subject: live\r\n\r\n");
    talk.until(b"\"subject\":\"live\"");
}

#[test]
fn a_proxy_that_passes_bytes_on() {
    let (_server, address) = beside(&["--web-proxyprotocol=127.0.0.1"]);
    let mut stream = connect(address);
    stream.write_all(b"PROXY TCP4 192.0.2.1 192.0.2.9 1234 443\r\n").unwrap();
    let mut wire = Wire::Plain(stream);
    wire.start_tls();
    assert!(converse(wire, GET).ends_with("\r\n\r\n[]\n"));
}

#[test]
fn sighup_takes_up_a_new_certificate() {
    let disk = Disk::new("https-certificate");
    std::fs::create_dir_all(disk.data()).unwrap();
    let (cert, key) = (disk.data().join("crt"), disk.data().join("key"));
    let renew = || {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        made.cert.der().to_vec()
    };
    let first = renew();
    let (cert, key) = (format!("--web-tlscert={}", cert.display()), format!("--web-tlsprivkey={}", key.display()));
    let mut server = Server::start(&["--web-tlsenabled", &cert, &key]);
    let shown = |address| {
        let Wire::Tls(mut stream) = secure(address, &["h2"]) else { panic!("TLS was asked for") };
        stream.conn.complete_io(&mut stream.sock).unwrap();
        assert_eq!(stream.conn.alpn_protocol(), Some(&b"h2"[..]));
        stream.conn.peer_certificates().unwrap()[0].to_vec()
    };
    assert_eq!(shown(server.http), first);
    let second = renew();
    server.signal("HUP");
    server.logged("reloaded certificate");
    assert_eq!(shown(server.http), second);
}

#[test]
fn curl() {
    if !is_there("curl", &["--version"], "HTTP2", REQUIRED) {
        return;
    }
    let disk = Disk::new("https-curl");
    std::fs::create_dir_all(disk.data()).unwrap();
    let socket = disk.data().join("web.sock").display().to_string();
    let (server, address) = beside(&[&format!("--web-tlsaddr=127.0.0.1:0,unix:{socket}")]);
    server.deliver("james@x.org", &[b"Subject: x\r\n\r\n", "x".repeat(200_000).as_bytes()].concat());
    let source = server.bytes("/api/v1/mailbox/james/latest/source");
    let url = format!("https://{address}/api/v1/mailbox/james/latest/source");
    // A hundred at the same time, on one connection where that is possible.
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
    if !is_there("python3", &["-c", "import ssl; print(ssl.OPENSSL_VERSION)"], "OpenSSL", REQUIRED) {
        return;
    }
    let (_server, address) = beside(&[]);
    let script = "import ssl, sys, urllib.request\n\
                  context = ssl._create_unverified_context()\n\
                  print(urllib.request.urlopen(sys.argv[1], context=context).read().decode(), end='')";
    let url = format!("https://{address}/api/v1/mailbox/james");
    let Output { stdout, stderr, .. } = Command::new("python3").args(["-c", script, &url]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&stdout), "[]\n", "{}", String::from_utf8_lossy(&stderr));
}
