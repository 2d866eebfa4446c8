//! Listen addresses as written in the configuration. Binding is in `listener`.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListenAddr {
    /// One IP address: `192.0.2.1:2500`, `[::1]:2500`.
    Tcp(SocketAddr),
    /// `localhost:2500`: loopback on IPv4 and, if the machine has it, on IPv6.
    Localhost(u16),
    /// `:2500`: every address of the machine.
    Any(u16),
    /// `unix:/run/restante.sock`, `unix:/run/restante.sock:0660`: a Unix socket.
    Unix {
        /// The path of the socket file.
        path: PathBuf,
        /// The permission bits of the file. If `None`, the umask determines them.
        mode: Option<u32>,
    },
}

/// The accepted forms, for error messages.
const ACCEPTED_FORMS: &str = "IP:PORT, localhost:PORT, :PORT (every address), unix:/PATH or unix:/PATH:MODE";

/// The longest path that fits into a `sockaddr_un` with its final zero byte.
const MAX_UNIX_PATH_BYTES: usize = 107;

impl ListenAddr {
    /// Returns whether only processes of this machine can connect.
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Tcp(addr) => addr.ip().to_canonical().is_loopback(),
            Self::Localhost(_) | Self::Unix { .. } => true,
            Self::Any(_) => false,
        }
    }

    /// Returns whether listeners on both addresses would conflict.
    pub fn conflicts_with(&self, other: &Self) -> bool {
        if let (Self::Unix { path, .. }, Self::Unix { path: other_path, .. }) = (self, other) {
            return path == other_path;
        }
        let other_sockets = other.sockets();
        self.sockets().iter().any(|socket| other_sockets.iter().any(|other| sockets_conflict(socket, other)))
    }

    /// Returns the TCP addresses that this listen address stands for.
    fn sockets(&self) -> Vec<SocketAddr> {
        match self {
            Self::Tcp(addr) => vec![*addr],
            Self::Localhost(port) => vec![(Ipv4Addr::LOCALHOST, *port).into(), (Ipv6Addr::LOCALHOST, *port).into()],
            Self::Any(port) => vec![(Ipv4Addr::UNSPECIFIED, *port).into(), (Ipv6Addr::UNSPECIFIED, *port).into()],
            Self::Unix { .. } => Vec::new(),
        }
    }
}

/// Returns whether two sockets conflict: they have the same port and address. An unspecified address conflicts with all
/// addresses of its family. Port 0 is another free port each time.
fn sockets_conflict(first: &SocketAddr, second: &SocketAddr) -> bool {
    let has_unspecified = first.ip().is_unspecified() || second.ip().is_unspecified();
    let has_same_port = first.port() == second.port() && first.port() != 0;
    has_same_port && (first == second || has_unspecified && first.is_ipv4() == second.is_ipv4())
}

impl FromStr for ListenAddr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || {
            // A port alone is a common mistake.
            let example = match text.parse::<u16>() {
                Ok(port) => format!("localhost:{port} or :{port}"),
                Err(_) => "localhost:2500".to_owned(),
            };
            format!("{text:?} is not a listen address: expected {ACCEPTED_FORMS}, for example {example}")
        };
        if let Some(rest) = text.strip_prefix("unix:") {
            // A colon in the name of a directory is a part of the path.
            let (path, mode) = match rest.rsplit_once(':').filter(|(_, mode)| !mode.contains('/')) {
                Some((path, mode)) => (path, Some(parse_mode(mode).ok_or_else(|| invalid_mode(text))?)),
                None => (rest, None),
            };
            return match path.len() {
                0 => Err(invalid()),
                1..=MAX_UNIX_PATH_BYTES => Ok(Self::Unix { path: PathBuf::from(path), mode }),
                _ => Err(format!(
                    "{text:?} is too long: the path of a Unix socket has at most {MAX_UNIX_PATH_BYTES} bytes"
                )),
            };
        }
        if let Ok(addr) = text.parse() {
            return Ok(Self::Tcp(addr));
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        // `u16::from_str` accepts a leading `+`.
        if !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid());
        }
        let port = port.parse().map_err(|_| format!("{text:?} has an invalid port: expected 0 to 65535"))?;
        match host {
            "" => Ok(Self::Any(port)),
            host if host.eq_ignore_ascii_case("localhost") => Ok(Self::Localhost(port)),
            _ => Err(invalid()),
        }
    }
}

/// Parses the permission bits of a socket file: three octal digits, which a zero may precede.
fn parse_mode(text: &str) -> Option<u32> {
    let is_octal = text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    let mode = u32::from_str_radix(text, 8).ok()?;
    ((3..=4).contains(&text.len()) && is_octal && mode <= 0o777).then_some(mode)
}

fn invalid_mode(text: &str) -> String {
    format!(
        "{text:?} has an invalid mode after the last colon: expected 000 to 777 in octal digits, for example \
         unix:/run/mail.sock:0660"
    )
}

impl fmt::Display for ListenAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(addr) => addr.fmt(f),
            Self::Localhost(port) => write!(f, "localhost:{port}"),
            Self::Any(port) => write!(f, ":{port}"),
            Self::Unix { path, mode: None } => write!(f, "unix:{}", path.display()),
            Self::Unix { path, mode: Some(mode) } => write!(f, "unix:{}:{mode:04o}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_displays_addresses() {
        // The text and whether it is loopback. Each valid address is displayed as written.
        let valid = [
            ("127.0.0.1:2500", true),
            ("127.1.2.3:0", true),
            ("0.0.0.0:2500", false),
            ("192.0.2.7:65535", false),
            ("[::1]:2500", true),
            ("[::ffff:127.0.0.1]:2500", true),
            ("[::]:2500", false),
            ("localhost:2500", true),
            ("localhost:0", true),
            (":2500", false),
            ("unix:/run/restante/smtp.sock", true),
            ("unix:/run/restante/smtp.sock:0660", true),
            ("unix:/run/a:660/smtp.sock", true),
            ("unix:/run/a:b.sock:0777", true),
        ];
        for (text, loopback) in valid {
            let addr: ListenAddr = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(addr.to_string(), text);
            assert_eq!(addr.is_loopback(), loopback, "{text}");
        }
        let long = format!("unix:/{}", "x".repeat(MAX_UNIX_PATH_BYTES));
        let invalid_texts = [
            "",
            ":",
            "2500",
            "localhost",
            "localhost:",
            "localhost:65536",
            "localhost:+25",
            "localhost:-1",
            "::1:2500",
            "[::1]",
            "127.0.0.1",
            "256.0.0.1:25",
            "example.org:25",
            "unix:",
            "unix::0660",
            "unix:/a:",
            "unix:/a:60",
            "unix:/a:00660",
            "unix:/a:0888",
            "unix:/a:1777",
            "unix:/a:+660",
            "unix:/a:rw",
            "http://localhost:25",
            &long,
        ];
        for text in invalid_texts {
            assert!(text.parse::<ListenAddr>().is_err(), "{text}");
        }
    }

    #[test]
    fn mode_of_a_unix_socket_is_octal() {
        for text in ["unix:/run/mail.sock:660", "unix:/run/mail.sock:0660"] {
            let expected = ListenAddr::Unix { path: "/run/mail.sock".into(), mode: Some(0o660) };
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        let error = "unix:/run/mail.sock:999".parse::<ListenAddr>().unwrap_err();
        assert!(error.contains("unix:/run/mail.sock:999") && error.contains("000 to 777"), "{error}");
    }

    #[test]
    fn detects_conflicts() {
        let cases = [
            ("localhost:25", "LOCALHOST:25", true),
            ("localhost:25", "127.0.0.1:25", true),
            ("localhost:25", "[::1]:25", true),
            ("localhost:25", ":25", true),
            (":25", "127.0.0.1:25", true),
            (":25", "[2001:db8::1]:25", true),
            ("0.0.0.0:25", "192.0.2.7:25", true),
            ("unix:/a", "unix:/a", true),
            ("unix:/a", "unix:/a:0660", true),
            ("unix:/a", "unix:/b", false),
            ("unix:/a", ":25", false),
            ("localhost:25", "localhost:26", false),
            ("localhost:25", "127.0.0.2:25", false),
            // IPv6 listeners do not accept IPv4 connections.
            ("0.0.0.0:25", "[::]:25", false),
            ("[::]:25", "127.0.0.1:25", false),
            // Port 0 is any free port.
            ("localhost:0", "localhost:0", false),
            (":0", "127.0.0.1:0", false),
        ];
        for (one, other, expected) in cases {
            let addr = |text: &str| -> ListenAddr { text.parse().expect("a valid address") };
            assert_eq!(addr(one).conflicts_with(&addr(other)), expected, "{one} {other}");
            assert_eq!(addr(other).conflicts_with(&addr(one)), expected, "{other} {one}");
        }
    }
}
