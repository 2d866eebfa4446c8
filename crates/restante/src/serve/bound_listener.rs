//! Listeners that are bound but not yet served, with the function that serves their connections. It is the same for all
//! protocols.

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

/// Serves one connection until it ends.
type ServeFn = Arc<dyn Fn(Stream, Option<IpAddr>, Result<Admission, TooMany>, Shutdown) -> ServeFuture + Send + Sync>;
type ServeFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl BoundListener {
    /// Binds all addresses, and adds a problem for each one that fails.
    pub(super) fn bind_all<F, S>(
        name: &'static str,
        addrs: &[ListenAddr],
        admission: &Arc<AdmissionControl>,
        counters: &Arc<ConnectionCounters>,
        serve: F,
        problems: &mut Vec<String>,
    ) -> Vec<Self>
    where
        F: Fn(Stream, Option<IpAddr>, Result<Admission, TooMany>, Shutdown) -> S + Send + Sync + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let serve: ServeFn =
            Arc::new(move |stream, ip, admission, shutdown| Box::pin(serve(stream, ip, admission, shutdown)));
        let mut bound = Vec::new();
        for addr in addrs {
            match restante_net::bind(addr) {
                Ok(listeners) => bound.extend(listeners.into_iter().map(|listener| {
                    let (admission, counters, serve) = (admission.clone(), counters.clone(), serve.clone());
                    Self { name, listener, admission, counters, serve }
                })),
                Err(error) => problems.push(format!("{name} cannot listen on {addr}: {error}")),
            }
        }
        bound
    }

    /// Returns the port of the first TCP listener of this name.
    pub(super) fn port(listeners: &[Self], name: &str) -> Option<u16> {
        listeners.iter().filter(|listener| listener.name == name).find_map(|listener| listener.listener.port())
    }

    /// Accepts connections until the shutdown begins.
    pub(super) fn start(self, shutdown: Shutdown) {
        let Self { name, listener, admission, counters, serve } = self;
        tracing::info!("{name} listening on {listener}");
        let serve = move |stream, ip, admission, shutdown| serve(stream, ip, admission, shutdown);
        tokio::spawn(restante_net::accept(listener, admission, counters, shutdown, serve));
    }
}
