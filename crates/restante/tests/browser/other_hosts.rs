//! The world outside, as the browser of a test sees it: every host below `.test` is this one server, which answers with a
//! picture, or with an empty page, and remembers what it was asked for. Nothing in a test reaches a real network.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::support::LONG;

const PICTURE: &str =
    "<svg xmlns='http://www.w3.org/2000/svg' width='16' height='16'><rect width='16' height='16'/></svg>";

/// The path of an empty page, on every host.
pub(crate) const PAGE: &str = "/page.html";

/// The rest of the world.
pub(crate) struct Outside {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Outside {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let outside = Self { address, asked: Arc::clone(&asked) };
        // It waits for callers until the test program ends.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let asked = Arc::clone(&asked);
                std::thread::spawn(move || serve(&stream, &asked));
            }
        });
        outside
    }

    /// The flag that makes a browser find the hosts of tests here (RFC 2606, RFC 5737), and no other host at all: it has
    /// things to ask by itself, from its makers and for its start page.
    pub(crate) fn flag(&self) -> String {
        let here = self.address;
        format!("--host-resolver-rules=MAP *.test {here}, MAP 192.0.2.* {here}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    }

    /// The origin of this server by its address: the same host as the server under test, on another port.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked for, as URLs. Whoever connects has asked for something, even if it was said in cipher or not at all.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(mut stream: &TcpStream, asked: &Mutex<Vec<String>>) {
    let place = {
        let mut asked = asked.lock().unwrap();
        asked.push("a connection".into());
        asked.len() - 1
    };
    let mut request = [0; 16 * 1024];
    let read = stream.set_read_timeout(Some(LONG)).and_then(|()| stream.read(&mut request));
    let request = String::from_utf8_lossy(&request[..read.unwrap_or(0)]).into_owned();
    asked.lock().unwrap()[place] = url(&request).unwrap_or_else(|| in_cipher(&request));
    let is_page = request.starts_with(&format!("GET {PAGE} "));
    let (kind, content) = if is_page { ("text/html", "<!doctype html><body>") } else { ("image/svg+xml", PICTURE) };
    let length = content.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close");
    // The browser may be gone by now.
    let _ = stream.write_all(format!("{head}\r\n\r\n{content}").as_bytes());
}

/// The URL of a request in HTTP.
fn url(request: &str) -> Option<String> {
    let (first, fields) = request.split_once("\r\n")?;
    let target = first.strip_suffix(" HTTP/1.1")?.split(' ').nth(1)?;
    let host = fields.lines().find_map(|line| line.strip_prefix("Host: "))?;
    Some(format!("http://{host}{target}"))
}

/// What can be read of the first message of TLS: the name of the host is in it, as it is (RFC 6066, section 3).
fn in_cipher(hello: &str) -> String {
    let words = hello.split(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '-');
    let names: Vec<&str> = words.filter(|word| word.len() > 5 && word.contains('.')).collect();
    format!("a connection for {names:?}")
}
