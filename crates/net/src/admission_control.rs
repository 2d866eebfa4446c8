//! Admission of connections, the same for every protocol: determines the client's address, from a PROXY header if the
//! peer is a trusted proxy, and whether its connections are counted per client. The refusal is up to the protocol.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use restante_mail::named_enum;
use restante_proto::proxy::{self, Progress};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

use super::Network;
use super::{Admission, ConnectionLimits, Readiness, TooMany};

/// How long to wait for a PROXY header. A proxy knows the content of the header when it connects.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// The admission settings that the listeners of one protocol share.
#[derive(Debug)]
pub struct AdmissionControl {
    /// The connection limits.
    pub limits: Arc<ConnectionLimits>,
    /// The proxies whose connections start with a PROXY header.
    pub proxies: Vec<Network>,
    /// Peers whose connections are not counted per client, because they act for many clients.
    pub exempt: Vec<Network>,
    /// The readiness of the server. The listeners report to it whether they can accept connections.
    pub readiness: Arc<Readiness>,
}

/// The client of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClientInfo {
    /// The address, or `None` on a Unix socket.
    pub(super) ip: Option<IpAddr>,
    /// Whether its connections are counted per client.
    is_counted: bool,
    /// Whether a PROXY header was required.
    pub(super) is_proxied: bool,
}

named_enum! {
    /// The outcome of reading a required PROXY header.
    pub enum ProxyHeaderOutcome {
        /// The header was valid.
        Valid = "ok",
        /// The data was not a PROXY header, or an invalid one.
        Malformed = "malformed",
        /// The header did not arrive in time.
        TimedOut = "late",
        /// The proxy closed before the header was complete. Health checks do this.
        Disconnected = "left",
    }
}

impl AdmissionControl {
    /// Determines the client. The error is the outcome of an invalid or missing PROXY header.
    pub(super) async fn identify_client<S>(
        &self,
        stream: &mut S,
        peer: Option<IpAddr>,
    ) -> Result<ClientInfo, ProxyHeaderOutcome>
    where
        S: AsyncRead + Unpin,
    {
        let Some(peer) = peer else { return Ok(ClientInfo { ip: None, is_counted: false, is_proxied: false }) };
        // An exempt proxy acts for many clients, whichever of them the header names.
        let is_counted = !contains(&self.exempt, peer);
        if !contains(&self.proxies, peer) {
            return Ok(ClientInfo { ip: Some(peer), is_counted, is_proxied: false });
        }
        let source = timeout(HEADER_TIMEOUT, read_header(stream)).await.unwrap_or(Err(ProxyHeaderOutcome::TimedOut))?;
        // A proxy that names no client connects for itself, for example for a health check.
        Ok(ClientInfo { ip: source.or(Some(peer)), is_counted: is_counted && source.is_some(), is_proxied: true })
    }

    /// Counts an admitted connection for its client.
    pub(super) fn assign_to_client(admission: Admission, client: ClientInfo) -> Result<Admission, TooMany> {
        match client.ip {
            Some(ip) if client.is_counted => admission.for_client(ip),
            _ => Ok(admission),
        }
    }
}

fn contains(networks: &[Network], ip: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(ip))
}

/// Reads a PROXY header and no byte after it.
async fn read_header<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Option<IpAddr>, ProxyHeaderOutcome> {
    let mut header = Vec::new();
    loop {
        let more = match proxy::parse(&header) {
            Ok(Progress::NeedMore(more)) => more,
            Ok(Progress::Complete(source)) => return Ok(source),
            Err(proxy::MalformedHeader) => return Err(ProxyHeaderOutcome::Malformed),
        };
        header.reserve(more);
        if !matches!((&mut *stream).take(more as u64).read_buf(&mut header).await, Ok(1..)) {
            return Err(ProxyHeaderOutcome::Disconnected);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use tokio::io::{AsyncWriteExt as _, duplex};
    use tokio::time::{Instant, sleep};

    use super::*;

    const LINE: &[u8] = b"PROXY TCP4 192.0.2.1 198.51.100.7 56324 25\r\n";

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn admission_control() -> AdmissionControl {
        AdmissionControl {
            limits: ConnectionLimits::new(10, Some(1)),
            proxies: vec!["10.0.0.0/8".parse().unwrap()],
            exempt: vec!["192.168.0.0/16".parse().unwrap(), "10.9.0.0/16".parse().unwrap()],
            readiness: Arc::default(),
        }
    }

    fn direct(client: &str, is_counted: bool) -> ClientInfo {
        ClientInfo { ip: Some(ip(client)), is_counted, is_proxied: false }
    }

    fn proxied(client: &str, is_counted: bool) -> ClientInfo {
        ClientInfo { ip: Some(ip(client)), is_counted, is_proxied: true }
    }

    #[tokio::test]
    async fn identifies_the_client() {
        let names_exempt_client = b"PROXY TCP4 192.168.0.1 198.51.100.7 56324 25\r\n";
        let local = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00";
        let table: [(_, &[u8], _); 11] = [
            ("unix", LINE, Ok(ClientInfo { ip: None, is_counted: false, is_proxied: false })),
            ("203.0.113.1", LINE, Ok(direct("203.0.113.1", true))),
            ("192.168.0.1", LINE, Ok(direct("192.168.0.1", false))),
            ("10.0.0.1", LINE, Ok(proxied("192.0.2.1", true))),
            // The exemption applies to the proxy, not to the client that its header names.
            ("10.0.0.1", names_exempt_client, Ok(proxied("192.168.0.1", true))),
            ("10.9.0.1", LINE, Ok(proxied("192.0.2.1", false))),
            ("10.0.0.1", b"PROXY UNKNOWN\r\n", Ok(proxied("10.0.0.1", false))),
            ("10.0.0.1", local, Ok(proxied("10.0.0.1", false))),
            ("10.0.0.1", b"EHLO client.test\r\n", Err(ProxyHeaderOutcome::Malformed)),
            ("10.0.0.1", b"", Err(ProxyHeaderOutcome::Disconnected)),
            ("10.0.0.1", &LINE[..20], Err(ProxyHeaderOutcome::Disconnected)),
        ];
        for (peer, sent, expected) in table {
            let client = admission_control().identify_client(&mut Cursor::new(sent), peer.parse().ok()).await;
            assert_eq!(client, expected, "{peer} {sent:?}");
        }
    }

    #[tokio::test]
    async fn reads_nothing_after_the_header() {
        let mut stream = Cursor::new([LINE, b"EHLO client.test\r\n"].concat());
        admission_control().identify_client(&mut stream, Some(ip("10.0.0.1"))).await.unwrap();
        assert_eq!(stream.position(), LINE.len() as u64);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_header_is_read_until_the_timeout() {
        for (pause, expected) in [(100, Ok(Some(ip("192.0.2.1")))), (200, Err(ProxyHeaderOutcome::TimedOut))] {
            let (mut proxy, mut server) = duplex(1);
            let start = Instant::now();
            let slow_writer = tokio::spawn(async move {
                for byte in LINE {
                    sleep(Duration::from_millis(pause)).await;
                    if proxy.write_all(&[*byte]).await.is_err() {
                        break;
                    }
                }
            });
            let client = admission_control().identify_client(&mut server, Some(ip("10.0.0.1"))).await;
            assert_eq!(client.map(|client| client.ip), expected, "{pause}");
            assert!(start.elapsed() <= HEADER_TIMEOUT);
            drop(server);
            slow_writer.await.unwrap();
        }
    }
}
