//! All external hosts as the browser sees them: every host below `.test` is this server, which responds with an image or an empty page
//! and records the requests. No test uses a real network.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::support::{TEST_TIMEOUT, connect};

const IMAGE: &str =
    "<svg xmlns='http://www.w3.org/2000/svg' width='16' height='16'><rect width='16' height='16'/></svg>";

/// The path of the empty page on every host.
pub(crate) const PAGE: &str = "/page.html";

/// What [`ExternalHosts::clear`] sends instead of an HTTP request.
const CLEAR: &[u8] = b"CLEAR\r\n";

/// The requests that a server has recorded.
type Record = Arc<Mutex<Vec<String>>>;

/// The server for all external hosts.
pub(crate) struct ExternalHosts {
    address: SocketAddr,
    /// The record of connections that are accepted now. A connection that was accepted before it was replaced stays in its old record.
    current: Arc<Mutex<Record>>,
}

impl ExternalHosts {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let external = Self { address, current: Arc::default() };
        let current = Arc::clone(&external.current);
        // The thread runs until the test program exits.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let record = Arc::clone(&current.lock().unwrap());
                let current = Arc::clone(&current);
                std::thread::spawn(move || serve(&stream, &record, &current));
            }
        });
        external
    }

    /// Returns the browser flag that resolves test hosts to this server (RFC 2606, RFC 5737) and blocks all other hosts: the browser
    /// itself sends requests to its vendor and for its start page.
    pub(crate) fn flag(&self) -> String {
        let here = self.address;
        format!("--host-resolver-rules=MAP *.test {here}, MAP 192.0.2.* {here}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    }

    /// Returns the address of this server. It also responds to requests to a proxy.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the origin of this server by its address: the same host as the server under test, on another port.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the URLs of the requests. A connection counts as a request, even if it is encrypted or has no data.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.current.lock().unwrap().lock().unwrap().clone()
    }

    /// Forgets all requests on connections that were opened before. Connections are accepted in the order in which they were opened.
    pub(crate) fn clear(&self) {
        let mut stream = connect(self.address);
        stream.write_all(CLEAR).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert_eq!(response, "cleared");
    }
}

fn serve(mut stream: &TcpStream, requests: &Mutex<Vec<String>>, current: &Mutex<Record>) {
    let place = {
        let mut requests = requests.lock().unwrap();
        requests.push("a connection".into());
        requests.len() - 1
    };
    let mut request = [0; 16 * 1024];
    let read = stream.set_read_timeout(Some(TEST_TIMEOUT)).and_then(|()| stream.read(&mut request));
    let request = &request[..read.unwrap_or(0)];
    if request == CLEAR {
        *current.lock().unwrap() = Record::default();
        stream.write_all(b"cleared").unwrap();
        return;
    }
    let request = String::from_utf8_lossy(request).into_owned();
    requests.lock().unwrap()[place] = url(&request).unwrap_or_else(|| tls_host(&request));
    let is_page = request.starts_with(&format!("GET {PAGE} "));
    let (kind, content) = if is_page { ("text/html", "<!doctype html><body>") } else { ("image/svg+xml", IMAGE) };
    let length = content.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close");
    // The browser may have closed the connection.
    let _ = stream.write_all(format!("{head}\r\n\r\n{content}").as_bytes());
}

/// Returns the URL of an HTTP request.
fn url(request: &str) -> Option<String> {
    let (first, fields) = request.split_once("\r\n")?;
    let target = first.strip_suffix(" HTTP/1.1")?.split(' ').nth(1)?;
    // A request to a proxy contains the whole URL, or the host of an encrypted connection.
    if !target.starts_with('/') {
        return Some(target.to_owned());
    }
    let host = fields.lines().find_map(|line| line.strip_prefix("Host: "))?;
    Some(format!("http://{host}{target}"))
}

/// Returns the readable part of a TLS ClientHello, which contains the host name (RFC 6066, section 3).
fn tls_host(hello: &str) -> String {
    let words = hello.split(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '-');
    let names: Vec<&str> = words.filter(|word| word.len() > 5 && word.contains('.')).collect();
    format!("a connection for {names:?}")
}
