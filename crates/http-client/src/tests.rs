//! Tests of the client with servers on loopback.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::{BodyMode, ClientPolicy, HttpClient, HttpError, HttpService as _, Request, Response};

/// Starts a server that responds to every request with the result of the function, and closes the connection.
fn serve(respond: impl Fn(&str) -> String + Send + Sync + 'static) -> SocketAddr {
    serve_raw(move |mut stream, request| {
        let _ = stream.write_all(respond(request).as_bytes());
    })
}

/// Starts a server that calls the function with each connection after it has read the request.
fn serve_raw(handle: impl Fn(TcpStream, &str) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let text = read_request(&mut stream);
            handle(stream, &text);
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
        .map(|(_, value)| value)
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

fn redirect(status: u16, location: &str) -> String {
    format!("HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

const ALLOW_PRIVATE: ClientPolicy = ClientPolicy {
    allow_private_addresses: true,
    use_proxies: false,
    max_redirects: 3,
    body_mode: BodyMode::Full { max_bytes: 1000 },
    retry_all_methods: false,
};
const PUBLIC_ONLY: ClientPolicy = ClientPolicy { allow_private_addresses: false, ..ALLOW_PRIVATE };

fn request(method: &str, url: impl Into<String>) -> Request {
    Request { method: method.to_owned(), url: url.into(), timeout: Duration::from_secs(30), ..Request::default() }
}

fn send(policy: &ClientPolicy, request: &Request) -> Result<Response, HttpError> {
    HttpClient::new(policy.clone()).send(request)
}

/// Returns the request as a server receives it.
fn echo(request: impl FnOnce(SocketAddr) -> Request) -> String {
    let address = serve(ok);
    String::from_utf8(send(&ALLOW_PRIVATE, &request(address)).unwrap().body).unwrap()
}

#[test]
fn sends_method_url_headers_and_body() {
    let text = echo(|address| request("GET", format!("http://{address}/a/../b?c=d%20e#fragment")));
    assert!(text.starts_with("GET /b?c=d%20e HTTP/1.1\r\n"), "{text}");
    assert_eq!(header(&text, "user-agent"), Some(concat!("Restante/", env!("CARGO_PKG_VERSION"))));

    let text = echo(|address| Request {
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
        let text = echo(|address| request(method, format!("http://{address}/")));
        assert!(text.starts_with(&format!("{method} / HTTP/1.1\r\n")), "{text}");
    }
    for (method, length) in
        [("POST", Some("0")), ("PUT", Some("0")), ("PATCH", Some("0")), ("GET", None), ("DELETE", None)]
    {
        let text = echo(|address| request(method, format!("http://{address}/")));
        assert_eq!((header(&text, "content-length"), header(&text, "transfer-encoding")), (length, None), "{text}");
    }
    let text = echo(|address| request("GET", format!("http://user:pass@{address}/")));
    assert_eq!(header(&text, "authorization"), Some("Basic dXNlcjpwYXNz"));

    let text = echo(|address| Request { body: Some(b"x".to_vec()), ..request("GET", format!("http://{address}/")) });
    assert!(text.ends_with("\r\n\r\nx"), "{text}");
}

#[test]
fn returns_every_status() {
    for status in [200, 204, 304, 404, 500, 599, 300] {
        let address =
            serve(move |_| format!("HTTP/1.1 {status} Status\r\nX-One: 1\r\nX-ONE: 2\r\nContent-Length: 0\r\n\r\n"));
        let url = format!("http://{address}/");
        let response = send(&ALLOW_PRIVATE, &request("GET", url.clone())).unwrap();
        assert_eq!((response.status, &*response.url), (status, &*url));
        let values: Vec<_> =
            response.headers.iter().filter(|(name, _)| name == "x-one").map(|(_, value)| &**value).collect();
        assert_eq!(values, ["1", "2"]);
    }
}

#[test]
fn rejects_invalid_requests() {
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
        let result = send(&ALLOW_PRIVATE, &request(method, url));
        assert!(matches!(result, Err(HttpError::InvalidRequest(_))), "{method:?} {url:?}: {result:?}");
    }
    for (name, value) in [("a b", "c"), ("", "c"), ("a", "b\r\nInjected: yes"), ("a", "b\0")] {
        let headers = vec![(name.to_owned(), value.to_owned())];
        let result = send(&ALLOW_PRIVATE, &Request { headers, ..request("GET", "http://127.0.0.1/") });
        assert!(matches!(result, Err(HttpError::InvalidRequest(_))), "{name:?}: {value:?}: {result:?}");
    }
}

#[test]
fn blocks_private_addresses_in_every_spelling() {
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
        let result = send(&PUBLIC_ONLY, &request("GET", format!("http://{host}:{port}/")));
        assert!(matches!(result, Err(HttpError::ForbiddenAddress(_))), "{host}: {result:?}");
    }
    let open = send(&ALLOW_PRIVATE, &request("GET", format!("http://localhost:{port}/"))).unwrap();
    assert_eq!(open.body, b"secret");
}

#[test]
fn limits_responses() {
    let exact = serve(|_| ok(&"x".repeat(1000)));
    assert_eq!(send(&ALLOW_PRIVATE, &request("GET", format!("http://{exact}/"))).unwrap().body.len(), 1000);

    let longer = serve(|_| ok(&"x".repeat(1001)));
    assert_eq!(
        send(&ALLOW_PRIVATE, &request("GET", format!("http://{longer}/"))).unwrap_err(),
        HttpError::ResponseTooLarge
    );

    let endless = serve_raw(|mut stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 1000]).is_ok() {}
    });
    assert_eq!(
        send(&ALLOW_PRIVATE, &request("GET", format!("http://{endless}/"))).unwrap_err(),
        HttpError::ResponseTooLarge
    );

    let head = serve_raw(|mut stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(b"X-Header: x\r\n").is_ok() {}
    });
    let result = send(&ALLOW_PRIVATE, &request("GET", format!("http://{head}/")));
    assert!(matches!(result, Err(HttpError::Network(_))), "{result:?}");
}

#[test]
fn decompresses_gzip_within_the_same_limits() {
    let gzip = |length: usize| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&b"x".repeat(length)).unwrap();
        encoder.finish().unwrap()
    };
    let send_as = |name: &'static str, body: Vec<u8>, policy: &ClientPolicy| {
        let address = serve_raw(move |mut stream, request| {
            let accept_encoding = header(request, "accept-encoding").unwrap_or("-");
            let head = format!(
                "HTTP/1.1 200 OK\r\nX-Accepted: {accept_encoding}\r\nContent-Encoding: {name}\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        });
        send(policy, &request("GET", format!("http://{address}/")))
    };
    let send_to = |body: Vec<u8>, policy: &ClientPolicy| send_as("gzip", body, policy);
    let response = send_to(gzip(1000), &ALLOW_PRIVATE).unwrap();
    assert_eq!(response.body, b"x".repeat(1000));
    assert_eq!(response.headers, [("x-accepted".to_owned(), "gzip".to_owned())]);
    for name in ["GZip", "x-gzip", "X-GZIP"] {
        assert_eq!(send_as(name, gzip(3), &ALLOW_PRIVATE).unwrap().body, b"xxx", "{name}");
    }
    assert_eq!(send_as("identity", gzip(3), &ALLOW_PRIVATE).unwrap().body, gzip(3));
    assert_eq!(send_to([gzip(1), gzip(2)].concat(), &ALLOW_PRIVATE).unwrap().body, b"xxx");
    for trailing in [&[0; 512][..], b"garbage", b"\x1f", b"\x1fx"] {
        let body = send_to([&gzip(1)[..], &gzip(2), trailing].concat(), &ALLOW_PRIVATE).unwrap().body;
        assert_eq!(body, b"xxx", "{trailing:?}");
    }
    let broken = [gzip(1), gzip(2)[..15].to_vec()].concat();
    assert!(matches!(send_to(broken, &ALLOW_PRIVATE), Err(HttpError::Network(_))));
    assert_eq!(send_to(gzip(10_000_000), &ALLOW_PRIVATE).unwrap_err(), HttpError::ResponseTooLarge);
    assert_eq!(send_to(gzip(500).repeat(2), &ALLOW_PRIVATE).unwrap().body.len(), 1000);
    assert_eq!(send_to(gzip(500).repeat(3), &ALLOW_PRIVATE).unwrap_err(), HttpError::ResponseTooLarge);
    assert_eq!(send_to(Vec::new(), &ALLOW_PRIVATE).unwrap().body, b"");
    assert!(matches!(send_to(gzip(100)[..20].to_vec(), &ALLOW_PRIVATE), Err(HttpError::Network(_))));
    assert!(matches!(send_to(b"no such thing".to_vec(), &ALLOW_PRIVATE), Err(HttpError::Network(_))));
    let response = send_to(gzip(10_000_000), &ClientPolicy { body_mode: BodyMode::HeadOnly, ..ALLOW_PRIVATE }).unwrap();
    assert_eq!(response.headers[0].1, "-");
}

#[test]
fn head_only_ignores_the_body() {
    let head_only = ClientPolicy { body_mode: BodyMode::HeadOnly, ..ALLOW_PRIVATE };
    let short = serve(|_| ok("secret"));
    let long = serve(|_| ok(&"x".repeat(1 << 20)));
    let endless = serve_raw(|mut stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 1000]).is_ok() {}
    });
    let incomplete = serve(|_| "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc".to_owned());
    let trickling = serve_raw(|mut stream, _| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    for (address, seconds) in [(short, 30), (long, 30), (endless, 30), (incomplete, 30), (trickling, 5)] {
        let timeout = Duration::from_secs(seconds);
        let response = send(&head_only, &Request { timeout, ..request("GET", format!("http://{address}/")) }).unwrap();
        assert_eq!((response.status, response.body.len()), (200, 0), "{address}");
    }
}

#[test]
fn limits_the_time_of_slow_servers() {
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
    let redirect_loop = serve(|_| {
        thread::sleep(Duration::from_millis(150));
        redirect(302, "/")
    });
    let many_redirects = ClientPolicy { max_redirects: 100, ..ALLOW_PRIVATE };
    for address in [silent, trickling, redirect_loop] {
        let started = Instant::now();
        let request = Request { timeout: Duration::from_millis(300), ..request("GET", format!("http://{address}/")) };
        assert_eq!(send(&many_redirects, &request).unwrap_err(), HttpError::Timeout, "{address}");
        assert!(started.elapsed() < Duration::from_mins(1));
    }
    let zero_timeout = Request { timeout: Duration::ZERO, ..request("GET", format!("http://{silent}/")) };
    assert_eq!(send(&ALLOW_PRIVATE, &zero_timeout).unwrap_err(), HttpError::Timeout);
}

#[test]
fn reports_network_errors() {
    // Only root could listen on this port, and nothing does.
    let closed = SocketAddr::from(([127, 0, 0, 1], 1));
    let empty = serve(|_| String::new());
    let nonsense = serve(|_| "SSH-2.0-OpenSSH\r\n\r\n".to_owned());
    let short = serve(|_| "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc".to_owned());
    let result = send(&ALLOW_PRIVATE, &request("GET", format!("http://{closed}/")));
    assert_eq!(result.unwrap_err(), HttpError::ConnectionRefused);
    for address in [empty, nonsense, short] {
        let result = send(&ALLOW_PRIVATE, &request("GET", format!("http://{address}/")));
        assert!(matches!(result, Err(HttpError::Network(_))), "{result:?}");
    }
    let closes_at_once = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", closes_at_once.local_addr().unwrap());
    // Stays open, so that a second attempt is not refused.
    thread::spawn(move || closes_at_once.incoming().for_each(drop));
    let result = send(&ALLOW_PRIVATE, &request("GET", url));
    assert!(matches!(result, Err(HttpError::Network(_))), "{result:?}");
}

/// Sends a request to `/start`, which redirects with this status. Returns a description of the request that arrives at
/// the target.
fn follow_redirect(status: u16, method: &str) -> String {
    let address =
        serve(move |request| if request.contains(" /start ") { redirect(status, "end?x") } else { ok(request) });
    let headers =
        vec![("Content-Type".to_owned(), "text/x".to_owned()), ("Authorization".to_owned(), "key".to_owned())];
    let start = Request { headers, body: Some(b"body".to_vec()), ..request(method, format!("http://{address}/start")) };
    let response = send(&ALLOW_PRIVATE, &start).unwrap();
    assert_eq!(response.url, format!("http://{address}/end?x"));
    let text = String::from_utf8(response.body).unwrap();
    assert_eq!(header(&text, "authorization"), Some("key"));
    let kind = header(&text, "content-type").unwrap_or("-");
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    format!("{} {kind} {body}", head.lines().next().unwrap())
}

#[test]
fn follows_redirects() {
    for (status, method, expected) in [
        (301, "POST", "GET /end?x HTTP/1.1 - "),
        (302, "PUT", "GET /end?x HTTP/1.1 - "),
        (303, "DELETE", "GET /end?x HTTP/1.1 - "),
        (307, "POST", "POST /end?x HTTP/1.1 text/x body"),
        (308, "PATCH", "PATCH /end?x HTTP/1.1 text/x body"),
        (302, "GET", "GET /end?x HTTP/1.1 - "),
    ] {
        assert_eq!(follow_redirect(status, method), expected, "{status} {method}");
    }
}

#[test]
fn limits_redirects() {
    let redirect_loop = serve(|_| redirect(302, "/"));
    let url = format!("http://{redirect_loop}/");
    assert_eq!(
        send(&ALLOW_PRIVATE, &request("GET", url.clone())).unwrap_err(),
        HttpError::Network("too many redirects".to_owned())
    );
    let no_redirects = ClientPolicy { max_redirects: 0, ..ALLOW_PRIVATE };
    assert_eq!(send(&no_redirects, &request("GET", url)).unwrap().status, 302);

    let table = [
        ("file:///etc/passwd", "invalid request"),
        ("gopher://127.0.0.1/", "invalid request"),
        ("http://[", "invalid request"),
        ("//127.0.0.1:1/", "connection refused"),
    ];
    for (location, expected) in table {
        let address = serve(move |_| redirect(302, location));
        let kind = match send(&ALLOW_PRIVATE, &request("GET", format!("http://{address}/"))) {
            Err(HttpError::InvalidRequest(_)) => "invalid request",
            Err(HttpError::ConnectionRefused) => "connection refused",
            _ => "other",
        };
        assert_eq!(kind, expected, "{location}");
    }
    let without_location = serve(|_| "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".to_owned());
    assert_eq!(send(&ALLOW_PRIVATE, &request("GET", format!("http://{without_location}/"))).unwrap().status, 302);
}

#[test]
fn drops_secrets_on_redirect_to_another_host() {
    let other = serve(ok);
    let first = serve(move |_| redirect(307, &format!("http://{other}/")));
    let headers = [("Authorization", "key"), ("Cookie", "a=b"), ("Host", "first.test"), ("X-Plain", "kept")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let response = send(&ALLOW_PRIVATE, &Request { headers, ..request("GET", format!("http://{first}/")) }).unwrap();
    let text = String::from_utf8(response.body).unwrap();
    assert_eq!(header(&text, "authorization"), None);
    assert_eq!(header(&text, "cookie"), None);
    assert_eq!(header(&text, "host"), Some(&*other.to_string()));
    assert_eq!(header(&text, "x-plain"), Some("kept"));
}

#[test]
fn follows_redirect_with_incomplete_body() {
    let end = serve(|_| ok("there"));
    let head = format!("HTTP/1.1 302 Found\r\nLocation: http://{end}/\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n");
    let broken = serve(move |_| head.clone());
    assert_eq!(send(&ALLOW_PRIVATE, &request("GET", format!("http://{broken}/"))).unwrap().body, b"there");
}

#[test]
fn reuses_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        // Accepts only one connection.
        let (mut stream, _) = listener.accept().unwrap();
        drop(listener);
        while !read_request(&mut stream).is_empty() {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
        }
    });
    let client = HttpClient::new(ALLOW_PRIVATE);
    for _ in 0..3 {
        assert_eq!(client.send(&request("GET", format!("http://{address}/"))).unwrap().body, b"ok");
    }
}

#[test]
fn retries_on_a_broken_reused_connection_if_allowed() {
    let table = [("GET", false, true), ("PUT", false, true), ("POST", false, false), ("POST", true, true)];
    for (method, retry_all_methods, succeeds) in table {
        // Each connection serves one response, and breaks when it is reused.
        let address = serve_raw(|mut stream, _| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            read_request(&mut stream);
        });
        let client = HttpClient::new(ClientPolicy { retry_all_methods, ..ALLOW_PRIVATE });
        let request = Request { body: Some(b"x".to_vec()), ..request(method, format!("http://{address}/")) };
        assert!(client.send(&request).is_ok());
        let second = client.send(&request);
        assert_eq!(second.is_ok(), succeeds, "{method} {retry_all_methods} {second:?}");
    }
}

#[test]
fn does_not_retry_on_a_new_connection() {
    let connections = Arc::new(AtomicUsize::new(0));
    let seen = connections.clone();
    let address = serve_raw(move |_, _| {
        seen.fetch_add(1, Ordering::Relaxed);
    });
    let policy = ClientPolicy { retry_all_methods: true, ..ALLOW_PRIVATE };
    assert!(matches!(send(&policy, &request("GET", format!("http://{address}/"))), Err(HttpError::Network(_))));
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}
