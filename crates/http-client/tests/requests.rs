//! The client against servers on loopback that say, and do, whatever a test needs.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use restante_http_client::{BodyMode, ClientPolicy, HttpClient, HttpError, HttpService as _, Request, Response};

/// A server that answers every request with what the function makes of its text, and hangs up.
fn serve(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> SocketAddr {
    serve_raw(move |mut stream, request| {
        let _ = stream.write_all(answer(request).as_bytes());
    })
}

/// A server that leaves it to the function what to do with a connection after the request.
fn serve_raw(answer: impl Fn(TcpStream, &str) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let text = read_request(&mut stream);
            answer(stream, &text);
        }
    });
    address
}

/// Reads head and body.
fn read_request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let mut byte = [0];
    let mut missing = None;
    while missing != Some(0) && stream.read(&mut byte).is_ok_and(|count| count > 0) {
        text.push(byte[0]);
        missing = match missing {
            Some(count) => Some(count - 1),
            None if text.ends_with(b"\r\n\r\n") => Some(length(&String::from_utf8_lossy(&text))),
            None => None,
        };
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn length(head: &str) -> usize {
    header(head, "content-length").map_or(0, |value| value.parse().unwrap())
}

fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    request
        .lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|it| it.1)
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

fn redirect(status: u16, location: &str) -> String {
    format!("HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

const OPEN: ClientPolicy = ClientPolicy {
    allow_private_addresses: true,
    use_proxies: false,
    max_redirects: 3,
    body_mode: BodyMode::Full { max_bytes: 1000 },
    retry_all_methods: false,
};
const CLOSED: ClientPolicy = ClientPolicy { allow_private_addresses: false, ..OPEN };

fn request(method: &str, url: impl Into<String>) -> Request {
    Request { method: method.to_owned(), url: url.into(), timeout: Duration::from_secs(30), ..Request::default() }
}

fn send(rules: &ClientPolicy, request: &Request) -> Result<Response, HttpError> {
    HttpClient::new(rules.clone()).send(request)
}

/// What the request looks like to a server that answers with the text of it.
fn echoed(request: impl FnOnce(SocketAddr) -> Request) -> String {
    let address = serve(ok);
    String::from_utf8(send(&OPEN, &request(address)).unwrap().body).unwrap()
}

#[test]
fn a_request_arrives_as_it_was_meant() {
    let text = echoed(|address| request("GET", format!("http://{address}/a/../b?c=d%20e#fragment")));
    assert!(text.starts_with("GET /b?c=d%20e HTTP/1.1\r\n"), "{text}");
    assert_eq!(header(&text, "user-agent"), Some(concat!("Restante/", env!("CARGO_PKG_VERSION"))));

    let text = echoed(|address| Request {
        body: Some(b"text".to_vec()),
        headers: [("User-Agent", "mine"), ("X-Test", "grün"), ("Content-Length", "99")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
        ..request("POST", format!("http://{address}/"))
    });
    assert_eq!(header(&text, "user-agent"), Some("mine"));
    assert_eq!(header(&text, "x-test"), Some("grün"));
    assert_eq!(header(&text, "content-length"), Some("4"));
    assert!(text.ends_with("\r\n\r\ntext"), "{text}");

    for method in ["POST", "PUT", "DELETE", "PROPFIND"] {
        let text = echoed(|address| request(method, format!("http://{address}/")));
        assert!(text.starts_with(&format!("{method} / HTTP/1.1\r\n")), "{text}");
    }
    for (method, length) in
        [("POST", Some("0")), ("PUT", Some("0")), ("PATCH", Some("0")), ("GET", None), ("DELETE", None)]
    {
        let text = echoed(|address| request(method, format!("http://{address}/")));
        assert_eq!((header(&text, "content-length"), header(&text, "transfer-encoding")), (length, None), "{text}");
    }
    let text = echoed(|address| request("GET", format!("http://user:pass@{address}/")));
    assert_eq!(header(&text, "authorization"), Some("Basic dXNlcjpwYXNz"));

    let text = echoed(|address| Request { body: Some(b"x".to_vec()), ..request("GET", format!("http://{address}/")) });
    assert!(text.ends_with("\r\n\r\nx"), "{text}");
}

#[test]
fn every_status_is_an_answer() {
    for status in [200, 204, 304, 404, 500, 599, 300] {
        let address =
            serve(move |_| format!("HTTP/1.1 {status} So\r\nX-One: 1\r\nX-ONE: 2\r\nContent-Length: 0\r\n\r\n"));
        let url = format!("http://{address}/");
        let answer = send(&OPEN, &request("GET", url.clone())).unwrap();
        assert_eq!((answer.status, &*answer.url), (status, &*url));
        let ones: Vec<_> = answer.headers.iter().filter(|(name, _)| name == "x-one").map(|it| &*it.1).collect();
        assert_eq!(ones, ["1", "2"]);
    }
}

#[test]
fn what_makes_no_sense_is_malformed() {
    let table = [
        ("GET", ""),
        ("GET", "nonsense"),
        ("GET", "/path"),
        ("GET", "file:///etc/passwd"),
        ("GET", "ftp://127.0.0.1/"),
        ("GET", "unix:/run/docker.sock"),
        ("GET", "http://"),
        ("GET", "http://[::1"),
        ("GET", "http://127.0.0.1:99999/"),
        ("", "http://127.0.0.1/"),
        ("G T", "http://127.0.0.1/"),
        ("GET\r\nX: y", "http://127.0.0.1/"),
        ("CONNECT", "http://127.0.0.1/"),
        ("TRACE", "http://127.0.0.1/"),
    ];
    for (method, url) in table {
        let result = send(&OPEN, &request(method, url));
        assert!(matches!(result, Err(HttpError::InvalidRequest(_))), "{method:?} {url:?}: {result:?}");
    }
    for (name, value) in [("a b", "c"), ("", "c"), ("a", "b\r\nInjected: yes"), ("a", "b\0")] {
        let headers = vec![(name.to_owned(), value.to_owned())];
        let result = send(&OPEN, &Request { headers, ..request("GET", "http://127.0.0.1/") });
        assert!(matches!(result, Err(HttpError::InvalidRequest(_))), "{name:?}: {value:?}: {result:?}");
    }
}

#[test]
fn private_addresses_are_out_of_reach_in_every_spelling() {
    let address = serve(|_| ok("secret"));
    let port = address.port();
    let hosts = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "0",
        "0.0.0.0",
        "localhost",
        "LOCALHOST",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "169.254.169.254",
        "10.0.0.1",
        "user:password@127.0.0.1",
        "１２７.０.０.１",
    ];
    for host in hosts {
        let result = send(&CLOSED, &request("GET", format!("http://{host}:{port}/")));
        assert!(matches!(result, Err(HttpError::ForbiddenAddress(_))), "{host}: {result:?}");
    }
    let open = send(&OPEN, &request("GET", format!("http://localhost:{port}/"))).unwrap();
    assert_eq!(open.body, b"secret");
}

#[test]
fn answers_are_bounded() {
    let exact = serve(|_| ok(&"x".repeat(1000)));
    assert_eq!(send(&OPEN, &request("GET", format!("http://{exact}/"))).unwrap().body.len(), 1000);

    let longer = serve(|_| ok(&"x".repeat(1001)));
    assert_eq!(send(&OPEN, &request("GET", format!("http://{longer}/"))).unwrap_err(), HttpError::ResponseTooLarge);

    let endless = serve_raw(|mut stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 1000]).is_ok() {}
    });
    assert_eq!(send(&OPEN, &request("GET", format!("http://{endless}/"))).unwrap_err(), HttpError::ResponseTooLarge);

    let head = serve_raw(|mut stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(b"X-Header: x\r\n").is_ok() {}
    });
    let result = send(&OPEN, &request("GET", format!("http://{head}/")));
    assert!(matches!(result, Err(HttpError::Network(_))), "{result:?}");
}

#[test]
fn packed_answers_are_unpacked_within_the_same_bounds() {
    let packed = |length: usize| {
        let mut packer = GzEncoder::new(Vec::new(), Compression::default());
        packer.write_all(&b"x".repeat(length)).unwrap();
        packer.finish().unwrap()
    };
    let send_as = |name: &'static str, body: Vec<u8>, rules: &ClientPolicy| {
        let address = serve_raw(move |mut stream, request| {
            let asks = header(request, "accept-encoding").unwrap_or("-");
            let head = format!(
                "HTTP/1.1 200 OK\r\nX-Asks: {asks}\r\nContent-Encoding: {name}\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        });
        send(rules, &request("GET", format!("http://{address}/")))
    };
    let send_to = |body: Vec<u8>, rules: &ClientPolicy| send_as("gzip", body, rules);
    let answer = send_to(packed(1000), &OPEN).unwrap();
    assert_eq!(answer.body, b"x".repeat(1000));
    assert_eq!(answer.headers, [("x-asks".to_owned(), "gzip".to_owned())]);
    for name in ["GZip", "x-gzip", "X-GZIP"] {
        assert_eq!(send_as(name, packed(3), &OPEN).unwrap().body, b"xxx", "{name}");
    }
    assert_eq!(send_as("identity", packed(3), &OPEN).unwrap().body, packed(3));
    assert_eq!(send_to([packed(1), packed(2)].concat(), &OPEN).unwrap().body, b"xxx");
    for behind in [&[0; 512][..], b"garbage", b"\x1f", b"\x1fx"] {
        let body = send_to([&packed(1)[..], &packed(2), behind].concat(), &OPEN).unwrap().body;
        assert_eq!(body, b"xxx", "{behind:?}");
    }
    let broken = [packed(1), packed(2)[..15].to_vec()].concat();
    assert!(matches!(send_to(broken, &OPEN), Err(HttpError::Network(_))));
    assert_eq!(send_to(packed(10_000_000), &OPEN).unwrap_err(), HttpError::ResponseTooLarge);
    assert_eq!(send_to(packed(500).repeat(2), &OPEN).unwrap().body.len(), 1000);
    assert_eq!(send_to(packed(500).repeat(3), &OPEN).unwrap_err(), HttpError::ResponseTooLarge);
    assert_eq!(send_to(Vec::new(), &OPEN).unwrap().body, b"");
    assert!(matches!(send_to(packed(100)[..20].to_vec(), &OPEN), Err(HttpError::Network(_))));
    assert!(matches!(send_to(b"no such thing".to_vec(), &OPEN), Err(HttpError::Network(_))));
    let answer = send_to(packed(10_000_000), &ClientPolicy { body_mode: BodyMode::HeadOnly, ..OPEN }).unwrap();
    assert_eq!(answer.headers[0].1, "-");
}

#[test]
fn where_only_the_head_matters_the_body_does_no_harm() {
    let heads = ClientPolicy { body_mode: BodyMode::HeadOnly, ..OPEN };
    let short = serve(|_| ok("secret"));
    let long = serve(|_| ok(&"x".repeat(1 << 20)));
    let endless = serve_raw(|mut stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 1000]).is_ok() {}
    });
    let breaks_off = serve(|_| "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc".to_owned());
    let trickling = serve_raw(|mut stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    for (address, seconds) in [(short, 30), (long, 30), (endless, 30), (breaks_off, 30), (trickling, 5)] {
        let timeout = Duration::from_secs(seconds);
        let answer = send(&heads, &Request { timeout, ..request("GET", format!("http://{address}/")) }).unwrap();
        assert_eq!((answer.status, answer.body.len()), (200, 0), "{address}");
    }
}

#[test]
fn time_is_bounded_however_a_server_spends_it() {
    let silent = serve_raw(|stream, _| {
        thread::sleep(Duration::from_mins(1));
        drop(stream);
    });
    let trickling = serve_raw(|mut stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    let circling = serve(|_| {
        thread::sleep(Duration::from_millis(150));
        redirect(302, "/")
    });
    let patient = ClientPolicy { max_redirects: 100, ..OPEN };
    for address in [silent, trickling, circling] {
        let begin = Instant::now();
        let request = Request { timeout: Duration::from_millis(300), ..request("GET", format!("http://{address}/")) };
        assert_eq!(send(&patient, &request).unwrap_err(), HttpError::Timeout, "{address}");
        assert!(begin.elapsed() < Duration::from_mins(1));
    }
    let none = Request { timeout: Duration::ZERO, ..request("GET", format!("http://{silent}/")) };
    assert_eq!(send(&OPEN, &none).unwrap_err(), HttpError::Timeout);
}

#[test]
fn what_breaks_is_told() {
    // Only root could listen on this port, and nothing does.
    let closed = SocketAddr::from(([127, 0, 0, 1], 1));
    let hangs_up = serve(|_| String::new());
    let nonsense = serve(|_| "SSH-2.0-OpenSSH\r\n\r\n".to_owned());
    let short = serve(|_| "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc".to_owned());
    for address in [closed, hangs_up, nonsense, short] {
        let result = send(&OPEN, &request("GET", format!("http://{address}/")));
        assert!(matches!(result, Err(HttpError::Network(_))), "{result:?}");
    }
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", deaf.local_addr().unwrap());
    thread::spawn(move || deaf.accept().map(drop));
    let result = send(&OPEN, &request("GET", url));
    assert!(matches!(result, Err(HttpError::Network(_))), "{result:?}");
}

/// Where a request to `/start` ends, and as what, when `/start` redirects with this status.
fn followed(status: u16, method: &str) -> String {
    let address =
        serve(move |request| if request.contains(" /start ") { redirect(status, "end?x") } else { ok(request) });
    let headers =
        vec![("Content-Type".to_owned(), "text/x".to_owned()), ("Authorization".to_owned(), "key".to_owned())];
    let start = Request { headers, body: Some(b"body".to_vec()), ..request(method, format!("http://{address}/start")) };
    let answer = send(&OPEN, &start).unwrap();
    assert_eq!(answer.url, format!("http://{address}/end?x"));
    let text = String::from_utf8(answer.body).unwrap();
    assert_eq!(header(&text, "authorization"), Some("key"));
    let kind = header(&text, "content-type").unwrap_or("-");
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    format!("{} {kind} {body}", head.lines().next().unwrap())
}

#[test]
fn redirects_are_followed() {
    for (status, method, expected) in [
        (301, "POST", "GET /end?x HTTP/1.1 - "),
        (302, "PUT", "GET /end?x HTTP/1.1 - "),
        (303, "DELETE", "GET /end?x HTTP/1.1 - "),
        (307, "POST", "POST /end?x HTTP/1.1 text/x body"),
        (308, "PATCH", "PATCH /end?x HTTP/1.1 text/x body"),
        (302, "GET", "GET /end?x HTTP/1.1 - "),
    ] {
        assert_eq!(followed(status, method), expected, "{status} {method}");
    }
}

#[test]
fn redirects_have_an_end() {
    let circle = serve(|_| redirect(302, "/"));
    let url = format!("http://{circle}/");
    assert_eq!(
        send(&OPEN, &request("GET", url.clone())).unwrap_err(),
        HttpError::Network("too many redirects".to_owned())
    );
    let never = ClientPolicy { max_redirects: 0, ..OPEN };
    assert_eq!(send(&never, &request("GET", url)).unwrap().status, 302);

    let table = [
        ("file:///etc/passwd", "malformed"),
        ("gopher://127.0.0.1/", "malformed"),
        ("http://[", "malformed"),
        ("//127.0.0.1:1/", "broken"),
    ];
    for (location, expected) in table {
        let address = serve(move |_| redirect(302, location));
        let kind = match send(&OPEN, &request("GET", format!("http://{address}/"))) {
            Err(HttpError::InvalidRequest(_)) => "malformed",
            Err(HttpError::Network(_)) => "broken",
            _ => "other",
        };
        assert_eq!(kind, expected, "{location}");
    }
    let nowhere = serve(|_| "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".to_owned());
    assert_eq!(send(&OPEN, &request("GET", format!("http://{nowhere}/"))).unwrap().status, 302);
}

#[test]
fn secrets_are_not_carried_to_another_host() {
    let other = serve(ok);
    let first = serve(move |_| redirect(307, &format!("http://{other}/")));
    let headers = [("Authorization", "key"), ("Cookie", "a=b"), ("Host", "first.test"), ("X-Plain", "kept")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let answer = send(&OPEN, &Request { headers, ..request("GET", format!("http://{first}/")) }).unwrap();
    let text = String::from_utf8(answer.body).unwrap();
    assert_eq!(header(&text, "authorization"), None);
    assert_eq!(header(&text, "cookie"), None);
    assert_eq!(header(&text, "host"), Some(&*other.to_string()));
    assert_eq!(header(&text, "x-plain"), Some("kept"));
}

#[test]
fn a_redirect_that_breaks_off_does_no_harm() {
    let end = serve(|_| ok("there"));
    let head = format!("HTTP/1.1 302 Found\r\nLocation: http://{end}/\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n");
    let broken = serve(move |_| head.clone());
    assert_eq!(send(&OPEN, &request("GET", format!("http://{broken}/"))).unwrap().body, b"there");
}

#[test]
fn a_connection_is_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        // One connection, and no other.
        let (mut stream, _) = listener.accept().unwrap();
        drop(listener);
        while !read_request(&mut stream).is_empty() {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
        }
    });
    let courier = HttpClient::new(OPEN);
    for _ in 0..3 {
        assert_eq!(courier.send(&request("GET", format!("http://{address}/"))).unwrap().body, b"ok");
    }
}

#[test]
fn a_kept_connection_that_breaks_is_no_trouble_when_the_request_may_arrive_twice() {
    let table = [("GET", false, true), ("PUT", false, true), ("POST", false, false), ("POST", true, true)];
    for (method, repeatable, arrives) in table {
        // Each connection is good for one answer, and breaks when it is used again.
        let address = serve_raw(|mut stream, _| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            read_request(&mut stream);
        });
        let courier = HttpClient::new(ClientPolicy { retry_all_methods: repeatable, ..OPEN });
        let request = Request { body: Some(b"x".to_vec()), ..request(method, format!("http://{address}/")) };
        assert!(courier.send(&request).is_ok());
        let second = courier.send(&request);
        assert_eq!(second.is_ok(), arrives, "{method} {repeatable} {second:?}");
    }
}

#[test]
fn a_new_connection_that_breaks_is_not_tried_again() {
    let connections = Arc::new(AtomicUsize::new(0));
    let seen = connections.clone();
    let address = serve_raw(move |_, _| {
        seen.fetch_add(1, Ordering::Relaxed);
    });
    let rules = ClientPolicy { retry_all_methods: true, ..OPEN };
    assert!(matches!(send(&rules, &request("GET", format!("http://{address}/"))), Err(HttpError::Network(_))));
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}
