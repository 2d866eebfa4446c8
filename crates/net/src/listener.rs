//! Listening sockets. One configured address becomes one or two of them.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use restante_platform::unix_socket::{self, UnixListener};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

use super::ListenAddr;
use super::Stream;

/// The number of connections that the kernel queues until they are accepted.
const BACKLOG: i32 = 1024;

/// A listening socket.
pub enum Listener {
    /// TCP over IPv4 or IPv6.
    Tcp(TcpListener),
    /// A Unix socket. Its file is removed on drop.
    Unix(UnixListener, SocketFile),
}

/// Removes the file of a Unix socket on drop.
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The file may already be removed.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Listens on a configured address. `localhost` and "every address" mean IPv4 and, if the machine has it, IPv6.
pub fn bind(addr: &ListenAddr) -> io::Result<Vec<Listener>> {
    match addr {
        ListenAddr::Tcp(addr) => Ok(vec![Listener::Tcp(bind_tcp(*addr)?)]),
        ListenAddr::Localhost(port) => bind_both_families(Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST, *port),
        ListenAddr::Any(port) => bind_both_families(Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED, *port),
        ListenAddr::Unix { path, mode } => {
            let listener = unix_socket::bind(path, *mode)?;
            Ok(vec![Listener::Unix(listener, SocketFile(path.clone()))])
        }
    }
}

impl Listener {
    /// Returns the TCP port. It is the actual port if the configured port is 0.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok().map(|addr| addr.port()),
            Self::Unix(..) => None,
        }
    }

    /// Waits for the next connection. Returns the peer's address, which is `None` on a Unix socket.
    pub async fn accept(&self) -> io::Result<(Stream, Option<IpAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok((Stream::Tcp(stream), Some(peer.ip().to_canonical())))
            }
            Self::Unix(listener, _) => Ok((Stream::Unix(listener.accept().await?.0), None)),
        }
    }
}

/// Displays the network as named by Go, and the address: `tcp4 127.0.0.1:2500`. Container tools wait for this text.
impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(listener) => match listener.local_addr() {
                Ok(addr @ SocketAddr::V4(_)) => write!(f, "tcp4 {addr}"),
                Ok(addr @ SocketAddr::V6(_)) => write!(f, "tcp6 {addr}"),
                Err(error) => write!(f, "tcp ({error})"),
            },
            Self::Unix(_, file) => write!(f, "unix {}", file.0.display()),
        }
    }
}

/// Listens on IPv4 and, on the same port, on IPv6. IPv6 is skipped if the machine does not have it, or if the port was
/// chosen by the system and is in use on IPv6.
fn bind_both_families(v4: Ipv4Addr, v6: Ipv6Addr, port: u16) -> io::Result<Vec<Listener>> {
    let first = bind_tcp((v4, port).into())?;
    let actual_port = first.local_addr()?.port();
    let mut listeners = vec![Listener::Tcp(first)];
    match bind_tcp((v6, actual_port).into()) {
        Ok(second) => listeners.push(Listener::Tcp(second)),
        Err(error) if error.kind() == ErrorKind::AddrInUse && port != 0 => return Err(error),
        Err(error) => tracing::debug!(%error, port = actual_port, "IPv6 listener not available"),
    }
    Ok(listeners)
}

fn bind_tcp(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    // A restarted server need not wait until the connections of the last one are forgotten. On Windows this is the default, and
    // the option would let two servers share a port.
    socket.set_reuse_address(cfg!(unix))?;
    if addr.is_ipv6() {
        // IPv4 has its own socket.
        socket.set_only_v6(true)?;
    }
    // Replies are written as a whole, so delaying them for more data is useless. Connections inherit this.
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use restante_testdir::TestDir;

    use super::*;

    #[tokio::test]
    async fn localhost_binds_loopback_only() {
        for listener in bind(&ListenAddr::Localhost(0)).unwrap() {
            let Listener::Tcp(tcp) = &listener else { panic!("{listener}") };
            assert!(tcp.local_addr().unwrap().ip().is_loopback());
            assert!(
                listener.to_string().starts_with("tcp4 127.0.0.1:") || listener.to_string().starts_with("tcp6 [::1]:")
            );
        }
    }

    #[tokio::test]
    async fn accepted_connections_have_nodelay() {
        let listeners = bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let Listener::Tcp(tcp) = &listeners[0] else { panic!("expected a TCP listener") };
        let _client = tokio::net::TcpStream::connect(tcp.local_addr().unwrap()).await.unwrap();
        let (Stream::Tcp(accepted), _) = listeners[0].accept().await.unwrap() else {
            panic!("expected a TCP listener")
        };
        assert!(accepted.nodelay().unwrap());
    }

    #[tokio::test]
    async fn port_in_use_is_an_error() {
        let first = bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let Listener::Tcp(tcp) = &first[0] else { panic!("expected a TCP listener") };
        let taken = ListenAddr::Localhost(tcp.local_addr().unwrap().port());
        assert_eq!(bind(&taken).err().map(|error| error.kind()), Some(ErrorKind::AddrInUse));
    }

    #[tokio::test]
    async fn stale_socket_file_is_replaced_and_a_live_one_is_not() {
        let dir = TestDir::new();
        let path = dir.path().join("listener.sock");
        let addr = ListenAddr::Unix { path: path.clone(), mode: None };
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let listeners = bind(&addr).unwrap();
        assert_eq!(bind(&addr).err().map(|error| error.kind()), Some(ErrorKind::AddrInUse));
        drop(listeners);
        assert!(!path.exists());
        std::fs::write(&path, "not a socket").unwrap();
        assert!(bind(&addr).is_err());
    }

    #[tokio::test]
    async fn unix_socket_has_the_mode_of_its_address_or_of_the_umask() {
        let dir = TestDir::new();
        let path = dir.path().join("listener.sock");
        let mode_of = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for mode in [0o600, 0o660, 0o666] {
            let addr = ListenAddr::Unix { path: path.clone(), mode: Some(mode) };
            let _listeners = bind(&addr).unwrap();
            assert_eq!(mode_of(&path), mode, "{addr}");
            std::os::unix::net::UnixStream::connect(&path).unwrap();
        }
        // The umask also applies to the file of the other listener.
        let other = dir.path().join("other.sock");
        let _other = std::os::unix::net::UnixListener::bind(&other).unwrap();
        let _listeners = bind(&ListenAddr::Unix { path: path.clone(), mode: None }).unwrap();
        assert_eq!(mode_of(&path), mode_of(&other));
    }
}
