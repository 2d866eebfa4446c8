//! Client addresses behind proxies, from PROXY headers and from `X-Forwarded-For`, and the limits per client.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use restante_testdir::TestDir;

use crate::support::exposition::Exposition;
use crate::support::tls::ClientStream;
use crate::support::{LineConnection, Server, TEST_TIMEOUT, command, connect};

/// Retries for a while: a connection slot is freed shortly after the connection is closed.
fn eventually_true(mut attempt: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + TEST_TIMEOUT;
    while Instant::now() < deadline {
        if attempt() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Returns a PROXY header of version 1 for this client.
fn header_v1(client: &str) -> Vec<u8> {
    let (family, server) = if client.contains(':') { ("TCP6", "2001:db8::25") } else { ("TCP4", "198.51.100.25") };
    format!("PROXY {family} {client} {server} 56324 25\r\n").into_bytes()
}

/// Returns a PROXY header of version 2 for this client, with an unknown extension after the addresses.
fn header_v2(client: &str) -> Vec<u8> {
    let extra = b"\xe0\x00\x05extra";
    let (family, mut block) = match client.parse().unwrap() {
        IpAddr::V4(ip) => (0x11, [ip.octets(), [198, 51, 100, 25]].concat()),
        IpAddr::V6(ip) => (0x21, [ip.octets(), ip.octets()].concat()),
    };
    block.extend([0xdc, 0x04, 0x00, 0x19]);
    block.extend(extra);
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21".to_vec();
    header.extend([family, 0, u8::try_from(block.len()).unwrap()]);
    header.extend(block);
    header
}

/// Opens an SMTP connection that starts with these bytes.
fn connect_by_proxy(server: &Server, header: &[u8]) -> LineConnection<TcpStream> {
    let mut connection = server.connect_smtp();
    connection.send(header);
    connection
}

/// Sends a message to this mailbox, and returns its source.
fn send_message<S: std::io::Read + std::io::Write>(
    server: &Server,
    connection: &mut LineConnection<S>,
    mailbox: &str,
) -> String {
    connection.start_message(&format!("{mailbox}@x.org"));
    connection.command("DATA", "354");
    connection.command("Subject: hi\r\n\r\nhello\r\n.", "250");
    String::from_utf8(server.bytes(&format!("/api/v1/mailbox/{mailbox}/latest/source"))).unwrap()
}

/// Sends the bytes on a new HTTP connection, and returns the whole response.
fn exchange(server: &Server, request: impl AsRef<[u8]>) -> String {
    let mut stream = connect(server.http);
    stream.write_all(request.as_ref()).unwrap();
    let mut response = Vec::new();
    // A server that closes with input unread resets the connection.
    let _ = stream.read_to_end(&mut response);
    String::from_utf8_lossy(&response).into_owned()
}

/// Starts a request whose body is never sent, so that it stays open.
fn open_request(server: &Server, proxy_header: &[u8], headers: &str) -> LineConnection<TcpStream> {
    let mut connection = LineConnection::new(connect(server.http));
    connection.send(proxy_header);
    let headers = format!("Host: localhost\r\n{headers}Content-Length: 9\r\nExpect: 100-continue\r\n");
    connection.send(format!("PATCH /api/v1/mailbox/bob/1 HTTP/1.1\r\n{headers}\r\n"));
    assert_eq!(connection.line().as_deref(), Some("HTTP/1.1 100 Continue"));
    connection
}

const GET: &str = "GET /api/v1/mailbox/bob HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

fn get(headers: &str) -> String {
    GET.replace("\r\nConnection", &format!("\r\n{headers}Connection"))
}

#[test]
fn received_header_has_the_client_of_the_proxy() {
    let server = Server::start(&["--smtp-proxyprotocol", "192.0.2.0/24,127.0.0.0/8"]);
    let clients = [("one", header_v1("203.0.113.7")), ("two", header_v2("203.0.113.7"))];
    for (mailbox, header) in clients {
        let source = send_message(&server, &mut connect_by_proxy(&server, &header), mailbox);
        assert!(source.contains("Received: from client.test ([203.0.113.7]) by mx.test"), "{source}");
    }
    for (mailbox, header) in [("three", header_v1("2001:db8::7")), ("four", header_v2("2001:db8::7"))] {
        let source = send_message(&server, &mut connect_by_proxy(&server, &header), mailbox);
        assert!(source.contains("2001:db8::7"), "{source}");
    }
    let own = [("five", &b"PROXY UNKNOWN\r\n"[..]), ("six", b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0")];
    for (mailbox, header) in own {
        let source = send_message(&server, &mut connect_by_proxy(&server, header), mailbox);
        assert!(source.contains("([127.0.0.1])"), "{source}");
    }
}

#[test]
fn proxy_header_can_be_split_or_followed_by_data() {
    let server = Server::start(&["--smtp-proxyprotocol=127.0.0.1", "--web-proxyprotocol=127.0.0.1"]);
    for (mailbox, header) in [("v1", header_v1("203.0.113.7")), ("v2", header_v2("203.0.113.7"))] {
        let mut slow = server.connect_smtp();
        slow.stream.set_nodelay(true).unwrap();
        for byte in &header {
            slow.send([*byte]);
            std::thread::sleep(Duration::from_millis(1));
        }
        slow.start_message(&format!("{mailbox}@x.org"));
        slow.command("DATA", "354");
        slow.command("Subject: hi\r\n\r\nhello\r\n.", "250");
        let (first, second) = header.split_at(20);
        let mut split = connect_by_proxy(&server, first);
        std::thread::sleep(Duration::from_millis(20));
        split.send([second, b"EHLO client.test\r\nQUIT\r\n"].concat());
        split.expect("220");
        split.expect("250");
        split.expect("221");
        // HTTP uses the same proxy here.
        let source = GET.replace("/bob", &format!("/{mailbox}/latest/source"));
        let response = exchange(&server, [&header[..], source.as_bytes()].concat());
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.contains("([203.0.113.7])"), "{response}");
    }
}

#[test]
fn proxy_header_of_an_unknown_peer_is_invalid_input() {
    let server = Server::start(&["--smtp-proxyprotocol=192.0.2.0/24", "--web-proxyprotocol=192.0.2.0/24"]);
    let mut connection = connect_by_proxy(&server, &header_v1("203.0.113.7"));
    connection.expect("220");
    connection.expect("500");
    connection.command("EHLO client.test", "250");
    assert!(exchange(&server, [&header_v1("203.0.113.7")[..], GET.as_bytes()].concat()).starts_with("HTTP/1.1 400 "));
    assert!(exchange(&server, GET).starts_with("HTTP/1.1 200 "));
}

#[test]
fn invalid_proxy_header_closes_the_connection() {
    let mut server = Server::start(&["--smtp-proxyprotocol=127.0.0.1", "--web-proxyprotocol=127.0.0.1"]);
    let noise: Vec<u8> = (0..5000_u32).map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let too_long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(100));
    let mut huge = header_v2("203.0.113.7");
    huge[14] = 0xff;
    let bad: [&[u8]; 7] = [
        b"EHLO client.test\r\n",
        GET.as_bytes(),
        b"PROXY TCP4 203.0.113.7\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x22\x11\0\0",
        too_long.as_bytes(),
        &huge,
        &noise,
    ];
    for header in bad {
        assert_eq!(connect_by_proxy(&server, header).line(), None, "{header:?}");
        assert_eq!(exchange(&server, header), "", "{header:?}");
    }
    let warning = server.wait_for_log("closed a connection without a valid PROXY header: malformed");
    assert!(warning.contains("WARN") && warning.contains(" proxy=127.0.0.1"), "{warning}");
    assert!(warning.contains(&format!(" listener=tcp4 {}", server.smtp)), "{warning}");
    // A connection without a complete header times out.
    let mut silent = server.connect_smtp();
    let mut partial = connect_by_proxy(&server, b"PROXY TCP4 203.0");
    assert_eq!((silent.line(), partial.line()), (None, None));
    connect_by_proxy(&server, &header_v1("203.0.113.7")).expect("220");
    let metrics = exchange(&server, format!("PROXY UNKNOWN\r\n{}", GET.replace("/api/v1/mailbox/bob", "/metrics")));
    for (protocol, outcome, count) in
        [("smtp", "malformed", 7), ("smtp", "late", 2), ("smtp", "ok", 1), ("http", "malformed", 7), ("http", "ok", 1)]
    {
        let series = format!("{{protocol=\"{protocol}\",outcome=\"{outcome}\"}} {count}\n");
        assert!(metrics.contains(&format!("restante_proxy_headers_total{series}")), "{series} {metrics}");
    }
}

#[test]
fn tls_starts_after_the_proxy_header() {
    let tls = ["--smtp-tlsenabled", "--smtp-tlscert=self-signed", "--smtp-tlsaddr=127.0.0.1:0"];
    let mut server = Server::start(&[&tls[..], &["--smtp-proxyprotocol=127.0.0.1"]].concat());
    let address = server.address_of("SMTP with TLS listening on tcp4 ");
    for (mailbox, header) in [("one", header_v1("203.0.113.7")), ("two", header_v2("203.0.113.7"))] {
        let mut connection = LineConnection::new(ClientStream::Plain(connect(address)));
        connection.send(header);
        connection.stream.start_tls();
        let source = send_message(&server, &mut connection, mailbox);
        assert!(source.contains("([203.0.113.7])"), "{source}");
    }
    // STARTTLS works too.
    let mut connection = LineConnection::new(ClientStream::Plain(connect(server.smtp)));
    connection.send(header_v1("203.0.113.7"));
    connection.expect("220");
    connection.command("STARTTLS", "220");
    connection.stream.start_tls();
    connection.command("EHLO client.test", "250");
}

#[cfg(unix)]
#[test]
fn unix_socket_needs_no_proxy_header_and_has_no_client_limit() {
    let dir = TestDir::new();
    let path = dir.path().join("lmtp.sock");
    let lmtp = format!("unix:{}", path.display());
    let arguments = ["--lmtp-addr", &lmtp, "--smtp-proxyprotocol=0.0.0.0/0,::/0", "--smtp-maxconnectionsperip=1"];
    let mut server = Server::start(&arguments);
    server.wait_for_log("LMTP listening on unix");
    let open = || {
        let stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        LineConnection::new(stream)
    };
    let mut connections = [open(), open()];
    for connection in &mut connections {
        connection.expect("220");
        connection.command("LHLO client.test", "250");
    }
}

#[test]
fn each_client_of_a_proxy_has_its_own_connection_limit() {
    let server = Server::start(&["--smtp-proxyprotocol=127.0.0.1", "--smtp-maxconnectionsperip=1"]);
    let open = |client: &str| connect_by_proxy(&server, &header_v2(client));
    let mut first = open("203.0.113.7");
    first.expect("220");
    let mut second = open("203.0.113.7");
    second.expect("421");
    assert_eq!(second.line(), None);
    let mut other = open("203.0.113.8");
    other.expect("220");
    // One machine can have a whole network of IPv6 addresses.
    let mut sixth = open("2001:db8::7");
    sixth.expect("220");
    open("2001:db8::8").expect("421");
    // The proxy itself is not limited.
    let mut checks = [server.connect_smtp(), server.connect_smtp(), server.connect_smtp()];
    for check in &mut checks {
        check.send("PROXY UNKNOWN\r\n");
        check.expect("220");
    }
    first.command("QUIT", "221");
    assert!(eventually_true(|| open("203.0.113.7").line().is_some_and(|line| line.starts_with("220"))));
}

#[test]
fn pop3_and_imap_limit_clients_of_a_proxy() {
    limit_clients_of_a_proxy("pop3", "+OK ", "-ERR [SYS/TEMP] ", "QUIT\r\n");
    limit_clients_of_a_proxy("imap", "* OK ", "* BYE [UNAVAILABLE] ", "a LOGOUT\r\n");
}

/// Checks the limit of a protocol with these starts of greetings and refusals.
fn limit_clients_of_a_proxy(protocol: &str, greeting: &str, refusal: &str, quit: &str) {
    let settings = ["proxyprotocol=127.0.0.1", "maxconnectionsperip=1"];
    let [proxy, limit] = settings.map(|setting| format!("--{protocol}-{setting}"));
    let mut server = Server::start(&[&proxy, &limit]);
    let address = server.address_of(&format!("{} listening on tcp4 ", protocol.to_uppercase()));
    let open = |header: &[u8]| {
        let mut connection = LineConnection::new(connect(address));
        connection.send(header);
        connection
    };
    let mut first = open(&header_v1("203.0.113.7"));
    assert!(first.line().unwrap().starts_with(greeting));
    let mut second = open(&header_v2("203.0.113.7"));
    assert!(second.line().unwrap().starts_with(refusal));
    assert_eq!(second.line(), None);
    assert!(open(&header_v2("203.0.113.8")).line().unwrap().starts_with(greeting));
    assert_eq!(open(quit.as_bytes()).line(), None, "a reply without a PROXY header");
    first.send(quit);
    while first.line().is_some() {}
    assert!(eventually_true(|| open(&header_v1("203.0.113.7")).line().is_some_and(|line| line.starts_with(greeting))));
}

#[test]
fn direct_clients_are_limited() {
    let server = Server::start(&["--smtp-maxconnectionsperip=1", "--web-maxconnectionsperip=1"]);
    let mut mail = server.connect_smtp();
    mail.expect("220");
    server.connect_smtp().expect("421");
    drop(mail);
    assert!(eventually_true(|| server.connect_smtp().line().is_some_and(|line| line.starts_with("220"))));

    let web = open_request(&server, b"", "");
    let response = exchange(&server, GET);
    assert!(response.starts_with("HTTP/1.1 429 Too Many Requests\r\n"), "{response}");
    assert!(
        response.contains("\r\nretry-after: 1\r\n") && response.contains("too many connections or requests"),
        "{response}"
    );
    drop(web);
    assert!(eventually_true(|| exchange(&server, GET).starts_with("HTTP/1.1 200 ")));
}

#[test]
fn total_limit_of_web_connections_is_503() {
    let server = Server::start(&["--web-maxconnections=1", "--web-maxconnectionsperip=5"]);
    let _web = open_request(&server, b"", "");
    assert!(exchange(&server, GET).starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
}

#[test]
fn web_limit_per_client_with_proxy_header() {
    let server = Server::start(&["--web-proxyprotocol=127.0.0.1", "--web-maxconnectionsperip=1"]);
    let by = |client: &str| exchange(&server, [&header_v1(client)[..], GET.as_bytes()].concat());
    let open = open_request(&server, &header_v2("203.0.113.7"), "");
    assert!(by("203.0.113.7").starts_with("HTTP/1.1 429 "));
    assert!(by("203.0.113.8").starts_with("HTTP/1.1 200 "));
    drop(open);
    assert!(eventually_true(|| by("203.0.113.7").starts_with("HTTP/1.1 200 ")));
}

#[test]
fn web_limit_per_client_with_forwarded_header_of_a_trusted_proxy() {
    let server = Server::start(&["--web-trustedproxies=127.0.0.1,10.0.0.0/8", "--web-maxconnectionsperip=1"]);
    let by = |client: &str| exchange(&server, get(&format!("X-Forwarded-For: {client}\r\n")));
    let open = open_request(&server, b"", "X-Forwarded-For: 203.0.113.9, 203.0.113.7\r\n");
    let same = [
        "203.0.113.7",
        "127.0.0.1, 203.0.113.7",
        "203.0.113.7, 10.1.2.3",
        "203.0.113.7:4711",
        "1.2.3.4, 203.0.113.7\r\nX-Forwarded-For: 10.0.0.1",
    ];
    for client in same {
        let response = by(client);
        assert!(response.starts_with("HTTP/1.1 429 "), "{client}: {response}");
        assert!(response.contains("application/problem+json") && response.contains("retry-after: 1"), "{response}");
    }
    // Addresses further left are not trusted, and the proxy itself is not limited.
    for client in ["203.0.113.9", "203.0.113.7, 203.0.113.8", "203.0.113.7, unknown", "10.1.2.3"] {
        assert!(by(client).starts_with("HTTP/1.1 200 "), "{client}");
    }
    assert!(exchange(&server, GET).starts_with("HTTP/1.1 200 "));
    drop(open);
    assert!(eventually_true(|| by("203.0.113.7").starts_with("HTTP/1.1 200 ")));
}

#[test]
fn proxy_header_and_forwarded_header_can_be_combined() {
    let proxy = ["--web-proxyprotocol=127.0.0.1", "--web-trustedproxies=127.0.0.1,198.51.100.0/24"];
    let mut server = Server::start(&[&proxy[..], &["--web-maxconnectionsperip=1"]].concat());
    let by =
        |client: &str, headers: &str| exchange(&server, [&header_v1(client)[..], get(headers).as_bytes()].concat());
    let same = "X-Forwarded-For: 203.0.113.7\r\n";
    let _open = open_request(&server, &header_v2("203.0.113.7"), same);
    // A second proxy in front of this one forwards its client. Without a forwarded header, the client is that of the connection.
    for (client, headers) in [("203.0.113.7", same), ("198.51.100.1", same), ("203.0.113.7", "")] {
        assert!(by(client, headers).starts_with("HTTP/1.1 429 "), "{client} {headers:?}");
    }
    assert!(by("203.0.113.8", "X-Forwarded-For: 203.0.113.8\r\n").starts_with("HTTP/1.1 200 "));
    let warning = server.wait_for_log("too many open requests of one client behind a proxy");
    assert!(warning.contains(" ip=203.0.113.7"), "{warning}");
}

#[test]
fn forwarded_header_of_an_untrusted_peer_is_ignored() {
    let server = Server::start(&["--web-trustedproxies=10.0.0.0/8", "--web-maxconnectionsperip=2"]);
    let _open =
        ["203.0.113.7", "10.0.0.1"].map(|client| open_request(&server, b"", &format!("X-Forwarded-For: {client}\r\n")));
    assert!(exchange(&server, get("X-Forwarded-For: 203.0.113.8\r\n")).starts_with("HTTP/1.1 429 "));
}

#[test]
fn server_without_free_file_descriptors_is_not_ready() {
    let ours = command();
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 40 && exec \"$0\" \"$@\""]).arg(ours.get_program()).args(ours.get_args());
    for (name, value) in ours.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let mut server = Server::spawn(&mut limited);
    let mut http = LineConnection::new(connect(server.http));
    let mut get_path = |path: &str| {
        http.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let status = http.line().unwrap();
        let length = std::iter::from_fn(|| http.line()).take_while(|line| !line.is_empty());
        let length = length.filter_map(|line| line.strip_prefix("content-length: ").map(str::to_owned)).last();
        (status, http.exactly(length.unwrap().parse().unwrap()))
    };
    assert_eq!(get_path("/readyz"), ("HTTP/1.1 200 OK".to_owned(), "ok\n".to_owned()));
    let connections: Vec<_> = (0..60).map(|_| connect(server.smtp)).collect();
    server.wait_for_log("cannot accept connections");
    // The metrics of the process are still available.
    let (_, metrics) = get_path("/metrics");
    let metrics = Exposition::parse(&metrics);
    assert!(metrics.value("process_open_fds") >= metrics.value("process_max_fds"));
    assert!(metrics.value("process_resident_memory_bytes") > 1e6);
    let (status, body) = get_path("/readyz");
    assert_eq!(status, "HTTP/1.1 503 Service Unavailable");
    assert!(body.contains("The server cannot accept connections at the moment."), "{body}");
    drop(connections);
    assert!(eventually_true(|| get_path("/readyz").0 == "HTTP/1.1 200 OK"));
}
