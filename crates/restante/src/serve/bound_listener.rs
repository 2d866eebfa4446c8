//! Listeners that are bound but not served yet, each with who will serve its connections. Protocols differ in what they
//! make of a connection, not in how they get it.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use restante_net::{Admission, AdmissionControl, ConnectionCounters, ListenAddr, Listener, Shutdown, Stream, TooMany};

/// A bound listener, and how its connections are served.
pub(super) struct BoundListener {
    name: &'static str,
    listener: Listener,
    admission: Arc<AdmissionControl>,
    counters: Arc<ConnectionCounters>,
    serve: ServeFn,
}

/// Serves one connection to its end.
type ServeFn = Arc<dyn Fn(Stream, Option<IpAddr>, Result<Admission, TooMany>, Shutdown) -> ServeFuture + Send + Sync>;
type ServeFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl BoundListener {
    /// Listens on all of the addresses, and tells of every one where that is not possible.
    pub(super) fn bind_all<F, S>(
        name: &'static str,
        addrs: &[ListenAddr],
        gate: &Arc<AdmissionControl>,
        tally: &Arc<ConnectionCounters>,
        serve: F,
        problems: &mut Vec<String>,
    ) -> Vec<Self>
    where
        F: Fn(Stream, Option<IpAddr>, Result<Admission, TooMany>, Shutdown) -> S + Send + Sync + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let serve: ServeFn =
            Arc::new(move |stream, ip, admission, shutdown| Box::pin(serve(stream, ip, admission, shutdown)));
        let mut all = Vec::new();
        for addr in addrs {
            match restante_net::bind(addr) {
                Ok(listeners) => all.extend(listeners.into_iter().map(|listener| {
                    let (gate, tally, serve) = (gate.clone(), tally.clone(), serve.clone());
                    Self { name, listener, admission: gate, counters: tally, serve }
                })),
                Err(error) => problems.push(format!("{name} cannot listen on {addr}: {error}")),
            }
        }
        all
    }

    /// The port of the first TCP listener of this name.
    pub(super) fn port(all: &[Self], name: &str) -> Option<u16> {
        all.iter().filter(|bound| bound.name == name).find_map(|bound| bound.listener.port())
    }

    /// Accepts connections from now on, until the end begins.
    pub(super) fn start(self, shutdown: Shutdown) {
        let Self { name, listener, admission: gate, counters: tally, serve } = self;
        tracing::info!("{name} listening on {listener}");
        let serve = move |stream, ip, admission, shutdown| serve(stream, ip, admission, shutdown);
        tokio::spawn(restante_net::accept(listener, gate, tally, shutdown, serve));
    }
}
