//! A reverse proxy that strips a path prefix and does not tell the server about it. It can withhold the script of the page.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use crate::support::{TEST_TIMEOUT, connect};

/// The path of the script ends with this.
const SCRIPT: &str = "/dist/app.js ";

/// What a proxy does with a request for the script of the page.
#[derive(Clone, Copy)]
pub(crate) enum ScriptRequest {
    Forward,
    /// Responds with status 404.
    Refuse,
    /// Does not respond.
    Ignore,
}

/// Starts a proxy. It runs until the test program exits.
pub(crate) fn start(prefix: &'static str, server: SocketAddr) -> SocketAddr {
    start_with(prefix, server, ScriptRequest::Forward)
}

/// Starts a proxy that treats requests for the script in this way. It runs until the test program exits.
pub(crate) fn start_with(prefix: &'static str, server: SocketAddr, script: ScriptRequest) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The browser closes connections at any time.
            std::thread::spawn(move || forward(&stream, prefix, server, script));
        }
    });
    address
}

/// Forwards one request, and then all data in both directions.
fn forward(client: &TcpStream, prefix: &str, server: SocketAddr, script: ScriptRequest) -> std::io::Result<()> {
    client.set_read_timeout(Some(TEST_TIMEOUT))?;
    let head = read_head(client)?;
    let is_script = head.as_ref().is_some_and(|head| head.contains(SCRIPT));
    let request = head.and_then(|head| stripped(&head, prefix));
    let request = match script {
        ScriptRequest::Refuse if is_script => None,
        // Until the browser closes the connection.
        ScriptRequest::Ignore if is_script => return std::io::copy(&mut &*client, &mut std::io::sink()).map(drop),
        _ => request,
    };
    let Some(request) = request else {
        return (&*client).write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    let upstream = connect(server);
    (&upstream).write_all(request.as_bytes())?;
    let (mut from, mut to) = (client.try_clone()?, upstream.try_clone()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
    std::io::copy(&mut &upstream, &mut &*client)?;
    client.shutdown(Shutdown::Both)
}

/// Reads the head of a request byte by byte, so that the rest stays unread.
fn read_head(mut client: &TcpStream) -> std::io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if client.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
    }
    Ok(String::from_utf8(head).ok())
}

/// Returns the request for the server: without the prefix, and with one request per connection.
fn stripped(head: &str, prefix: &str) -> Option<String> {
    let (method, rest) = head.split_once(' ')?;
    let path = rest.strip_prefix(prefix)?;
    let rest = rest_of(path).replace("Connection: keep-alive\r\n", "Connection: close\r\n");
    Some(format!("{method} {rest}"))
}

/// Adds the leading slash to the rest of a path.
fn rest_of(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}
