//! Ports for servers that stop and start again on the same port.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;

use socket2::{Domain, Socket, Type};

/// Below the ephemeral ports. One of those could be assigned to another program, or even to the client that retries to
/// connect, and the server could not start again.
const PORTS: Range<u16> = 10_000..32_000;

/// A port on loopback that no other program gets until this is dropped. Several servers can use it one after the other,
/// if they set `SO_REUSEADDR`, as servers do. While none of them listens, connections are refused.
pub struct ReservedPort {
    port: u16,
    /// Bound to the port, and never listening. `None` on systems where it would prevent servers from binding.
    _socket: Option<Socket>,
}

impl ReservedPort {
    /// Reserves a port.
    #[expect(clippy::new_without_default, reason = "reserving a port is not a default value")]
    pub fn new() -> Self {
        // A random start reduces conflicts between programs that search at the same time.
        let start = RandomState::new().hash_one(()) % u64::from(PORTS.end - PORTS.start);
        let start = PORTS.start + u16::try_from(start).unwrap_or_default();
        (start..PORTS.end)
            .chain(PORTS.start..start)
            .find_map(Self::reserve)
            .expect("one of many thousand ports is free")
    }

    /// Returns the number of the port.
    pub fn get(&self) -> u16 {
        self.port
    }

    /// Returns the address of the port.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    fn reserve(port: u16) -> Option<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket can be created");
        // Bound without SO_REUSEADDR, the port is exclusive. If the option is set afterwards, Linux allows servers that
        // set it too.
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into()).ok()?;
        socket.set_reuse_address(true).ok()?;
        Some(Self { port, _socket: cfg!(target_os = "linux").then_some(socket) })
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn servers_can_restart_on_reserved_port() {
        let reserved = ReservedPort::new();
        for _ in 0..3 {
            let refused = TcpStream::connect(reserved.address()).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
            let listener = TcpListener::bind(reserved.address()).unwrap();
            TcpStream::connect(reserved.address()).unwrap();
            let second = TcpListener::bind(reserved.address()).unwrap_err();
            assert_eq!(second.kind(), ErrorKind::AddrInUse, "another server is listening");
            drop(listener);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn port_cannot_be_reserved_twice() {
        let reserved = ReservedPort::new();
        assert!(ReservedPort::reserve(reserved.get()).is_none());
    }
}
