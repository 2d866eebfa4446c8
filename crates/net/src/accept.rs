//! The accept loop of every server.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use restante_logging::LogThrottle;
use tokio::time::sleep;
use tracing::field::display;

use super::{Admission, AdmissionControl, ConnectionCounters, Listener, ProxyHeaderOutcome, Shutdown, Stream, TooMany};

/// How long to wait after a failed accept, for example because no file descriptors are left.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Accepts connections until the shutdown is triggered and runs `serve` for each of them in its own task, with the
/// client's address. A connection above the limits is passed to `serve` without an admission, so that the protocol can
/// send its own refusal.
pub async fn accept<F, S>(
    listener: Listener,
    gate: Arc<AdmissionControl>,
    tally: Arc<ConnectionCounters>,
    mut shutdown: Shutdown,
    serve: F,
) where
    F: Fn(Stream, Option<IpAddr>, Result<Admission, TooMany>, Shutdown) -> S + Clone + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let mut report = gate.readiness.register_listener();
    let told = Arc::new(RefusalLog::new(&listener));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.triggered() => return,
            // The pending accept shows that the listener works again.
            () = sleep(RETRY_DELAY), if report.is_failing() => {
                report.set_failing(false);
                continue;
            }
        };
        match accepted {
            Ok((stream, peer)) => {
                report.set_failing(false);
                // Count the connection before anything else is done for it.
                let admission = gate.limits.admit();
                let arrival =
                    NewConnection { stream, peer, admission, counters: tally.clone(), shutdown: shutdown.clone() };
                tokio::spawn(arrival.admit_and_serve(gate.clone(), told.clone(), serve.clone()));
            }
            Err(error) if is_peer_error(&error) => {}
            Err(error) => {
                // Log this once, not ten times per second.
                if report.set_failing(true) {
                    tracing::error!(%error, %listener, "cannot accept connections; trying again");
                }
                sleep(RETRY_DELAY).await;
            }
        }
    }
}

/// An accepted connection whose client address is not known yet.
struct NewConnection {
    stream: Stream,
    peer: Option<IpAddr>,
    admission: Result<Admission, TooMany>,
    counters: Arc<ConnectionCounters>,
    shutdown: Shutdown,
}

impl NewConnection {
    /// Determines the client's address, counts the connection for the client, and runs the protocol.
    async fn admit_and_serve<F, S>(self, gate: Arc<AdmissionControl>, told: Arc<RefusalLog>, serve: F)
    where
        F: Fn(Stream, Option<IpAddr>, Result<Admission, TooMany>, Shutdown) -> S,
        S: Future<Output = ()>,
    {
        let Self { mut stream, peer, admission, counters: tally, mut shutdown } = self;
        let (ip, admission) = match admission {
            Ok(admission) => {
                let client = tokio::select! {
                    biased;
                    client = gate.identify_client(&mut stream, peer) => client,
                    () = shutdown.triggered() => return,
                };
                match client {
                    Ok(client) => {
                        if client.is_proxied {
                            tally.count_proxy_header(ProxyHeaderOutcome::Valid);
                        }
                        (client.ip, AdmissionControl::assign_to_client(admission, client))
                    }
                    Err(header) => {
                        tally.count_proxy_header(header);
                        return told.log_bad_header(header, peer);
                    }
                }
            }
            Err(too_many) => (peer, Err(too_many)),
        };
        let admission = tally.count_admission(admission);
        let _refusal = match admission {
            Ok(_) => None,
            Err(too_many) => {
                told.log_too_many(too_many, ip);
                // Without a refusal slot the connection is closed without a reply.
                let Some(refusal) = gate.limits.acquire_refusal_slot() else { return };
                Some(refusal)
            }
        };
        serve(stream, ip, admission, shutdown).await;
    }
}

/// Logs connections that are not served. Each kind is throttled separately.
struct RefusalLog {
    listener: String,
    in_total: LogThrottle,
    from_peer: LogThrottle,
    bad_header: LogThrottle,
}

impl RefusalLog {
    fn new(listener: &Listener) -> Self {
        Self {
            listener: listener.to_string(),
            in_total: LogThrottle::default(),
            from_peer: LogThrottle::default(),
            bad_header: LogThrottle::default(),
        }
    }

    fn log_too_many(&self, too_many: TooMany, ip: Option<IpAddr>) {
        let Self { listener, in_total, from_peer, .. } = self;
        match too_many {
            TooMany::InTotal if in_total.is_due() => {
                tracing::warn!(%listener, "too many connections: new ones are refused");
            }
            TooMany::FromPeer if from_peer.is_due() => {
                let ip = ip.map(display);
                tracing::warn!(%listener, ip, "too many connections of one client: its new ones are refused");
            }
            _ => {}
        }
    }

    fn log_bad_header(&self, header: ProxyHeaderOutcome, proxy: Option<IpAddr>) {
        let Self { listener, bad_header: no_header, .. } = self;
        let proxy = proxy.map(display);
        let why = match header {
            ProxyHeaderOutcome::Malformed => "something else came",
            ProxyHeaderOutcome::TimedOut => "nothing came in time",
            // Health checks connect and close without sending anything.
            ProxyHeaderOutcome::Valid | ProxyHeaderOutcome::Disconnected => {
                return tracing::debug!(%listener, proxy, "closed before its PROXY header");
            }
        };
        if no_header.is_due() {
            tracing::warn!(%listener, proxy, "a connection without a good PROXY header was closed: {why}");
        }
    }
}

/// Returns whether the peer disconnected before it was accepted.
fn is_peer_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, InvalidInput, NotConnected};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | NotConnected | InvalidInput)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::task::JoinSet;

    use super::*;
    use crate::{ConnectionLimits, Readiness, ShutdownTrigger, bind};

    /// A test server: sends the client's address and the reached limit, then waits until the client disconnects.
    async fn tell(mut stream: Stream, ip: Option<IpAddr>, admission: Result<Admission, TooMany>, _: Shutdown) {
        let words = format!("{} {:?}\n", ip.unwrap(), admission.as_ref().err());
        stream.write_all(words.as_bytes()).await.unwrap();
        // Wait until the client disconnects.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }

    /// Starts the test server on a loopback listener.
    fn listen(limits: Arc<ConnectionLimits>, proxies: &[&str], shutdown: Shutdown) -> std::net::SocketAddr {
        listen_and_count(limits, proxies, shutdown, Arc::default())
    }

    fn listen_and_count(
        limits: Arc<ConnectionLimits>,
        proxies: &[&str],
        shutdown: Shutdown,
        tally: Arc<ConnectionCounters>,
    ) -> std::net::SocketAddr {
        let mut listeners = bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = listeners.remove(0);
        let Listener::Tcp(tcp) = &listener else { panic!("TCP was asked for") };
        let address = tcp.local_addr().unwrap();
        let proxies = proxies.iter().map(|network| network.parse().unwrap()).collect();
        let gate = AdmissionControl { limits, proxies, exempt: Vec::new(), readiness: Arc::<Readiness>::default() };
        tokio::spawn(accept(listener, Arc::new(gate), tally, shutdown, tell));
        address
    }

    /// Returns the first line from the server. Empty if it closes without one.
    async fn hear(stream: &mut TcpStream) -> String {
        let mut heard = Vec::new();
        while !heard.ends_with(b"\n") {
            match stream.read_u8().await {
                Ok(byte) => heard.push(byte),
                Err(_) => break,
            }
        }
        String::from_utf8(heard).unwrap()
    }

    #[tokio::test]
    async fn clients_of_a_proxy_have_limits_of_their_own() {
        let (_trigger, shutdown) = ShutdownTrigger::new();
        let address = listen(ConnectionLimits::new(3, Some(1)), &["127.0.0.0/8"], shutdown);
        let mut here = Vec::new();
        for (client, words) in [
            ("192.0.2.1", "192.0.2.1 None\n"),
            ("192.0.2.1", "192.0.2.1 Some(FromPeer)\n"),
            ("192.0.2.2", "192.0.2.2 None\n"),
            ("192.0.2.3", "192.0.2.3 None\n"),
            // The total limit is reached, so its header is not read.
            ("192.0.2.4", "127.0.0.1 Some(InTotal)\n"),
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(format!("PROXY TCP4 {client} 192.0.2.9 1 2\r\n").as_bytes()).await.unwrap();
            assert_eq!(hear(&mut stream).await, words);
            here.push(stream);
        }
    }

    #[tokio::test]
    async fn a_flood_of_refused_connections_is_not_answered_for_ever() {
        let (_trigger, shutdown) = ShutdownTrigger::new();
        let address = listen(ConnectionLimits::new(0, None), &[], shutdown);
        let mut flood = JoinSet::new();
        for _ in 0..300 {
            flood.spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                (hear(&mut stream).await, stream)
            });
        }
        let flood = flood.join_all().await;
        let told = flood.iter().filter(|(words, _)| words == "127.0.0.1 Some(InTotal)\n").count();
        let dropped = flood.iter().filter(|(words, _)| words.is_empty()).count();
        assert_eq!((told, dropped), (256, 44));
    }

    #[tokio::test]
    async fn headers_are_counted_by_what_becomes_of_them() {
        let (_trigger, shutdown) = ShutdownTrigger::new();
        let tally = Arc::new(ConnectionCounters::default());
        let address = listen_and_count(ConnectionLimits::new(10, None), &["127.0.0.1"], shutdown, tally.clone());
        for words in ["PROXY UNKNOWN\r\n", "EHLO client.test\r\n", "PROXY nonsense\r\n", "PROXY "] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(words.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            hear(&mut stream).await;
        }
        assert_eq!(ProxyHeaderOutcome::ALL.map(|header| tally.proxy_headers_total(header)), [1, 2, 0, 1]);
        assert_eq!((tally.accepted_total(), tally.refused_total()), (1, 0));
    }

    #[tokio::test]
    async fn the_end_does_not_wait_for_a_header() {
        let (trigger, shutdown) = ShutdownTrigger::new();
        let address = listen(ConnectionLimits::new(10, None), &["127.0.0.1"], shutdown);
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"PROXY ").await.unwrap();
        assert!(trigger.trigger_and_wait(Duration::from_secs(4)).await);
        assert_eq!(hear(&mut stream).await, "");
    }
}
