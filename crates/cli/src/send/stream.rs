//! A connection to an SMTP server, over TCP or a Unix socket (`unix:/path`).

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;

use restante_platform::unix_socket::{self, BlockingUnixStream};

/// The beginning of the address of a Unix socket.
pub(super) const UNIX_PREFIX: &str = "unix:";

/// A connection.
#[derive(Debug)]
pub(super) enum SmtpStream {
    Tcp(TcpStream),
    Unix(BlockingUnixStream),
}

impl SmtpStream {
    /// Connects to `unix:/path`, or to a host and a port. All addresses of a host name are tried, because the server may
    /// not listen on all of them. Each of them has this time limit.
    pub(super) fn connect(addr: &str, timeout: Duration) -> io::Result<Self> {
        if let Some(path) = addr.strip_prefix(UNIX_PREFIX) {
            return unix_socket::connect(Path::new(path)).map(Self::Unix);
        }
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in addr.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => return Ok(Self::Tcp(stream)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Sets the time limit of each read and write.
    pub(super) fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        let timeout = Some(timeout);
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(timeout).and_then(|()| stream.set_write_timeout(timeout)),
            Self::Unix(stream) => stream.set_read_timeout(timeout).and_then(|()| stream.set_write_timeout(timeout)),
        }
    }

    /// Returns true if the server runs on this machine.
    pub(super) fn is_local(&self) -> io::Result<bool> {
        match self {
            Self::Tcp(stream) => stream.peer_addr().map(|peer| is_loopback(peer.ip())),
            Self::Unix(_) => Ok(true),
        }
    }

    /// Returns a second handle of the same connection.
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
        }
    }

    /// Closes the sending direction of the connection.
    pub(super) fn close_write(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }
}

impl Read for SmtpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for SmtpStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.flush(),
            Self::Unix(stream) => stream.flush(),
        }
    }
}

/// Returns true for a loopback address, also if it is mapped to IPv6.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

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
