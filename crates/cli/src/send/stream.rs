//! A connection to an SMTP server, over TCP or a Unix socket (`unix:/path`).

use std::io;
use std::net::{IpAddr, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;

use restante_platform::unix_socket;
use socket2::Socket;

/// The beginning of the address of a Unix socket.
pub(super) const UNIX_PREFIX: &str = "unix:";

/// Connects to `unix:/path`, or to a host and a port. All addresses of a host name are tried, because the server may not
/// listen on all of them. Each of them has this time limit.
pub(super) fn connect(addr: &str, timeout: Duration) -> io::Result<Socket> {
    if let Some(path) = addr.strip_prefix(UNIX_PREFIX) {
        return unix_socket::connect(Path::new(path)).map(Socket::from);
    }
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addr.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream.into()),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Returns true if the server runs on this machine: at a loopback address, or at a Unix socket.
pub(super) fn is_local(stream: &Socket) -> io::Result<bool> {
    Ok(stream.peer_addr()?.as_socket().is_none_or(|peer| is_loopback(peer.ip())))
}

/// Returns true for a loopback address, also if it is mapped to IPv6.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_to_this_machine_are_local() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        assert!(is_local(&connect(&addr, Duration::from_secs(30)).unwrap()).unwrap());
    }

    #[cfg(unix)]
    #[test]
    fn unix_sockets_are_local() {
        let (client, _server) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(is_local(&client.into()).unwrap());
    }

    #[test]
    fn recognizes_loopback_addresses() {
        for here in ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"] {
            assert!(is_loopback(here.parse().unwrap()), "{here}");
        }
        for elsewhere in ["10.0.0.1", "192.0.2.1", "::", "::ffff:10.0.0.1", "2001:db8::1"] {
            assert!(!is_loopback(elsewhere.parse().unwrap()), "{elsewhere}");
        }
    }
}
