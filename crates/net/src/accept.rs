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
/// client's address. A connection above the limits is passed to `serve` with the reason instead of an admission, so that
/// the protocol can send its own refusal.
pub async fn accept<F, S>(
    listener: Listener,
    admission_control: Arc<AdmissionControl>,
    counters: Arc<ConnectionCounters>,
    mut shutdown: Shutdown,
    serve: F,
) where
    F: Fn(Stream, Option<IpAddr>, Result<Admission, TooMany>, Shutdown) -> S + Clone + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let mut status = admission_control.readiness.register_listener();
    let refusal_log = Arc::new(RefusalLog { listener: listener.to_string(), ..RefusalLog::default() });
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.triggered() => return,
            // `accept` has been pending for a while without an error, so the listener works again.
            () = sleep(RETRY_DELAY), if status.is_failing() => {
                status.set_failing(false);
                continue;
            }
        };
        match accepted {
            Ok((stream, peer)) => {
                status.set_failing(false);
                // Count the connection before anything else is done for it.
                let admission = admission_control.limits.admit();
                let connection =
                    NewConnection { stream, peer, admission, counters: counters.clone(), shutdown: shutdown.clone() };
                tokio::spawn(connection.admit_and_serve(admission_control.clone(), refusal_log.clone(), serve.clone()));
            }
            Err(error) if is_peer_error(&error) => {}
            Err(error) => {
                // Log this once, not ten times per second.
                if status.set_failing(true) {
                    tracing::error!(%error, %listener, "cannot accept connections, retrying");
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
    async fn admit_and_serve<F, S>(
        self,
        admission_control: Arc<AdmissionControl>,
        refusal_log: Arc<RefusalLog>,
        serve: F,
    ) where
        F: Fn(Stream, Option<IpAddr>, Result<Admission, TooMany>, Shutdown) -> S,
        S: Future<Output = ()>,
    {
        let Self { mut stream, peer, admission, counters, mut shutdown } = self;
        let (ip, admission) = match admission {
            Ok(admission) => {
                let client = tokio::select! {
                    biased;
                    client = admission_control.identify_client(&mut stream, peer) => client,
                    () = shutdown.triggered() => return,
                };
                match client {
                    Ok(client) => {
                        if client.is_proxied {
                            counters.count_proxy_header(ProxyHeaderOutcome::Valid);
                        }
                        (client.ip, AdmissionControl::assign_to_client(admission, client))
                    }
                    Err(header) => {
                        counters.count_proxy_header(header);
                        return refusal_log.log_bad_header(header, peer);
                    }
                }
            }
            Err(too_many) => (peer, Err(too_many)),
        };
        let admission = counters.count_admission(admission);
        let _refusal_permit = match admission {
            Ok(_) => None,
            Err(too_many) => {
                refusal_log.log_too_many(too_many, ip);
                // Without this permit the connection is closed without a reply.
                let Some(permit) = admission_control.limits.acquire_refusal_permit() else { return };
                Some(permit)
            }
        };
        serve(stream, ip, admission, shutdown).await;
    }
}

/// Logs connections that are not served. Each kind is throttled separately.
#[derive(Default)]
struct RefusalLog {
    listener: String,
    in_total: LogThrottle,
    from_client: LogThrottle,
    bad_header: LogThrottle,
}

impl RefusalLog {
    fn log_too_many(&self, too_many: TooMany, ip: Option<IpAddr>) {
        let Self { listener, in_total, from_client, .. } = self;
        match too_many {
            TooMany::InTotal if in_total.should_log() => {
                tracing::warn!(%listener, "connection limit reached, refusing new connections");
            }
            TooMany::FromClient if from_client.should_log() => {
                let ip = ip.map(display);
                tracing::warn!(%listener, ip, "connection limit of one client reached, refusing its new connections");
            }
            _ => {}
        }
    }

    fn log_bad_header(&self, header: ProxyHeaderOutcome, proxy: Option<IpAddr>) {
        let Self { listener, bad_header, .. } = self;
        let proxy = proxy.map(display);
        let reason = match header {
            ProxyHeaderOutcome::Malformed => "malformed",
            ProxyHeaderOutcome::TimedOut => "timed out",
            // Health checks connect and close without sending anything.
            ProxyHeaderOutcome::Valid | ProxyHeaderOutcome::Disconnected => {
                return tracing::debug!(%listener, proxy, "proxy disconnected before its PROXY header");
            }
        };
        if bad_header.should_log() {
            tracing::warn!(%listener, proxy, "closed a connection without a valid PROXY header: {reason}");
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
    async fn report_client(mut stream: Stream, ip: Option<IpAddr>, admission: Result<Admission, TooMany>, _: Shutdown) {
        let text = format!("{} {:?}\n", ip.unwrap(), admission.as_ref().err());
        stream.write_all(text.as_bytes()).await.unwrap();
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
        counters: Arc<ConnectionCounters>,
    ) -> std::net::SocketAddr {
        let mut listeners = bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = listeners.remove(0);
        let Listener::Tcp(tcp) = &listener else { panic!("expected a TCP listener") };
        let address = tcp.local_addr().unwrap();
        let proxies = proxies.iter().map(|network| network.parse().unwrap()).collect();
        let admission_control =
            AdmissionControl { limits, proxies, exempt: Vec::new(), readiness: Arc::<Readiness>::default() };
        tokio::spawn(accept(listener, Arc::new(admission_control), counters, shutdown, report_client));
        address
    }

    /// Returns the first line from the server. Empty if it closes without one.
    async fn read_reply(stream: &mut TcpStream) -> String {
        let mut reply = Vec::new();
        while !reply.ends_with(b"\n") {
            match stream.read_u8().await {
                Ok(byte) => reply.push(byte),
                Err(_) => break,
            }
        }
        String::from_utf8(reply).unwrap()
    }

    #[tokio::test]
    async fn proxied_clients_have_separate_limits() {
        let (_trigger, shutdown) = ShutdownTrigger::new();
        let address = listen(ConnectionLimits::new(3, Some(1)), &["127.0.0.0/8"], shutdown);
        let mut open_streams = Vec::new();
        for (client, text) in [
            ("192.0.2.1", "192.0.2.1 None\n"),
            ("192.0.2.1", "192.0.2.1 Some(FromClient)\n"),
            ("192.0.2.2", "192.0.2.2 None\n"),
            ("192.0.2.3", "192.0.2.3 None\n"),
            // The total limit is reached, so its header is not read.
            ("192.0.2.4", "127.0.0.1 Some(InTotal)\n"),
        ] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(format!("PROXY TCP4 {client} 192.0.2.9 1 2\r\n").as_bytes()).await.unwrap();
            assert_eq!(read_reply(&mut stream).await, text);
            open_streams.push(stream);
        }
    }

    #[tokio::test]
    async fn number_of_concurrent_refusals_is_limited() {
        let (_trigger, shutdown) = ShutdownTrigger::new();
        let address = listen(ConnectionLimits::new(0, None), &[], shutdown);
        let mut flood = JoinSet::new();
        for _ in 0..300 {
            flood.spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                (read_reply(&mut stream).await, stream)
            });
        }
        let flood = flood.join_all().await;
        let refused = flood.iter().filter(|(text, _)| text == "127.0.0.1 Some(InTotal)\n").count();
        let dropped = flood.iter().filter(|(text, _)| text.is_empty()).count();
        assert_eq!((refused, dropped), (256, 44));
    }

    #[tokio::test]
    async fn counts_proxy_headers_by_outcome() {
        let (_trigger, shutdown) = ShutdownTrigger::new();
        let counters = Arc::new(ConnectionCounters::default());
        let address = listen_and_count(ConnectionLimits::new(10, None), &["127.0.0.1"], shutdown, counters.clone());
        for text in ["PROXY UNKNOWN\r\n", "EHLO client.test\r\n", "PROXY nonsense\r\n", "PROXY "] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(text.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            read_reply(&mut stream).await;
        }
        assert_eq!(ProxyHeaderOutcome::ALL.map(|header| counters.proxy_headers_total(header)), [1, 2, 0, 1]);
        assert_eq!((counters.accepted_total(), counters.refused_total()), (1, 0));
    }

    #[tokio::test]
    async fn shutdown_does_not_wait_for_a_header() {
        let (trigger, shutdown) = ShutdownTrigger::new();
        let address = listen(ConnectionLimits::new(10, None), &["127.0.0.1"], shutdown);
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"PROXY ").await.unwrap();
        assert!(trigger.trigger_and_wait(Duration::from_secs(4)).await);
        assert_eq!(read_reply(&mut stream).await, "");
    }
}
