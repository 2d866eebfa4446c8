//! `restante health`: checks whether the server with this configuration works. It is needed in the container image,
//! which has no shell, and in scripts that wait for the server. It makes one request to one listener, with blocking
//! sockets, and repeats it with `--wait`.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::thread::sleep;
use std::time::{Duration, Instant};

use restante_http_client::insecure_client_config;
use restante_net::{ListenAddr, Network};
use restante_platform::unix_socket;
use restante_settings::Config;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use serde_json::Value;

/// The time limit of one check.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The pause between two checks, and the minimum time limit of a check.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The maximum time to wait for the server.
pub(crate) const MAX_WAIT: Duration = Duration::from_hours(24);
/// The maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: u64 = 16 * 1024;

/// Checks the server once; with `wait`, until it is ready or this time has passed. Prints one line, and returns an exit code.
pub fn run(config: &Config, wait: Option<Duration>) -> ExitCode {
    let (line, code) = match check_until_ready(config, wait) {
        Ok(detail) => (format!("healthy: {detail}"), ExitCode::SUCCESS),
        Err(reason) => (format!("unhealthy: {reason}"), ExitCode::FAILURE),
    };
    // The exit code reports the result too.
    let _ = writeln!(io::stdout(), "{line}");
    code
}

/// Checks the server once; with `wait`, until it is ready or this time has passed. Returns the result of the last check.
pub(crate) fn check_until_ready(config: &Config, wait: Option<Duration>) -> Result<String, String> {
    let probe = Arc::new(Probe::for_config(config)?);
    let started = Instant::now();
    loop {
        let result = check(&probe, check_timeout(wait, started.elapsed()));
        if result.is_ok() || wait.is_none_or(|wait| started.elapsed() >= wait) {
            return result;
        }
        sleep(POLL_INTERVAL);
    }
}

/// Returns the time limit of a check that starts after this time: not more than the rest of the time to wait.
fn check_timeout(wait: Option<Duration>, elapsed: Duration) -> Duration {
    let rest = wait.map_or(TIMEOUT, |wait| wait.saturating_sub(elapsed));
    rest.clamp(POLL_INTERVAL, TIMEOUT)
}

/// Returns how the server responded, or why it is not healthy.
fn check(probe: &Arc<Probe>, timeout: Duration) -> Result<String, String> {
    let (sender, response) = mpsc::channel();
    let thread_probe = Arc::clone(probe);
    // Not every step has its own time limit, so the thread is abandoned if it takes too long.
    std::thread::spawn(move || sender.send(thread_probe.run()));
    match response.recv_timeout(timeout) {
        Ok(Ok(response)) => Ok(format!("{probe} {response}")),
        Ok(Err(reason)) => Err(format!("{probe} {reason}")),
        Err(_) => Err(format!("{probe} does not respond")),
    }
}

/// A check of one listener.
struct Probe {
    kind: ProbeKind,
    addr: ProbeAddr,
    /// True if the check uses TLS.
    tls: bool,
    /// The addresses from which the listener expects a PROXY header. They may include this machine.
    proxies: Vec<Network>,
}

enum ProbeKind {
    /// An HTTP request for the readiness of the server; the path.
    Http(String),
    /// The greeting of a mail protocol.
    Greeting {
        /// The name of the protocol.
        protocol: &'static str,
        /// The beginning of a positive greeting.
        ready: &'static str,
        /// The command that ends the session.
        logout: &'static str,
    },
    /// A connection only, because the greeting would be encrypted; the name of the protocol.
    Connection(&'static str),
}

/// The address of a listener, as seen from this machine.
enum ProbeAddr {
    /// Addresses to try in this order.
    Tcp(Vec<SocketAddr>),
    Unix(PathBuf),
}

impl Probe {
    /// Chooses the listener to check. HTTP gives the most information, so mail listeners are checked only without it.
    fn for_config(config: &Config) -> Result<Self, String> {
        let [smtp, lmtp, others @ .., http] = config.protocols();
        let web = [(http, false), (http, true)];
        let mail = [(smtp, false), (lmtp, false), (smtp, true)];
        let others = others.into_iter().flat_map(|protocol| [(protocol, false), (protocol, true)]);
        web.into_iter()
            .chain(mail)
            .chain(others)
            .find_map(|(protocol, with_tls)| {
                let addrs = if with_tls { protocol.tls_addrs } else { protocol.addrs };
                let addr = addrs.iter().find_map(ProbeAddr::from_listen_addr)?;
                let has_tls = with_tls || protocol.forces_tls();
                let kind = match protocol.greeting {
                    None => ProbeKind::Http(format!("{}/readyz", config.web.base_path)),
                    Some(_) if has_tls => ProbeKind::Connection(protocol.name),
                    Some(ready) => ProbeKind::Greeting { protocol: protocol.name, ready, logout: protocol.logout },
                };
                let tls = has_tls && protocol.greeting.is_none();
                Some(Self { kind, addr, tls, proxies: protocol.proxies.to_vec() })
            })
            .ok_or_else(|| "the configuration has no address to check: every address is empty or has port 0".to_owned())
    }

    fn run(&self) -> Result<String, String> {
        let stream = self.addr.connect(&self.proxies).map_err(|error| {
            let hint = if error.kind() == io::ErrorKind::ConnectionRefused { ". Is the server running?" } else { "" };
            format!("cannot be reached: {error}{hint}")
        })?;
        let mut stream: Box<dyn Stream> = if self.tls { Box::new(start_tls(stream)?) } else { stream };
        match &self.kind {
            ProbeKind::Http(path) => check_http(&mut *stream, path),
            ProbeKind::Greeting { ready, logout, .. } => check_greeting(&mut *stream, ready, logout),
            ProbeKind::Connection(_) => Ok("accepts connections, with TLS from the first byte".to_owned()),
        }
        .map_err(|error| match error.kind() {
            io::ErrorKind::Other => error.to_string(),
            _ => format!("does not respond: {error}"),
        })
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match &self.kind {
            ProbeKind::Http(_) if self.tls => "HTTPS",
            ProbeKind::Http(_) => "HTTP",
            ProbeKind::Greeting { protocol, .. } | ProbeKind::Connection(protocol) => protocol,
        };
        write!(f, "{protocol} on {}", self.addr)
    }
}

impl ProbeAddr {
    /// Converts an address to listen on. A wildcard is reached by loopback. A port that the system chose is not known
    /// here.
    fn from_listen_addr(addr: &ListenAddr) -> Option<Self> {
        let (ips, port): (Vec<IpAddr>, u16) = match addr {
            ListenAddr::Unix { path, .. } => return Some(Self::Unix(path.clone())),
            ListenAddr::Localhost(port) | ListenAddr::Any(port) => {
                (vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()], *port)
            }
            ListenAddr::Tcp(addr) => match addr.ip() {
                IpAddr::V4(ip) if ip.is_unspecified() => (vec![Ipv4Addr::LOCALHOST.into()], addr.port()),
                IpAddr::V6(ip) if ip.is_unspecified() => (vec![Ipv6Addr::LOCALHOST.into()], addr.port()),
                // The whole address: a link-local one also contains the link.
                _ if addr.port() != 0 => return Some(Self::Tcp(vec![*addr])),
                _ => return None,
            },
        };
        (port != 0).then(|| Self::Tcp(ips.into_iter().map(|ip| (ip, port).into()).collect()))
    }

    /// Connects. If this machine is one of the proxies, it sends a PROXY header without a client.
    fn connect(&self, proxies: &[Network]) -> io::Result<Box<dyn Stream>> {
        let addrs = match self {
            Self::Tcp(addrs) => addrs,
            Self::Unix(path) => return Ok(Box::new(unix_socket::connect(path)?)),
        };
        let mut stream = TcpStream::connect(addrs.as_slice())?;
        let own_ip = stream.local_addr()?.ip();
        if proxies.iter().any(|network| network.contains(own_ip)) {
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

/// Sends an HTTP/1.0 request, so that the response ends with the connection.
fn check_http(stream: &mut dyn Stream, path: &str) -> io::Result<String> {
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut response = String::new();
    BufReader::new(stream).take(MAX_RESPONSE_BYTES).read_to_string(&mut response)?;
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
    let line = head.lines().next().unwrap_or_default();
    match line.split(' ').nth(1).filter(|_| line.starts_with("HTTP/")) {
        Some("200") => Ok("is ready".to_owned()),
        Some(status) => {
            let problem: Option<Value> = serde_json::from_str(body).ok();
            let detail = problem.as_ref().and_then(|problem| problem["detail"].as_str());
            Err(io::Error::other(format!("responds with {status}: {}", detail.unwrap_or("no reason given"))))
        }
        None => Err(io::Error::other("does not speak HTTP")),
    }
}

/// Reads the greeting of a mail protocol.
fn check_greeting(stream: &mut dyn Stream, ready: &str, logout: &str) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(&mut *stream).take(MAX_RESPONSE_BYTES).read_line(&mut line)?;
    if !line.starts_with(ready) {
        return Err(io::Error::other(format!("responds with {:?}", line.trim_end())));
    }
    // A courtesy; the result is already known.
    let _ = write!(stream, "{logout}\r\n");
    Ok("sends its greeting".to_owned())
}

/// Starts TLS without checking the certificate. The server is our own, on this machine, and nothing secret is sent. Its
/// certificate may have been created at start, or issued for its name and not for `127.0.0.1`. The handshake happens at
/// the first write. The error is a sentence for the operator.
fn start_tls<S: Read + Write>(stream: S) -> Result<StreamOwned<ClientConnection, S>, String> {
    let name = ServerName::try_from("localhost").map_err(|error| error.to_string())?;
    let client = insecure_client_config().and_then(|config| ClientConnection::new(Arc::new(config), name));
    Ok(StreamOwned::new(client.map_err(|error| format!("cannot be checked with TLS: {error}"))?, stream))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use restante_testdir::TestDir;

    use super::*;

    /// A port that only root could listen on, and nothing does.
    const CLOSED_PORT: u16 = 1;

    /// Starts a server that reads `request_bytes` bytes, and sends the same response to every client.
    fn fake_server(request_bytes: usize, response: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let _ =
                    stream.read_exact(&mut vec![0; request_bytes]).and_then(|()| stream.write_all(response.as_bytes()));
            }
        });
        addr
    }

    fn config(web: &[ListenAddr], smtp: &[ListenAddr]) -> Config {
        let mut config = Config::default();
        config.web.addr = web.to_vec();
        config.smtp.addr = smtp.to_vec();
        (config.pop3.addr, config.imap.addr) = (Vec::new(), Vec::new());
        config
    }

    /// Checks the server of a configuration once.
    fn check(config: &Config, timeout: Duration) -> Result<String, String> {
        super::check(&Arc::new(Probe::for_config(config)?), timeout)
    }

    fn tcp(addr: SocketAddr) -> ListenAddr {
        ListenAddr::Tcp(addr)
    }

    #[test]
    fn checks_http_responses() {
        let full = "HTTP/1.1 503 Service Unavailable\r\n\r\n{\"status\":503,\"detail\":\"The store is full.\"}\n";
        let cases = [
            ("HTTP/1.0 200 OK\r\n\r\nok\n", Ok("is ready")),
            (full, Err("responds with 503: The store is full.")),
            ("HTTP/1.1 502 Bad Gateway\r\n\r\n<html>", Err("responds with 502: no reason given")),
            ("220 mx ready\r\n", Err("does not speak HTTP")),
            ("", Err("does not speak HTTP")),
        ];
        for (response, expected) in cases {
            let addr = fake_server("GET /mail/readyz HTTP/1.0\r\nHost: localhost\r\n\r\n".len(), response);
            let mut config = config(&[tcp(addr)], &[]);
            config.web.base_path = "/mail".to_owned();
            let name = format!("HTTP on {addr}");
            let expected =
                expected.map(|detail| format!("{name} {detail}")).map_err(|reason| format!("{name} {reason}"));
            assert_eq!(check(&config, TIMEOUT), expected);
        }
    }

    #[test]
    fn mail_listeners_are_checked_without_http() {
        let ready = fake_server(0, "220 mx.test ready\r\n");
        assert_eq!(check(&config(&[], &[tcp(ready)]), TIMEOUT), Ok(format!("SMTP on {ready} sends its greeting")));
        let refusing = fake_server(0, "421 4.3.2 too many connections\r\n");
        let reason = format!("SMTP on {refusing} responds with \"421 4.3.2 too many connections\"");
        assert_eq!(check(&config(&[], &[tcp(refusing)]), TIMEOUT), Err(reason));

        let mut lmtp = config(&[], &[]);
        lmtp.lmtp.addr = vec![tcp(ready)];
        assert_eq!(check(&lmtp, TIMEOUT), Ok(format!("LMTP on {ready} sends its greeting")));

        let silent = fake_server(1, "");
        let mut forced = config(&[], &[tcp(silent)]);
        forced.smtp.tls.force = true;
        let mut implicit = config(&[], &[]);
        implicit.smtp.tls_addr = vec![tcp(silent)];
        for config in [forced, implicit] {
            let expected = format!("SMTP on {silent} accepts connections, with TLS from the first byte");
            assert_eq!(check(&config, TIMEOUT), Ok(expected));
        }
    }

    #[test]
    fn sends_a_proxy_header_if_expected() {
        let addr = fake_server("PROXY UNKNOWN\r\n".len(), "220 mx.test ready\r\n");
        let mut proxied = config(&[], &[tcp(addr)]);
        proxied.smtp.proxies = vec!["127.0.0.0/8".parse().expect("a network")];
        assert_eq!(check(&proxied, TIMEOUT), Ok(format!("SMTP on {addr} sends its greeting")));
        proxied.smtp.proxies = vec!["192.0.2.0/24".parse().expect("a network")];
        let timeout = Duration::from_millis(50);
        check(&proxied, timeout).expect_err("the server waits for a header");
    }

    #[test]
    fn pop3_is_checked_without_other_listeners() {
        let pop3 = |addr| {
            let mut config = config(&[], &[]);
            config.pop3.addr = vec![tcp(addr)];
            config
        };
        let ready = fake_server(0, "+OK Restante POP3 server ready <1.2@mx.test>\r\n");
        assert_eq!(check(&pop3(ready), TIMEOUT), Ok(format!("POP3 on {ready} sends its greeting")));
        let refusing = fake_server(0, "-ERR [SYS/TEMP] too many connections\r\n");
        let reason = format!("POP3 on {refusing} responds with \"-ERR [SYS/TEMP] too many connections\"");
        assert_eq!(check(&pop3(refusing), TIMEOUT), Err(reason));

        let silent = fake_server(1, "");
        let mut forced = pop3(silent);
        forced.pop3.tls.force = true;
        let mut implicit = config(&[], &[]);
        implicit.pop3.tls_addr = vec![tcp(silent)];
        for config in [forced, implicit] {
            let expected = format!("POP3 on {silent} accepts connections, with TLS from the first byte");
            assert_eq!(check(&config, TIMEOUT), Ok(expected));
        }

        let mut both = pop3(refusing);
        both.smtp.addr = vec![tcp(fake_server(0, "220 mx.test ready\r\n"))];
        assert!(check(&both, TIMEOUT).is_ok_and(|detail| detail.starts_with("SMTP on ")));
    }

    #[test]
    fn imap_is_checked_without_other_listeners() {
        let ready = fake_server(0, "* OK mx.test ready\r\n");
        let refusing = fake_server(0, "* BYE too many connections\r\n");
        let imap = |addr| {
            let mut config = config(&[], &[]);
            config.imap.addr = vec![tcp(addr)];
            config
        };
        assert_eq!(check(&imap(ready), TIMEOUT), Ok(format!("IMAP on {ready} sends its greeting")));
        let reason = format!("IMAP on {refusing} responds with \"* BYE too many connections\"");
        assert_eq!(check(&imap(refusing), TIMEOUT), Err(reason));
    }

    #[test]
    fn fails_after_the_time_limit() {
        let silent = fake_server(1000, "");
        let reason = check(&config(&[tcp(silent)], &[]), Duration::from_millis(50)).expect_err("no response");
        assert_eq!(reason, format!("HTTP on {silent} does not respond"));

        let closed = SocketAddr::from(([127, 0, 0, 1], CLOSED_PORT));
        let reason = check(&config(&[tcp(closed)], &[]), TIMEOUT).expect_err("nothing listens there");
        assert!(reason.starts_with(&format!("HTTP on {closed} cannot be reached: ")), "{reason}");
        assert!(reason.ends_with("Is the server running?"), "{reason}");
    }

    #[test]
    fn waits_until_the_server_is_ready() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let addr = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for response in ["503 Service Unavailable", "503 Service Unavailable", "200 OK"] {
                let (mut stream, _) = listener.accept().expect("a client");
                stream
                    .read_exact(&mut [0; "GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n".len()])
                    .expect("a request");
                write!(stream, "HTTP/1.0 {response}\r\n\r\n").expect("a response");
            }
        });
        let config = config(&[tcp(addr)], &[]);
        let once = check_until_ready(&config, None).expect_err("the first response is 503");
        assert!(once.contains("responds with 503"), "{once}");
        let result = check_until_ready(&config, Some(Duration::from_mins(1)));
        assert_eq!(result, Ok(format!("HTTP on {addr} is ready")));
    }

    #[test]
    fn a_check_takes_no_longer_than_the_time_to_wait() {
        let [ms, secs] = [Duration::from_millis, Duration::from_secs];
        for (wait, elapsed, timeout) in [
            (None, ms(0), secs(3)),
            (Some(secs(30)), secs(1), secs(3)),
            (Some(secs(1)), ms(0), secs(1)),
            (Some(secs(1)), ms(600), ms(400)),
            // A server that is ready can answer in any case.
            (Some(secs(1)), ms(900), ms(250)),
            (Some(ms(0)), ms(0), ms(250)),
        ] {
            assert_eq!(check_timeout(wait, elapsed), timeout, "{wait:?} {elapsed:?}");
        }
    }

    #[test]
    fn converts_listen_addresses() {
        let cases = [
            ("192.0.2.1:80", Some("[192.0.2.1:80]")),
            (":9000", Some("[127.0.0.1:9000, [::1]:9000]")),
            ("localhost:9000", Some("[127.0.0.1:9000, [::1]:9000]")),
            ("0.0.0.0:9000", Some("[127.0.0.1:9000]")),
            ("[::]:9000", Some("[[::1]:9000]")),
            ("[2001:db8::1]:9000", Some("[[2001:db8::1]:9000]")),
            ("unix:/run/web.sock", Some("/run/web.sock")),
            ("unix:/run/web.sock:0660", Some("/run/web.sock")),
            ("localhost:0", None),
            ("127.0.0.1:0", None),
            (":0", None),
        ];
        for (addr, expected) in cases {
            let probe_addr = ProbeAddr::from_listen_addr(&addr.parse().expect("an address")).map(|addr| match addr {
                ProbeAddr::Tcp(addrs) => format!("{addrs:?}"),
                ProbeAddr::Unix(path) => path.display().to_string(),
            });
            assert_eq!(probe_addr.as_deref(), expected, "{addr}");
        }
        for addrs in [&[ListenAddr::Any(0)][..], &[]] {
            // Waiting does not help.
            let result = check_until_ready(&config(addrs, &[]), Some(MAX_WAIT));
            let reason = result.expect_err("there is no address");
            assert!(reason.contains("no address to check"), "{reason}");
        }
    }

    #[test]
    fn checks_a_unix_socket() {
        let dir = TestDir::new();
        let path = dir.path().join("smtp.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let _ = stream.write_all(b"220 mx.test ready\r\n");
        });
        let response = check(&config(&[], &[ListenAddr::Unix { path: path.clone(), mode: None }]), TIMEOUT);
        assert_eq!(response, Ok(format!("SMTP on unix:{} sends its greeting", path.display())));
    }
}
