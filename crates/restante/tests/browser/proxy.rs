//! A reverse proxy that puts the server below a path of its own and tells it nothing about that, as proxies do that strip a
//! prefix.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use crate::support::{LONG, connect};

/// Starts one; it runs until the test program ends.
pub(crate) fn start(prefix: &'static str, server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A browser that has heard enough just leaves.
            std::thread::spawn(move || pass(&stream, prefix, server));
        }
    });
    address
}

/// Passes one request on, and everything that follows in both directions.
fn pass(client: &TcpStream, prefix: &str, server: SocketAddr) -> std::io::Result<()> {
    client.set_read_timeout(Some(LONG))?;
    let Some(request) = read_head(client)?.and_then(|head| stripped(&head, prefix)) else {
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

/// The head of a request, byte by byte: what comes after it is not ours to read.
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

/// The request as the server shall see it: without the prefix, and one per connection.
fn stripped(head: &str, prefix: &str) -> Option<String> {
    let (method, rest) = head.split_once(' ')?;
    let path = rest.strip_prefix(prefix)?;
    let rest = rest_of(path).replace("Connection: keep-alive\r\n", "Connection: close\r\n");
    Some(format!("{method} {rest}"))
}

/// A path has a slash at its beginning, also when nothing else is left of it.
fn rest_of(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("/{path}") }
}
