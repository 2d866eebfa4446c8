//! Listeners that are bound but not yet served, with the function that serves their connections. It is the same for all
//! protocols.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use restante_net::{Admission, AdmissionControl, ConnectionCounters, ListenAddr, Listener, Shutdown, Stream, TooMany};

/// A bound listener, and how its connections are served.
pub(super) struct BoundListener {
    name: &'static str,
    /// The configured address.
    addr: ListenAddr,
    listener: Listener,
    admission: Arc<AdmissionControl>,
    counters: Arc<ConnectionCounters>,
    serve: ServeFn,
}

/// Serves one connection until it ends.
type ServeFn = Arc<dyn Fn(Stream, Option<IpAddr>, Result<Admission, TooMany>, Shutdown) -> ServeFuture + Send + Sync>;
type ServeFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The addresses of a setting, such as `smtp.addr`, on which a protocol is served.
pub(super) struct Endpoint<'a> {
    /// The name of the protocol in the log.
    pub(super) name: &'static str,
    pub(super) addrs: &'a [ListenAddr],
    /// How another address is chosen: a flag and a variable.
    pub(super) option: String,
}

impl BoundListener {
    /// Binds all addresses, and adds a problem for each one that fails.
    pub(super) fn bind_all<F, S>(
        endpoint: &Endpoint<'_>,
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
        let Endpoint { name, addrs, option } = endpoint;
        for addr in *addrs {
            match restante_net::bind(addr) {
                Ok(listeners) => bound.extend(listeners.into_iter().map(|listener| {
                    let (admission, counters, serve) = (admission.clone(), counters.clone(), serve.clone());
                    Self { name, addr: addr.clone(), listener, admission, counters, serve }
                })),
                Err(error) => problems.push(format!(
                    "cannot listen on {addr} for {name}: {error}. Use {option} to choose another address."
                )),
            }
        }
        bound
    }

    /// Returns the port of the first TCP listener of this name.
    pub(super) fn port(listeners: &[Self], name: &str) -> Option<u16> {
        listeners.iter().filter(|listener| listener.name == name).find_map(|listener| listener.listener.port())
    }

    /// Returns the name of the protocol.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the address where clients of this machine reach the listener: host and port, or the path of a Unix socket.
    pub(super) fn client_address(&self) -> String {
        let host = match &self.addr {
            ListenAddr::Unix { path, .. } => return format!("unix:{}", path.display()),
            ListenAddr::Any(_) | ListenAddr::Localhost(_) => "localhost".to_owned(),
            ListenAddr::Tcp(addr) if addr.ip().is_unspecified() => "localhost".to_owned(),
            ListenAddr::Tcp(addr) if addr.is_ipv6() => format!("[{}]", addr.ip()),
            ListenAddr::Tcp(addr) => addr.ip().to_string(),
        };
        format!("{host}:{}", self.listener.port().unwrap_or_default())
    }

    /// Returns whether the listener has a TCP port.
    pub(super) fn is_tcp(&self) -> bool {
        self.listener.port().is_some()
    }

    /// Accepts connections until the shutdown begins.
    pub(super) fn start(self, shutdown: Shutdown) {
        let Self { name, listener, admission, counters, serve, .. } = self;
        tracing::info!("{name} listening on {listener}");
        let serve = move |stream, ip, admission, shutdown| serve(stream, ip, admission, shutdown);
        tokio::spawn(restante_net::accept(listener, admission, counters, shutdown, serve));
    }
}
