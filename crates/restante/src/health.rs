//! `restante health`: whether the server that runs with this configuration does its work. A container image without a
//! shell has nobody else to ask. One question to one listener, with blocking sockets: this is a process of its own.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use restante_http_client::insecure_client_config;
use restante_net::{ListenAddr, Network};
use restante_settings::{Config, Loaded};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use serde_json::Value;

/// How long everything together may take.
const TIMEOUT: Duration = Duration::from_secs(3);
/// What the greeting of SMTP and LMTP starts with (RFC 5321 section 4.2).
const SMTP_READY: &str = "220";
/// What the greeting of POP3 starts with (RFC 1939 section 4).
const POP3_READY: &str = "+OK";
/// The most bytes of an answer that are read.
const MAX_RESPONSE_BYTES: u64 = 16 * 1024;

/// Asks the server, prints one line, and says by the exit code whether it is well.
pub fn run(loaded: &Loaded) -> ExitCode {
    let (answer, code) = match check(&loaded.config, TIMEOUT) {
        Ok(how) => (format!("healthy: {how}"), ExitCode::SUCCESS),
        Err(why) => (format!("unhealthy: {why}"), ExitCode::FAILURE),
    };
    // Who reads no output reads the exit code.
    let _ = writeln!(io::stdout(), "{answer}");
    code
}

/// How the server showed that it is well, or why it is not.
fn check(config: &Config, patience: Duration) -> Result<String, String> {
    let target = Probe::for_config(config)?;
    let name = target.to_string();
    let (sender, answer) = mpsc::channel();
    // Not every step has a time limit of its own, so the thread is left behind when it takes too long.
    std::thread::spawn(move || sender.send(target.run()));
    match answer.recv_timeout(patience) {
        Ok(Ok(answer)) => Ok(format!("{name} {answer}")),
        Ok(Err(why)) => Err(format!("{name} {why}")),
        Err(_) => Err(format!("{name} does not answer within {} s", patience.as_secs_f32())),
    }
}

/// Whom to ask what.
struct Probe {
    kind: ProbeKind,
    addr: ProbeAddr,
    /// Whether it is asked with TLS.
    tls: bool,
    /// Those from whom the listener expects a PROXY header. We may be among them.
    proxies: Vec<Network>,
}

enum ProbeKind {
    /// Whether the server is ready, by HTTP; the path of the question.
    Http(String),
    /// Whether it greets: the protocol, and what a friendly greeting starts with.
    Greeting(&'static str, &'static str),
    /// Whether it takes connections: what it says then is encrypted.
    Connection(&'static str),
}

/// Where a listener can be reached from here.
enum ProbeAddr {
    /// The first of these addresses that takes the connection.
    Tcp(Vec<SocketAddr>),
    Unix(PathBuf),
}

impl Probe {
    /// HTTP knows most about the server, so the mail listeners are asked only where there is none.
    fn for_config(config: &Config) -> Result<Self, String> {
        let Config { smtp, pop3, web, .. } = config;
        let ready = || ProbeKind::Http(format!("{}/readyz", config.web.base_path));
        let plain = |force: bool, name, greeting| {
            if force { ProbeKind::Connection(name) } else { ProbeKind::Greeting(name, greeting) }
        };
        let lists: [(_, bool, &[ListenAddr], &[Network]); 7] = [
            (ready(), web.tls.force, &web.addr, &web.proxies),
            (ready(), true, &web.tls_addr, &web.proxies),
            (plain(smtp.tls.force, "SMTP", SMTP_READY), false, &smtp.addr, &smtp.proxies),
            (ProbeKind::Greeting("LMTP", SMTP_READY), false, &config.lmtp.addr, &smtp.proxies),
            (ProbeKind::Connection("SMTP"), false, &smtp.tls_addr, &smtp.proxies),
            (plain(pop3.tls.force, "POP3", POP3_READY), false, &pop3.addr, &pop3.proxies),
            (ProbeKind::Connection("POP3"), false, &pop3.tls_addr, &pop3.proxies),
        ];
        lists
            .into_iter()
            .find_map(|(question, tls, addrs, proxies)| {
                let place = addrs.iter().find_map(ProbeAddr::from_listen_addr)?;
                Some(Self { kind: question, addr: place, tls, proxies: proxies.to_vec() })
            })
            .ok_or_else(|| "the port is not known, because every address to listen on has port 0".to_owned())
    }

    fn run(&self) -> Result<String, String> {
        let stream = self.addr.connect(&self.proxies).map_err(|error| format!("cannot be reached: {error}"))?;
        let mut stream: Box<dyn Stream> = if self.tls { Box::new(start_tls(stream)?) } else { stream };
        match &self.kind {
            ProbeKind::Http(path) => check_http(&mut *stream, path),
            ProbeKind::Greeting(_, ready) => check_greeting(&mut *stream, ready),
            ProbeKind::Connection(_) => Ok("takes connections, with TLS from the first byte".to_owned()),
        }
        .map_err(|error| match error.kind() {
            io::ErrorKind::Other => error.to_string(),
            _ => format!("does not answer: {error}"),
        })
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match &self.kind {
            ProbeKind::Http(_) if self.tls => "HTTPS",
            ProbeKind::Http(_) => "HTTP",
            ProbeKind::Greeting(protocol, _) | ProbeKind::Connection(protocol) => protocol,
        };
        write!(f, "{protocol} on {}", self.addr)
    }
}

impl ProbeAddr {
    /// A wildcard is reached by loopback; a port that the system chose cannot be known here.
    fn from_listen_addr(addr: &ListenAddr) -> Option<Self> {
        let (ips, port): (Vec<IpAddr>, u16) = match addr {
            ListenAddr::Unix(path) => return Some(Self::Unix(path.clone())),
            ListenAddr::Localhost(port) | ListenAddr::Any(port) => {
                (vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()], *port)
            }
            ListenAddr::Tcp(addr) => match addr.ip() {
                IpAddr::V4(ip) if ip.is_unspecified() => (vec![Ipv4Addr::LOCALHOST.into()], addr.port()),
                IpAddr::V6(ip) if ip.is_unspecified() => (vec![Ipv6Addr::LOCALHOST.into()], addr.port()),
                // The whole address: one of a link also says which link.
                _ if addr.port() != 0 => return Some(Self::Tcp(vec![*addr])),
                _ => return None,
            },
        };
        (port != 0).then(|| Self::Tcp(ips.into_iter().map(|ip| (ip, port).into()).collect()))
    }

    /// Connects, and says as one of the proxies that nobody is behind us.
    fn connect(&self, proxies: &[Network]) -> io::Result<Box<dyn Stream>> {
        let addrs = match self {
            Self::Tcp(addrs) => addrs,
            Self::Unix(path) => return Ok(Box::new(UnixStream::connect(path)?)),
        };
        let mut stream = TcpStream::connect(addrs.as_slice())?;
        let ours = stream.local_addr()?.ip();
        if proxies.iter().any(|network| network.contains(ours)) {
            stream.write_all(b"PROXY UNKNOWN\r\n")?;
        }
        Ok(Box::new(stream))
    }
}

impl fmt::Display for ProbeAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(addrs) => match addrs.first() {
                Some(addr) => addr.fmt(f),
                None => Ok(()),
            },
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// One request; HTTP/1.0, because its answer ends with the connection.
fn check_http(stream: &mut dyn Stream, path: &str) -> io::Result<String> {
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    BufReader::new(stream).take(MAX_RESPONSE_BYTES).read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let line = head.lines().next().unwrap_or_default();
    match line.split(' ').nth(1).filter(|_| line.starts_with("HTTP/")) {
        Some("200") => Ok("is ready".to_owned()),
        Some(status) => {
            let problem: Option<Value> = serde_json::from_str(body).ok();
            let detail = problem.as_ref().and_then(|problem| problem["detail"].as_str());
            Err(io::Error::other(format!("says {status}: {}", detail.unwrap_or("no reason given"))))
        }
        None => Err(io::Error::other("does not speak HTTP")),
    }
}

/// The greeting of a mail protocol: that it is ready, or the reason why not.
fn check_greeting(stream: &mut dyn Stream, ready: &str) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(&mut *stream).take(MAX_RESPONSE_BYTES).read_line(&mut line)?;
    if !line.starts_with(ready) {
        return Err(io::Error::other(format!("greets with {:?}", line.trim_end())));
    }
    // A courtesy; the answer to the question is known already.
    let _ = stream.write_all(b"QUIT\r\n");
    Ok("greets".to_owned())
}

/// Starts TLS without checking the certificate. The server is our own, on this machine, and nothing secret is sent. Its certificate
/// may be made at start, or issued for its name and not for `127.0.0.1`. The handshake is made with the first write. The error is a
/// sentence for the operator.
fn start_tls<S: Read + Write>(stream: S) -> Result<StreamOwned<ClientConnection, S>, String> {
    let name = ServerName::try_from("localhost").map_err(|error| error.to_string())?;
    let client = insecure_client_config().and_then(|config| ClientConnection::new(Arc::new(config), name));
    Ok(StreamOwned::new(client.map_err(|error| format!("cannot be asked by TLS: {error}"))?, stream))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use restante_testdir::TestDir;

    use super::*;

    /// A port that only root could listen on, and nothing does.
    const CLOSED_PORT: u16 = 1;

    /// A server that waits for so many bytes of a question, and says one thing to everybody.
    fn server(question: usize, answer: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let _ = stream.read_exact(&mut vec![0; question]).and_then(|()| stream.write_all(answer.as_bytes()));
            }
        });
        addr
    }

    fn config(web: &[ListenAddr], smtp: &[ListenAddr]) -> Config {
        let mut config = Config::default();
        config.web.addr = web.to_vec();
        config.smtp.addr = smtp.to_vec();
        config.pop3.addr = Vec::new();
        config
    }

    fn tcp(addr: SocketAddr) -> ListenAddr {
        ListenAddr::Tcp(addr)
    }

    #[test]
    fn answers_by_http() {
        let full = "HTTP/1.1 503 Service Unavailable\r\n\r\n{\"status\":503,\"detail\":\"The store is full.\"}\n";
        let cases = [
            ("HTTP/1.0 200 OK\r\n\r\nok\n", Ok("is ready")),
            (full, Err("says 503: The store is full.")),
            ("HTTP/1.1 502 Bad Gateway\r\n\r\n<html>", Err("says 502: no reason given")),
            ("220 mx ready\r\n", Err("does not speak HTTP")),
            ("", Err("does not speak HTTP")),
        ];
        for (answer, expected) in cases {
            let addr = server("GET /mail/readyz HTTP/1.0\r\nHost: localhost\r\n\r\n".len(), answer);
            let mut config = config(&[tcp(addr)], &[]);
            config.web.base_path = "/mail".to_owned();
            let name = format!("HTTP on {addr}");
            let expected = expected.map(|how| format!("{name} {how}")).map_err(|why| format!("{name} {why}"));
            assert_eq!(check(&config, TIMEOUT), expected);
        }
    }

    #[test]
    fn mail_listeners_are_asked_where_there_is_no_web() {
        let good = server(0, "220 mx.test ready\r\n");
        assert_eq!(check(&config(&[], &[tcp(good)]), TIMEOUT), Ok(format!("SMTP on {good} greets")));
        let busy = server(0, "421 4.3.2 too many connections\r\n");
        let why = format!("SMTP on {busy} greets with \"421 4.3.2 too many connections\"");
        assert_eq!(check(&config(&[], &[tcp(busy)]), TIMEOUT), Err(why));

        let mut lmtp = config(&[], &[]);
        lmtp.lmtp.addr = vec![tcp(good)];
        assert_eq!(check(&lmtp, TIMEOUT), Ok(format!("LMTP on {good} greets")));

        let silent = server(1, "");
        let mut forced = config(&[], &[tcp(silent)]);
        forced.smtp.tls.force = true;
        let mut implicit = config(&[], &[]);
        implicit.smtp.tls_addr = vec![tcp(silent)];
        for config in [forced, implicit] {
            let expected = format!("SMTP on {silent} takes connections, with TLS from the first byte");
            assert_eq!(check(&config, TIMEOUT), Ok(expected));
        }
    }

    #[test]
    fn a_listener_behind_a_proxy_is_asked_as_the_proxy_would() {
        let addr = server("PROXY UNKNOWN\r\n".len(), "220 mx.test ready\r\n");
        let mut behind = config(&[], &[tcp(addr)]);
        behind.smtp.proxies = vec!["127.0.0.0/8".parse().expect("a network")];
        assert_eq!(check(&behind, TIMEOUT), Ok(format!("SMTP on {addr} greets")));
        behind.smtp.proxies = vec!["192.0.2.0/24".parse().expect("a network")];
        let patience = Duration::from_millis(50);
        check(&behind, patience).expect_err("the server waits for a header");
    }

    #[test]
    fn pop3_is_asked_where_there_is_nothing_else() {
        let pop3 = |addr| {
            let mut config = config(&[], &[]);
            config.pop3.addr = vec![tcp(addr)];
            config
        };
        let good = server(0, "+OK Restante POP3 server ready <1.2@mx.test>\r\n");
        assert_eq!(check(&pop3(good), TIMEOUT), Ok(format!("POP3 on {good} greets")));
        let busy = server(0, "-ERR [SYS/TEMP] too many connections\r\n");
        let why = format!("POP3 on {busy} greets with \"-ERR [SYS/TEMP] too many connections\"");
        assert_eq!(check(&pop3(busy), TIMEOUT), Err(why));

        let silent = server(1, "");
        let mut forced = pop3(silent);
        forced.pop3.tls.force = true;
        let mut implicit = config(&[], &[]);
        implicit.pop3.tls_addr = vec![tcp(silent)];
        for config in [forced, implicit] {
            let expected = format!("POP3 on {silent} takes connections, with TLS from the first byte");
            assert_eq!(check(&config, TIMEOUT), Ok(expected));
        }

        let mut both = pop3(busy);
        both.smtp.addr = vec![tcp(server(0, "220 mx.test ready\r\n"))];
        assert!(check(&both, TIMEOUT).is_ok_and(|how| how.starts_with("SMTP on ")));
    }

    #[test]
    fn nobody_is_waited_for_too_long() {
        let silent = server(1000, "");
        let why = check(&config(&[tcp(silent)], &[]), Duration::from_millis(50)).expect_err("it says nothing");
        assert_eq!(why, format!("HTTP on {silent} does not answer within 0.05 s"));

        let gone = SocketAddr::from(([127, 0, 0, 1], CLOSED_PORT));
        let why = check(&config(&[tcp(gone)], &[]), TIMEOUT).expect_err("there is nobody");
        assert!(why.starts_with(&format!("HTTP on {gone} cannot be reached: ")), "{why}");
    }

    #[test]
    fn where_a_listener_is_reached() {
        let cases = [
            ("192.0.2.1:80", Some("[192.0.2.1:80]")),
            (":9000", Some("[127.0.0.1:9000, [::1]:9000]")),
            ("localhost:9000", Some("[127.0.0.1:9000, [::1]:9000]")),
            ("0.0.0.0:9000", Some("[127.0.0.1:9000]")),
            ("[::]:9000", Some("[[::1]:9000]")),
            ("[2001:db8::1]:9000", Some("[[2001:db8::1]:9000]")),
            ("unix:/run/web.sock", Some("/run/web.sock")),
            ("localhost:0", None),
            ("127.0.0.1:0", None),
            (":0", None),
        ];
        for (addr, expected) in cases {
            let place = ProbeAddr::from_listen_addr(&addr.parse().expect("an address")).map(|place| match place {
                ProbeAddr::Tcp(addrs) => format!("{addrs:?}"),
                ProbeAddr::Unix(path) => path.display().to_string(),
            });
            assert_eq!(place.as_deref(), expected, "{addr}");
        }
        let why = check(&config(&[ListenAddr::Any(0)], &[]), TIMEOUT).expect_err("nobody knows where it is");
        assert!(why.contains("port 0"), "{why}");
    }

    #[test]
    fn a_unix_socket() {
        let dir = TestDir::new();
        let path = dir.path().join("smtp.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let _ = stream.write_all(b"220 mx.test ready\r\n");
        });
        let answer = check(&config(&[], &[ListenAddr::Unix(path.clone())]), TIMEOUT);
        assert_eq!(answer, Ok(format!("SMTP on unix:{} greets", path.display())));
    }
}
