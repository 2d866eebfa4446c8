//! The accept loop that every server shares.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{Admission, Gate, Listener, Shutdown, Stream, Tally, TooMany};

/// How long to wait after the system could not accept, for instance because it has no file descriptors left.
const PAUSE: Duration = Duration::from_millis(100);
/// How long nothing more is said about refused connections.
const QUIET: Duration = Duration::from_secs(10);

/// Accepts connections until the shutdown begins and runs `serve` for each in a task of its own, with the client's
/// address. A connection beyond the limits is handed over without admission, so that the protocol can refuse in its own
/// words.
pub async fn accept<F, S>(listener: Listener, gate: Arc<Gate>, tally: Arc<Tally>, mut shutdown: Shutdown, serve: F)
where
    F: Fn(Stream, Option<IpAddr>, Result<Admission, TooMany>, Shutdown) -> S + Clone + Send + 'static,
    S: Future<Output = ()> + Send + 'static,
{
    let mut report = gate.readiness.report();
    let told =
        Arc::new(Told { listener: listener.to_string(), in_total: Mutex::default(), from_peer: Mutex::default() });
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.begun() => return,
            // To wait for a connection is not to fail.
            () = sleep(PAUSE), if report.is_failing() => {
                report.set(false);
                continue;
            }
        };
        match accepted {
            Ok((stream, peer)) => {
                report.set(false);
                // A place among all is taken before anything else is done for a connection.
                let admission = gate.limits.admit();
                let arrival = Arrival { stream, peer, admission, tally: tally.clone(), shutdown: shutdown.clone() };
                tokio::spawn(arrival.let_in(gate.clone(), told.clone(), serve.clone()));
            }
            Err(error) if concerns_one_peer(&error) => {}
            Err(error) => {
                // Said once, not ten times a second.
                if report.set(true) {
                    tracing::error!(%error, %listener, "cannot accept connections; trying again");
                }
                sleep(PAUSE).await;
            }
        }
    }
}

/// A connection whose client is not known yet.
struct Arrival {
    stream: Stream,
    peer: Option<IpAddr>,
    admission: Result<Admission, TooMany>,
    tally: Arc<Tally>,
    shutdown: Shutdown,
}

impl Arrival {
    /// Finds out who the client is and takes a place for it; then the protocol has its turn.
    async fn let_in<F, S>(self, gate: Arc<Gate>, told: Arc<Told>, serve: F)
    where
        F: Fn(Stream, Option<IpAddr>, Result<Admission, TooMany>, Shutdown) -> S,
        S: Future<Output = ()>,
    {
        let Self { mut stream, peer, admission, tally, mut shutdown } = self;
        let (ip, admission) = match admission {
            Ok(admission) => {
                let client = tokio::select! {
                    biased;
                    client = gate.client(&mut stream, peer) => client,
                    () = shutdown.begun() => return,
                };
                match client {
                    Ok(client) => (client.ip, Gate::admit(admission, client)),
                    Err(error) => return tracing::debug!(?peer, %error, "no good PROXY header"),
                }
            }
            Err(too_many) => (peer, Err(too_many)),
        };
        let admission = tally.count(admission);
        let _refusal = match admission {
            Ok(_) => None,
            Err(too_many) => {
                told.tell(too_many, ip);
                // Without the right to say so, the connection just ends.
                let Some(refusal) = gate.limits.refusal() else { return };
                Some(refusal)
            }
        };
        serve(stream, ip, admission, shutdown).await;
    }
}

/// When the operator was last told of refused connections.
struct Told {
    listener: String,
    in_total: Mutex<Option<Instant>>,
    from_peer: Mutex<Option<Instant>>,
}

impl Told {
    fn tell(&self, too_many: TooMany, ip: Option<IpAddr>) {
        let last = match too_many {
            TooMany::InTotal => &self.in_total,
            TooMany::FromPeer => &self.from_peer,
        };
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_some_and(|last| last.elapsed() <= QUIET) {
            return;
        }
        *last = Some(Instant::now());
        let listener = &self.listener;
        match too_many {
            TooMany::InTotal => tracing::warn!(listener, "too many connections: new ones are refused"),
            TooMany::FromPeer => {
                tracing::warn!(listener, ?ip, "too many connections of one client: its new ones are refused");
            }
        }
    }
}

/// The peer was gone before it was accepted.
fn concerns_one_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, InvalidInput, NotConnected};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | NotConnected | InvalidInput)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::task::JoinSet;

    use super::*;
    use crate::net::{Limits, Readiness, ShutdownTrigger, bind};

    /// What a server of the tests says to a client.
    async fn tell(mut stream: Stream, ip: Option<IpAddr>, admission: Result<Admission, TooMany>, _: Shutdown) {
        let words = format!("{} {:?}\n", ip.unwrap(), admission.as_ref().err());
        stream.write_all(words.as_bytes()).await.unwrap();
        // Until the client has gone.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }

    /// A listener on loopback whose server says who the client is and whether it was admitted.
    fn listen(limits: Arc<Limits>, proxies: &[&str], shutdown: Shutdown) -> std::net::SocketAddr {
        let mut listeners = bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = listeners.remove(0);
        let Listener::Tcp(tcp) = &listener else { panic!("TCP was asked for") };
        let address = tcp.local_addr().unwrap();
        let proxies = proxies.iter().map(|network| network.parse().unwrap()).collect();
        let gate = Gate { limits, proxies, exempt: Vec::new(), readiness: Arc::<Readiness>::default() };
        tokio::spawn(accept(listener, Arc::new(gate), Arc::default(), shutdown, tell));
        address
    }

    /// The first line that the server says; empty when it says nothing.
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
        let address = listen(Limits::new(3, Some(1)), &["127.0.0.0/8"], shutdown);
        let mut here = Vec::new();
        for (client, words) in [
            ("192.0.2.1", "192.0.2.1 None\n"),
            ("192.0.2.1", "192.0.2.1 Some(FromPeer)\n"),
            ("192.0.2.2", "192.0.2.2 None\n"),
            ("192.0.2.3", "192.0.2.3 None\n"),
            // There is no place to wait for its header in.
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
        let address = listen(Limits::new(0, None), &[], shutdown);
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
    async fn the_end_does_not_wait_for_a_header() {
        let (trigger, shutdown) = ShutdownTrigger::new();
        let address = listen(Limits::new(10, None), &["127.0.0.1"], shutdown);
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"PROXY ").await.unwrap();
        assert!(trigger.run(Duration::from_secs(4)).await);
        assert_eq!(hear(&mut stream).await, "");
    }
}
