//! The way in, the same for every protocol: who the client is, be it by the word of a proxy, and whether its connections
//! are counted. What is said to a client for whom there is no place is the protocol's.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use restante_proto::proxy::{self, Progress};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::timeout;

use super::{Admission, Limits, Readiness, TooMany};
use crate::config::Network;

/// How long a proxy may take for its header. It knows what to say when it connects.
const HEADER_TIME: Duration = Duration::from_secs(5);

/// What the listeners of one protocol share.
#[derive(Debug)]
pub struct Gate {
    /// How many may come in.
    pub limits: Arc<Limits>,
    /// The proxies whose connections begin with a PROXY header.
    pub proxies: Vec<Network>,
    /// Those whose connections are not counted one by one, because they speak for many.
    pub exempt: Vec<Network>,
    /// Where the listeners report how they do.
    pub readiness: Arc<Readiness>,
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client {
    /// The address; `None` on a unix socket.
    pub(super) ip: Option<IpAddr>,
    /// Whether its connections are counted.
    counted: bool,
}

impl Gate {
    /// Finds out who the client is. An error means that a proxy has not said it as it has to.
    pub(super) async fn client<S>(&self, stream: &mut S, peer: Option<IpAddr>) -> io::Result<Client>
    where
        S: AsyncRead + Unpin,
    {
        let Some(peer) = peer else { return Ok(Client { ip: None, counted: false }) };
        let source =
            if contains(&self.proxies, peer) { timeout(HEADER_TIME, read_header(stream)).await?? } else { Some(peer) };
        Ok(match source {
            Some(ip) => Client { ip: Some(ip), counted: !contains(&self.exempt, ip) },
            // The proxy speaks for itself, for instance to see how we are.
            None => Client { ip: Some(peer), counted: false },
        })
    }

    /// Counts an admitted connection as its client's.
    pub(super) fn admit(admission: Admission, client: Client) -> Result<Admission, TooMany> {
        match client.ip {
            Some(ip) if client.counted => admission.of(ip),
            _ => Ok(admission),
        }
    }
}

fn contains(networks: &[Network], ip: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(ip))
}

/// Reads a PROXY header and not a byte more.
async fn read_header<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<IpAddr>> {
    let mut header = Vec::new();
    loop {
        let more = match proxy::parse(&header) {
            Ok(Progress::More(more)) => more,
            Ok(Progress::Header(header)) => return Ok(header.source),
            Err(proxy::Malformed) => return Err(io::Error::new(ErrorKind::InvalidData, "malformed PROXY header")),
        };
        header.reserve(more);
        if (&mut *stream).take(more as u64).read_buf(&mut header).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
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

    fn gate() -> Gate {
        Gate {
            limits: Limits::new(10, Some(1)),
            proxies: vec!["10.0.0.0/8".parse().unwrap()],
            exempt: vec!["192.168.0.0/16".parse().unwrap()],
            readiness: Arc::default(),
        }
    }

    fn counted(client: &str) -> Client {
        Client { ip: Some(ip(client)), counted: true }
    }

    fn uncounted(client: &str) -> Client {
        Client { ip: Some(ip(client)), counted: false }
    }

    #[tokio::test]
    async fn who_the_client_is() {
        let from_exempt = b"PROXY TCP4 192.168.0.1 198.51.100.7 56324 25\r\n";
        let local = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00";
        let table: [(_, &[u8], _); 10] = [
            ("unix", LINE, Ok(Client { ip: None, counted: false })),
            ("203.0.113.1", LINE, Ok(counted("203.0.113.1"))),
            ("192.168.0.1", LINE, Ok(uncounted("192.168.0.1"))),
            ("10.0.0.1", LINE, Ok(counted("192.0.2.1"))),
            ("10.0.0.1", from_exempt, Ok(uncounted("192.168.0.1"))),
            ("10.0.0.1", b"PROXY UNKNOWN\r\n", Ok(uncounted("10.0.0.1"))),
            ("10.0.0.1", local, Ok(uncounted("10.0.0.1"))),
            ("10.0.0.1", b"EHLO client.test\r\n", Err(ErrorKind::InvalidData)),
            ("10.0.0.1", b"", Err(ErrorKind::UnexpectedEof)),
            ("10.0.0.1", &LINE[..20], Err(ErrorKind::UnexpectedEof)),
        ];
        for (peer, sent, expected) in table {
            let client = gate().client(&mut Cursor::new(sent), peer.parse().ok()).await;
            assert_eq!(client.map_err(|error| error.kind()), expected, "{peer} {sent:?}");
        }
    }

    #[tokio::test]
    async fn what_follows_the_header_is_left_alone() {
        let mut stream = Cursor::new([LINE, b"EHLO client.test\r\n"].concat());
        gate().client(&mut stream, Some(ip("10.0.0.1"))).await.unwrap();
        assert_eq!(stream.position(), LINE.len() as u64);
    }

    #[tokio::test(start_paused = true)]
    async fn a_header_may_come_in_pieces_but_not_for_ever() {
        for (pause, expected) in [(100, Ok(Some(ip("192.0.2.1")))), (200, Err(ErrorKind::TimedOut))] {
            let (mut proxy, mut server) = duplex(1);
            let start = Instant::now();
            let drip = tokio::spawn(async move {
                for byte in LINE {
                    sleep(Duration::from_millis(pause)).await;
                    if proxy.write_all(&[*byte]).await.is_err() {
                        break;
                    }
                }
            });
            let client = gate().client(&mut server, Some(ip("10.0.0.1"))).await;
            assert_eq!(client.map(|client| client.ip).map_err(|error| error.kind()), expected, "{pause}");
            assert!(start.elapsed() <= HEADER_TIME);
            drop(server);
            drip.await.unwrap();
        }
    }
}
