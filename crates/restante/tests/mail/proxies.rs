//! Clients as the program sees them: behind proxies, by PROXY headers and by `X-Forwarded-For`, and too many of them.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use restante_testdir::TestDir;

use crate::support::exposition::Exposition;
use crate::support::tls::Wire;
use crate::support::{LONG, Server, Talk, command, connect};

/// Tries again for a while: a place is free a moment after its connection is closed.
fn sooner_or_later(mut attempt: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + LONG;
    while Instant::now() < deadline {
        if attempt() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// The header of version 1 for this client.
fn line(client: &str) -> Vec<u8> {
    let (family, server) = if client.contains(':') { ("TCP6", "2001:db8::25") } else { ("TCP4", "198.51.100.25") };
    format!("PROXY {family} {client} {server} 56324 25\r\n").into_bytes()
}

/// The header of version 2 for this client, with something behind the addresses that nobody here understands.
fn binary(client: &str) -> Vec<u8> {
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

/// An SMTP connection that begins with these bytes.
fn talk_by_proxy(server: &Server, header: &[u8]) -> Talk<TcpStream> {
    let mut talk = server.talk();
    talk.send(header);
    talk
}

/// Sends a mail to this mailbox, and returns its source.
fn send_mail<S: std::io::Read + std::io::Write>(server: &Server, talk: &mut Talk<S>, mailbox: &str) -> String {
    talk.open_mail(&format!("{mailbox}@x.org"));
    talk.say("DATA", "354");
    talk.say("Subject: hi\r\n\r\nhello\r\n.", "250");
    String::from_utf8(server.bytes(&format!("/api/v1/mailbox/{mailbox}/latest/source"))).unwrap()
}

/// Sends the bytes on a new HTTP connection, and reads all that comes back.
fn ask(server: &Server, request: impl AsRef<[u8]>) -> String {
    let mut stream = connect(server.http);
    stream.write_all(request.as_ref()).unwrap();
    let mut answer = Vec::new();
    // A server that closes with input unread resets the connection.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// A request whose body never comes, so that it stays open; the server has begun with it.
fn open_request(server: &Server, proxy_header: &[u8], headers: &str) -> Talk<TcpStream> {
    let mut talk = Talk::new(connect(server.http));
    talk.send(proxy_header);
    let headers = format!("Host: localhost\r\n{headers}Content-Length: 9\r\nExpect: 100-continue\r\n");
    talk.send(format!("PATCH /api/v1/mailbox/bob/1 HTTP/1.1\r\n{headers}\r\n"));
    assert_eq!(talk.line().as_deref(), Some("HTTP/1.1 100 Continue"));
    talk
}

const GET: &str = "GET /api/v1/mailbox/bob HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

fn get(headers: &str) -> String {
    GET.replace("\r\nConnection", &format!("\r\n{headers}Connection"))
}

#[test]
fn the_received_line_names_the_client_behind_a_proxy() {
    let server = Server::start(&["--smtp-proxyprotocol", "192.0.2.0/24,127.0.0.0/8"]);
    let clients = [("one", line("203.0.113.7")), ("two", binary("203.0.113.7"))];
    for (mailbox, header) in clients {
        let source = send_mail(&server, &mut talk_by_proxy(&server, &header), mailbox);
        assert!(source.contains("Received: from client.test ([203.0.113.7]) by mx.test"), "{source}");
    }
    for (mailbox, header) in [("three", line("2001:db8::7")), ("four", binary("2001:db8::7"))] {
        let source = send_mail(&server, &mut talk_by_proxy(&server, &header), mailbox);
        assert!(source.contains("2001:db8::7"), "{source}");
    }
    let own = [("five", &b"PROXY UNKNOWN\r\n"[..]), ("six", b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0")];
    for (mailbox, header) in own {
        let source = send_mail(&server, &mut talk_by_proxy(&server, header), mailbox);
        assert!(source.contains("([127.0.0.1])"), "{source}");
    }
}

#[test]
fn a_header_may_come_in_pieces_and_together_with_what_follows() {
    let server = Server::start(&["--smtp-proxyprotocol=127.0.0.1", "--web-proxyprotocol=127.0.0.1"]);
    for (mailbox, header) in [("line", line("203.0.113.7")), ("binary", binary("203.0.113.7"))] {
        let mut dripping = server.talk();
        dripping.stream.set_nodelay(true).unwrap();
        for byte in &header {
            dripping.send([*byte]);
            std::thread::sleep(Duration::from_millis(1));
        }
        dripping.open_mail(&format!("{mailbox}@x.org"));
        dripping.say("DATA", "354");
        dripping.say("Subject: hi\r\n\r\nhello\r\n.", "250");
        let (first, second) = header.split_at(20);
        let mut split = talk_by_proxy(&server, first);
        std::thread::sleep(Duration::from_millis(20));
        split.send([second, b"EHLO client.test\r\nQUIT\r\n"].concat());
        split.expect("220");
        split.expect("250");
        split.expect("221");
        // HTTP is behind the same proxy here.
        let source = GET.replace("/bob", &format!("/{mailbox}/latest/source"));
        let answer = ask(&server, [&header[..], source.as_bytes()].concat());
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("([203.0.113.7])"), "{answer}");
    }
}

#[test]
fn a_header_from_somebody_else_is_bad_input() {
    let server = Server::start(&["--smtp-proxyprotocol=192.0.2.0/24", "--web-proxyprotocol=192.0.2.0/24"]);
    let mut talk = talk_by_proxy(&server, &line("203.0.113.7"));
    talk.expect("220");
    talk.expect("500");
    talk.say("EHLO client.test", "250");
    assert!(ask(&server, [&line("203.0.113.7")[..], GET.as_bytes()].concat()).starts_with("HTTP/1.1 400 "));
    assert!(ask(&server, GET).starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_proxy_that_says_nothing_good_is_left_without_a_word() {
    let mut server = Server::start(&["--smtp-proxyprotocol=127.0.0.1", "--web-proxyprotocol=127.0.0.1"]);
    let noise: Vec<u8> = (0..5000_u32).map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let too_long = format!("PROXY UNKNOWN {}\r\n", "x".repeat(100));
    let mut huge = binary("203.0.113.7");
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
        assert_eq!(talk_by_proxy(&server, header).line(), None, "{header:?}");
        assert_eq!(ask(&server, header), "", "{header:?}");
    }
    let warning = server.logged("a connection without a good PROXY header was closed: something else came");
    assert!(warning.contains("WARN") && warning.contains(" proxy=127.0.0.1"), "{warning}");
    assert!(warning.contains(&format!(" listener=tcp4 {}", server.smtp)), "{warning}");
    // Silence ends after a while.
    let mut silent = server.talk();
    let mut began = talk_by_proxy(&server, b"PROXY TCP4 203.0");
    assert_eq!((silent.line(), began.line()), (None, None));
    talk_by_proxy(&server, &line("203.0.113.7")).expect("220");
    let metrics = ask(&server, format!("PROXY UNKNOWN\r\n{}", GET.replace("/api/v1/mailbox/bob", "/metrics")));
    for (protocol, outcome, count) in
        [("smtp", "malformed", 7), ("smtp", "late", 2), ("smtp", "ok", 1), ("http", "malformed", 7), ("http", "ok", 1)]
    {
        let series = format!("{{protocol=\"{protocol}\",outcome=\"{outcome}\"}} {count}\n");
        assert!(metrics.contains(&format!("restante_proxy_headers_total{series}")), "{series} {metrics}");
    }
}

#[test]
fn tls_begins_behind_the_header() {
    let tls = ["--smtp-tlsenabled", "--smtp-tlscert=self-signed", "--smtp-tlsaddr=127.0.0.1:0"];
    let mut server = Server::start(&[&tls[..], &["--smtp-proxyprotocol=127.0.0.1"]].concat());
    let address = server.address_of("SMTP with TLS listening on tcp4 ");
    for (mailbox, header) in [("one", line("203.0.113.7")), ("two", binary("203.0.113.7"))] {
        let mut talk = Talk::new(Wire::Plain(connect(address)));
        talk.send(header);
        talk.stream.start_tls();
        let source = send_mail(&server, &mut talk, mailbox);
        assert!(source.contains("([203.0.113.7])"), "{source}");
    }
    // STARTTLS is no other matter.
    let mut talk = Talk::new(Wire::Plain(connect(server.smtp)));
    talk.send(line("203.0.113.7"));
    talk.expect("220");
    talk.say("STARTTLS", "220");
    talk.stream.start_tls();
    talk.say("EHLO client.test", "250");
}

#[cfg(unix)]
#[test]
fn nobody_is_behind_a_unix_socket() {
    let dir = TestDir::new();
    let path = dir.path().join("lmtp.sock");
    let lmtp = format!("unix:{}", path.display());
    let arguments = ["--lmtp-addr", &lmtp, "--smtp-proxyprotocol=0.0.0.0/0,::/0", "--smtp-maxconnectionsperip=1"];
    let mut server = Server::start(&arguments);
    server.logged("LMTP listening on unix");
    let open = || {
        let stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Talk::new(stream)
    };
    let mut talks = [open(), open()];
    for talk in &mut talks {
        talk.expect("220");
        talk.say("LHLO client.test", "250");
    }
}

#[test]
fn each_client_of_a_proxy_has_its_own_places() {
    let server = Server::start(&["--smtp-proxyprotocol=127.0.0.1", "--smtp-maxconnectionsperip=1"]);
    let open = |client: &str| talk_by_proxy(&server, &binary(client));
    let mut first = open("203.0.113.7");
    first.expect("220");
    let mut second = open("203.0.113.7");
    second.expect("421");
    assert_eq!(second.line(), None);
    let mut other = open("203.0.113.8");
    other.expect("220");
    // One machine has a whole network of IPv6 addresses.
    let mut sixth = open("2001:db8::7");
    sixth.expect("220");
    open("2001:db8::8").expect("421");
    // The proxy itself has no limit.
    let mut checks = [server.talk(), server.talk(), server.talk()];
    for check in &mut checks {
        check.send("PROXY UNKNOWN\r\n");
        check.expect("220");
    }
    first.say("QUIT", "221");
    assert!(sooner_or_later(|| open("203.0.113.7").line().is_some_and(|line| line.starts_with("220"))));
}

#[test]
fn pop3_knows_the_clients_of_a_proxy_too() {
    let mut server = Server::start(&["--pop3-proxyprotocol=127.0.0.1", "--pop3-maxconnectionsperip=1"]);
    let address = server.address_of("POP3 listening on tcp4 ");
    let open = |header: &[u8]| {
        let mut talk = Talk::new(connect(address));
        talk.send(header);
        talk
    };
    let mut first = open(&line("203.0.113.7"));
    assert!(first.line().unwrap().starts_with("+OK Restante POP3 server ready <"));
    let mut second = open(&binary("203.0.113.7"));
    assert!(second.line().unwrap().starts_with("-ERR [SYS/TEMP] "));
    assert_eq!(second.line(), None);
    assert!(open(&binary("203.0.113.8")).line().unwrap().starts_with("+OK "));
    assert_eq!(open(b"CAPA\r\nUSER bob\r\nQUIT\r\n").line(), None, "no header, no word");
    first.send("QUIT\r\n");
    assert!(first.line().unwrap().starts_with("+OK "));
    assert!(sooner_or_later(|| open(&line("203.0.113.7")).line().is_some_and(|line| line.starts_with("+OK "))));
}

#[test]
fn an_ordinary_client_has_its_places_too() {
    let server = Server::start(&["--smtp-maxconnectionsperip=1", "--web-maxconnectionsperip=1"]);
    let mut mail = server.talk();
    mail.expect("220");
    server.talk().expect("421");
    drop(mail);
    assert!(sooner_or_later(|| server.talk().line().is_some_and(|line| line.starts_with("220"))));

    let web = open_request(&server, b"", "");
    let answer = ask(&server, GET);
    assert!(answer.starts_with("HTTP/1.1 429 Too Many Requests\r\n"), "{answer}");
    assert!(
        answer.contains("\r\nretry-after: 1\r\n") && answer.contains("too many connections or requests"),
        "{answer}"
    );
    drop(web);
    assert!(sooner_or_later(|| ask(&server, GET).starts_with("HTTP/1.1 200 ")));
}

#[test]
fn too_many_web_connections_in_total_are_another_matter() {
    let server = Server::start(&["--web-maxconnections=1", "--web-maxconnectionsperip=5"]);
    let _web = open_request(&server, b"", "");
    assert!(ask(&server, GET).starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
}

#[test]
fn web_clients_by_proxy_header() {
    let server = Server::start(&["--web-proxyprotocol=127.0.0.1", "--web-maxconnectionsperip=1"]);
    let by = |client: &str| ask(&server, [&line(client)[..], GET.as_bytes()].concat());
    let open = open_request(&server, &binary("203.0.113.7"), "");
    assert!(by("203.0.113.7").starts_with("HTTP/1.1 429 "));
    assert!(by("203.0.113.8").starts_with("HTTP/1.1 200 "));
    drop(open);
    assert!(sooner_or_later(|| by("203.0.113.7").starts_with("HTTP/1.1 200 ")));
}

#[test]
fn web_clients_by_forwarded_header_of_a_trusted_proxy() {
    let server = Server::start(&["--web-trustedproxies=127.0.0.1,10.0.0.0/8", "--web-maxconnectionsperip=1"]);
    let by = |client: &str| ask(&server, get(&format!("X-Forwarded-For: {client}\r\n")));
    let open = open_request(&server, b"", "X-Forwarded-For: 203.0.113.9, 203.0.113.7\r\n");
    let same = [
        "203.0.113.7",
        "127.0.0.1, 203.0.113.7",
        "203.0.113.7, 10.1.2.3",
        "203.0.113.7:4711",
        "1.2.3.4, 203.0.113.7\r\nX-Forwarded-For: 10.0.0.1",
    ];
    for client in same {
        let answer = by(client);
        assert!(answer.starts_with("HTTP/1.1 429 "), "{client}: {answer}");
        assert!(answer.contains("application/problem+json") && answer.contains("retry-after: 1"), "{answer}");
    }
    // Whoever stands further left is nobody; and the proxy itself has no limit.
    for client in ["203.0.113.9", "203.0.113.7, 203.0.113.8", "203.0.113.7, unknown", "10.1.2.3"] {
        assert!(by(client).starts_with("HTTP/1.1 200 "), "{client}");
    }
    assert!(ask(&server, GET).starts_with("HTTP/1.1 200 "));
    drop(open);
    assert!(sooner_or_later(|| by("203.0.113.7").starts_with("HTTP/1.1 200 ")));
}

#[test]
fn a_proxy_may_pass_on_its_clients_in_both_ways() {
    let proxy = ["--web-proxyprotocol=127.0.0.1", "--web-trustedproxies=127.0.0.1,198.51.100.0/24"];
    let mut server = Server::start(&[&proxy[..], &["--web-maxconnectionsperip=1"]].concat());
    let by = |client: &str, headers: &str| ask(&server, [&line(client)[..], get(headers).as_bytes()].concat());
    let same = "X-Forwarded-For: 203.0.113.7\r\n";
    let _open = open_request(&server, &binary("203.0.113.7"), same);
    // Whoever is behind another proxy in front of this one is its client, and without a header it is as the connection
    // says.
    for (client, headers) in [("203.0.113.7", same), ("198.51.100.1", same), ("203.0.113.7", "")] {
        assert!(by(client, headers).starts_with("HTTP/1.1 429 "), "{client} {headers:?}");
    }
    assert!(by("203.0.113.8", "X-Forwarded-For: 203.0.113.8\r\n").starts_with("HTTP/1.1 200 "));
    let warning = server.logged("too many requests of one client behind a proxy");
    assert!(warning.contains(" ip=203.0.113.7"), "{warning}");
}

#[test]
fn nobody_else_is_believed_about_clients() {
    let server = Server::start(&["--web-trustedproxies=10.0.0.0/8", "--web-maxconnectionsperip=2"]);
    let _open =
        ["203.0.113.7", "10.0.0.1"].map(|client| open_request(&server, b"", &format!("X-Forwarded-For: {client}\r\n")));
    assert!(ask(&server, get("X-Forwarded-For: 203.0.113.8\r\n")).starts_with("HTTP/1.1 429 "));
}

#[test]
fn a_server_that_cannot_accept_is_not_ready() {
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
    let mut supervisor = Talk::new(connect(server.http));
    let mut ask_for = |path: &str| {
        supervisor.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        let status = supervisor.line().unwrap();
        let length = std::iter::from_fn(|| supervisor.line()).take_while(|line| !line.is_empty());
        let length = length.filter_map(|line| line.strip_prefix("content-length: ").map(str::to_owned)).last();
        (status, supervisor.exactly(length.unwrap().parse().unwrap()))
    };
    assert_eq!(ask_for("/readyz"), ("HTTP/1.1 200 OK".to_owned(), "ok\n".to_owned()));
    let crowd: Vec<_> = (0..60).map(|_| connect(server.smtp)).collect();
    server.logged("cannot accept connections");
    // The process is told about all the same.
    let (_, metrics) = ask_for("/metrics");
    let metrics = Exposition::parse(&metrics);
    assert!(metrics.value("process_open_fds") >= metrics.value("process_max_fds"));
    assert!(metrics.value("process_resident_memory_bytes") > 1e6);
    let (status, body) = ask_for("/readyz");
    assert_eq!(status, "HTTP/1.1 503 Service Unavailable");
    assert!(body.contains("The server cannot accept connections at the moment."), "{body}");
    drop(crowd);
    assert!(sooner_or_later(|| ask_for("/readyz").0 == "HTTP/1.1 200 OK"));
}
