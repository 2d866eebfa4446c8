//! Unix sockets. On Windows creating one fails, so their types are those of TCP, which have the same methods.

pub use imp::{BlockingUnixStream, UnixListener, UnixStream, bind, connect, peek};

#[cfg(unix)]
mod imp {
    use std::fs::{self, Permissions};
    use std::io::{self, ErrorKind};
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
    use std::path::Path;

    use rustix::net::{RecvFlags, recv};
    use socket2::{Domain, SockAddr, Socket, Type};
    use tokio::io::Interest;

    pub use std::os::unix::net::UnixStream as BlockingUnixStream;
    pub use tokio::net::{UnixListener, UnixStream};

    /// The number of connections that the kernel queues until they are accepted.
    const BACKLOG: i32 = 1024;

    /// Listens on a Unix socket. The socket file of a killed server is replaced; any other file is not. Without a mode, the
    /// umask determines which users can connect: connecting needs write permission on the file.
    pub fn bind(path: &Path, mode: Option<u32>) -> io::Result<UnixListener> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        let addr = SockAddr::unix(path)?;
        match socket.bind(&addr) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && is_stale_socket(path) => {
                fs::remove_file(path)?;
                socket.bind(&addr)?;
            }
            other => other?,
        }
        // Connections are refused until the socket listens, so no user connects before the file has its mode.
        let set_mode = mode.map_or(Ok(()), |mode| fs::set_permissions(path, Permissions::from_mode(mode)));
        set_mode.and_then(|()| socket.listen(BACKLOG)).inspect_err(|_| {
            // Nothing can connect to it. The first error is reported.
            let _ = fs::remove_file(path);
        })?;
        UnixListener::from_std(OwnedFd::from(socket).into())
    }

    fn is_stale_socket(path: &Path) -> bool {
        let is_socket = fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
        is_socket && connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    }

    /// Connects to a Unix socket.
    pub fn connect(path: &Path) -> io::Result<BlockingUnixStream> {
        BlockingUnixStream::connect(path)
    }

    /// Waits for data from the peer without consuming it.
    pub async fn peek(stream: &UnixStream, buffer: &mut [u8]) -> io::Result<usize> {
        let peek = || Ok(recv(stream, &mut *buffer, RecvFlags::PEEK)?.0);
        stream.async_io(Interest::READABLE, peek).await
    }
}

#[cfg(windows)]
mod imp {
    use std::io;
    use std::path::Path;

    pub use std::net::TcpStream as BlockingUnixStream;
    pub use tokio::net::{TcpListener as UnixListener, TcpStream as UnixStream};

    fn unsupported() -> io::Error {
        io::Error::new(io::ErrorKind::Unsupported, "Unix sockets are not supported on Windows: use a TCP port")
    }

    /// Fails.
    pub fn bind(_: &Path, _: Option<u32>) -> io::Result<UnixListener> {
        Err(unsupported())
    }

    /// Fails.
    pub fn connect(_: &Path) -> io::Result<BlockingUnixStream> {
        Err(unsupported())
    }

    /// Waits for data from the peer without consuming it.
    pub async fn peek(stream: &UnixStream, buffer: &mut [u8]) -> io::Result<usize> {
        stream.peek(buffer).await
    }
}
