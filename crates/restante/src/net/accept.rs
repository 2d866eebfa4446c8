//! The accept loop that every server shares.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Admission, Limits, Listener, Shutdown, Stream, TooMany};

/// How long to wait after the system could not accept, for instance because it has no file descriptors left.
const PAUSE: Duration = Duration::from_millis(100);
/// How long nothing more is said about refused connections.
const QUIET: Duration = Duration::from_secs(10);

/// Accepts connections until the shutdown begins and runs `serve` for each in a task of its own. A connection beyond the
/// limits is handed over without admission, so that the protocol can refuse in its own words.
pub async fn accept<F, S>(listener: Listener, limits: Arc<Limits>, mut shutdown: Shutdown, serve: F)
where
    F: Fn(Stream, Option<IpAddr>, Result<Admission, TooMany>, Shutdown) -> S,
    S: Future<Output = ()> + Send + 'static,
{
    let mut failing = false;
    let mut told_full: Option<Instant> = None;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.begun() => return,
        };
        match accepted {
            Ok((stream, ip)) => {
                failing = false;
                let admission = limits.admit(ip);
                if admission.is_err() && told_full.is_none_or(|told| told.elapsed() > QUIET) {
                    tracing::warn!(%listener, "too many connections: new ones are refused");
                    told_full = Some(Instant::now());
                }
                tokio::spawn(serve(stream, ip, admission, shutdown.clone()));
            }
            Err(error) if concerns_one_peer(&error) => {}
            Err(error) => {
                // Said once, not ten times a second.
                if !std::mem::replace(&mut failing, true) {
                    tracing::error!(%error, %listener, "cannot accept connections; trying again");
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// The peer was gone before it was accepted.
fn concerns_one_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, InvalidInput, NotConnected};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | NotConnected | InvalidInput)
}
