//! Builds the HTTP server from the configuration, and binds its listeners.

use std::net::IpAddr;
use std::slice::from_ref;
use std::sync::{Arc, LazyLock};

use axum::Router;
use restante_http::{ListenerApis, Service};
use restante_metrics::{Metrics, Protocol};
use restante_net::{
    AcceptedStream, Admission, AdmissionControl, ConnectionLimits, ListenAddr, Shutdown, Stream, Tls, TooMany,
};

use super::{BoundListener, Components, imap, pop3, smtp};

/// The name of the HTTP listeners.
const PLAIN: &str = "HTTP";
/// The name of the HTTPS listeners.
const WITH_TLS: &str = "HTTPS";
/// The names of listeners for other APIs, without and with TLS.
const OTHER_APIS: [&str; 2] = ["HTTP APIs", "HTTPS APIs"];

/// Binds all listeners for HTTP and HTTPS. The server reports the ports of the mail listeners.
pub(super) fn bind(
    components: &Components<'_>,
    mail: &[BoundListener],
    tls: Option<&Arc<Tls>>,
    problems: &mut Vec<String>,
) -> Vec<BoundListener> {
    let web = &components.config.web;
    let limits = ConnectionLimits::new(web.max_connections, web.max_connections_per_ip);
    let admission = components.admission(limits, &web.proxies, &web.trusted_proxies);
    let (mailroom, settings, info) =
        (components.mailroom.clone(), settings(components, &admission), info(components, mail));
    // Created by the first connection, because it is a large part of the work of a start.
    let service = Arc::new(LazyLock::new(move || Service::new(mailroom, settings, info)));
    let mut binder = Binder { components, admission: &admission, tls, problems, listeners: Vec::new() };
    let router = lazy_router(&service, ListenerApis::main(&web.listeners));
    binder.bind([PLAIN, WITH_TLS], "web.addr", &web.addr, web.tls.force, &router);
    binder.bind([PLAIN, WITH_TLS], "web.tlsaddr", &web.tls_addr, true, &router);
    for (addr, mounts) in web.separate_listeners() {
        let has_tls = web.tls.force || mounts.iter().any(|mount| mount.tls);
        let router = lazy_router(&service, ListenerApis::separate(mounts));
        binder.bind(OTHER_APIS, "web.listeners", from_ref(addr), has_tls, &router);
    }
    binder.listeners
}

type LazyRouter = Arc<LazyLock<Router, Box<dyn FnOnce() -> Router + Send>>>;

fn lazy_router<F: FnOnce() -> Service + Send + 'static>(
    service: &Arc<LazyLock<Service, F>>,
    apis: ListenerApis,
) -> LazyRouter {
    let service = service.clone();
    Arc::new(LazyLock::new(Box::new(move || service.router(&apis))))
}

/// Binds listeners that share the limits.
struct Binder<'b, 'c> {
    components: &'b Components<'c>,
    admission: &'b Arc<AdmissionControl>,
    tls: Option<&'b Arc<Tls>>,
    problems: &'b mut Vec<String>,
    listeners: Vec<BoundListener>,
}

impl Binder<'_, '_> {
    /// Binds the addresses of a setting. Its listeners have the first name without TLS, and the second with TLS.
    fn bind(
        &mut self,
        [plain, with_tls]: [&'static str; 2],
        key: &'static str,
        addrs: &[ListenAddr],
        implicit_tls: bool,
        router: &LazyRouter,
    ) {
        let (components, router) = (self.components, router.clone());
        let tls = self.tls.filter(|_| implicit_tls).cloned();
        let https = tls.map(|tls| HttpsListener { tls, metrics: components.metrics.clone() });
        let name = if https.is_some() { with_tls } else { plain };
        let endpoint = components.endpoint(name, key, addrs);
        let serve = move |stream, ip, admission, shutdown| {
            serve(stream, ip, admission, https.clone(), Router::clone(&router), shutdown)
        };
        let counters = components.metrics.connections(Protocol::Http);
        let bound = BoundListener::bind_all(&endpoint, self.admission, counters, serve, self.problems);
        self.listeners.extend(bound);
    }
}

/// Returns the port of the first listener that has one.
pub(super) fn port(listeners: &[BoundListener]) -> Option<u16> {
    BoundListener::port(listeners, PLAIN).or_else(|| BoundListener::port(listeners, WITH_TLS))
}

/// Returns the URL of the web interface at the first TCP listener, for a browser on this machine.
pub(super) fn page_url(components: &Components<'_>, listeners: &[BoundListener]) -> Option<String> {
    let listener =
        listeners.iter().find(|listener| listener.is_tcp() && [PLAIN, WITH_TLS].contains(&listener.name()))?;
    let scheme = if listener.name() == WITH_TLS { "https" } else { "http" };
    Some(format!("{scheme}://{}{}/", listener.client_address(), components.config.web.base_path))
}

/// What HTTPS needs in addition to HTTP.
#[derive(Clone)]
struct HttpsListener {
    tls: Arc<Tls>,
    metrics: Arc<Metrics>,
}

impl HttpsListener {
    /// Performs the handshake. Returns `None` if it fails, or if the server is shutting down: no request has begun yet.
    /// A client that speaks plain HTTP gets an error response.
    async fn handshake(&self, stream: Stream, ip: Option<IpAddr>, mut shutdown: Shutdown) -> Option<Stream> {
        let accepted = tokio::select! {
            biased;
            accepted = self.tls.accept_or_plain(stream) => accepted,
            () = shutdown.triggered() => return None,
        };
        let handshake = match accepted {
            Ok(AcceptedStream::Plain(stream)) => {
                restante_http::refuse_plaintext(stream).await;
                return None;
            }
            Ok(AcceptedStream::Tls(stream)) => Ok(stream),
            Err(error) => Err(error),
        };
        match self.metrics.count_handshake(Protocol::Http, handshake) {
            Ok(stream) => Some(stream),
            Err(error) => {
                tracing::debug!(%error, ip = ip.map(display), "TLS handshake failed");
                None
            }
        }
    }
}

fn settings(components: &Components<'_>, admission: &AdmissionControl) -> restante_http::Settings {
    let web = &components.config.web;
    restante_http::Settings {
        base_path: web.base_path.clone(),
        public_url: web.public_url.clone(),
        hosts: web.hosts.clone(),
        cors: web.cors.clone(),
        trusted_proxies: web.trusted_proxies.clone(),
        cache_bytes: web.cache_bytes,
        max_monitors: web.max_monitors,
        max_message_bytes: components.config.effective_max_message_bytes(),
        signing_keys: components.config.signing_keys.clone(),
        clients: admission.limits.clients().clone(),
        readiness: admission.readiness.clone(),
        metrics: components.metrics.clone(),
        registry: components.registry.clone(),
        services: components.services.services.clone(),
        auth: Some(components.auth.clone()),
    }
}

fn info(components: &Components<'_>, mail: &[BoundListener]) -> restante_http::ServerInfo {
    restante_http::ServerInfo {
        about: about(components, mail),
        status: restante_http::Status::from_config(components.config),
        greeting_file: components.config.web.greeting_file.clone(),
    }
}

fn about(components: &Components<'_>, mail: &[BoundListener]) -> restante_http::About {
    let reported_port = |plain, with_tls, tls: &restante_settings::Tls| {
        let port = |name, implicit_tls| {
            BoundListener::port(mail, name).map(|number| restante_http::Port { number, implicit_tls })
        };
        port(plain, tls.force).or_else(|| port(with_tls, true))
    };
    let smtp = reported_port(smtp::PLAIN, smtp::WITH_TLS, &components.config.smtp.tls);
    let pop3 = reported_port(pop3::PLAIN, pop3::WITH_TLS, &components.config.pop3.tls);
    let imap = reported_port(imap::PLAIN, imap::WITH_TLS, &components.config.imap.tls);
    restante_http::About::new(components.config, smtp, [pop3, imap], components.metrics.started())
}

async fn serve(
    stream: Stream,
    ip: Option<IpAddr>,
    admission: Result<Admission, TooMany>,
    https: Option<HttpsListener>,
    router: Router,
    shutdown: Shutdown,
) {
    let admission = match admission {
        Ok(admission) => admission,
        // A handshake is too expensive for a refused connection, and without one there is no way to send a response.
        Err(_) if https.is_some() => return,
        Err(too_many) => return restante_http::refuse_connection(stream, too_many).await,
    };
    let stream = match https {
        // Boxed, so that a connection without TLS does not use the memory for a handshake.
        Some(https) => match Box::pin(https.handshake(stream, ip, shutdown.clone())).await {
            Some(stream) => stream,
            None => return,
        },
        None => stream,
    };
    let peer = restante_http::Peer { ip, socket_ip: stream.peer_ip(), tls: stream.is_tls() };
    let version = restante_http::Version::from_alpn(stream.alpn_protocol());
    restante_http::serve_stream(
        stream,
        peer,
        version,
        router,
        restante_http::ConnectionGuard::new(Some(admission), shutdown),
    )
    .await;
}
