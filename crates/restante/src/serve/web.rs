//! The making of the HTTP server: from the configuration to bound listeners.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use restante_metrics::{Metrics, Protocol};
use restante_net::{AcceptedStream, Admission, AdmissionControl, ConnectionLimits, Shutdown, Stream, Tls, TooMany};

use super::{BoundListener, Components, pop3, smtp};

/// The name of the listeners that speak HTTP as it is.
const PLAIN: &str = "HTTP";
/// The name of those that speak HTTPS.
const WITH_TLS: &str = "HTTPS";

/// Binds every listener for HTTP and HTTPS, which tells where the others listen.
pub(super) fn bind(
    parts: &Components<'_>,
    mail: &[BoundListener],
    tls: Option<&Arc<Tls>>,
    problems: &mut Vec<String>,
) -> Vec<BoundListener> {
    let web = &parts.config.web;
    let gate = Arc::new(AdmissionControl {
        limits: ConnectionLimits::new(web.max_connections, web.max_connections_per_ip),
        proxies: web.proxies.clone(),
        exempt: web.trusted_proxies.clone(),
        readiness: parts.readiness.clone(),
    });
    let router = restante_http::router(parts.mailroom.clone(), settings(parts, &gate), info(parts, mail));
    let tally = parts.metrics.connections(Protocol::Http);
    let mut all = Vec::new();
    for (addrs, implicit_tls) in [(&web.addr, web.tls.force), (&web.tls_addr, true)] {
        let router = router.clone();
        let secure =
            tls.filter(|_| implicit_tls).cloned().map(|tls| HttpsListener { tls, metrics: parts.metrics.clone() });
        let name = if secure.is_some() { WITH_TLS } else { PLAIN };
        let serve = move |stream, ip, admission, shutdown| {
            serve(stream, ip, admission, secure.clone(), router.clone(), shutdown)
        };
        all.extend(BoundListener::bind_all(name, addrs, &gate, tally, serve, problems));
    }
    all
}

/// What a listener for HTTPS has more.
#[derive(Clone)]
struct HttpsListener {
    tls: Arc<Tls>,
    metrics: Arc<Metrics>,
}

impl HttpsListener {
    /// Does the handshake. A client that speaks plain HTTP is told so; there is nobody to talk to then, or when the server
    /// ends: nothing was said yet that could be finished.
    async fn handshake(&self, stream: Stream, ip: Option<IpAddr>, mut shutdown: Shutdown) -> Option<Stream> {
        let opening = tokio::select! {
            biased;
            opening = self.tls.accept_or_plain(stream) => opening,
            () = shutdown.triggered() => return None,
        };
        let opened = match opening {
            Ok(AcceptedStream::Plain(stream)) => {
                restante_http::refuse_plaintext(stream).await;
                return None;
            }
            Ok(AcceptedStream::Tls(stream)) => Ok(stream),
            Err(error) => Err(error),
        };
        match self.metrics.count_handshake(Protocol::Http, opened) {
            Ok(stream) => Some(stream),
            Err(error) => {
                tracing::debug!(%error, ip = ip.map(display), "TLS handshake failed");
                None
            }
        }
    }
}

fn settings(parts: &Components<'_>, gate: &AdmissionControl) -> restante_http::Settings {
    let web = &parts.config.web;
    restante_http::Settings {
        base_path: web.base_path.clone(),
        public_url: web.public_url.clone(),
        hosts: web.hosts.clone(),
        cors: web.cors.clone(),
        trusted_proxies: web.trusted_proxies.clone(),
        cache_bytes: web.cache_bytes,
        max_monitors: web.max_monitors,
        mailbox_cap: parts.config.storage.mailbox_msg_cap,
        max_message_bytes: parts.config.effective_max_message_bytes(),
        clients: gate.limits.clients().clone(),
        readiness: gate.readiness.clone(),
        metrics: parts.metrics.clone(),
        extensions: parts.extensions.for_http(),
        auth: Some(parts.auth.clone()).filter(|locks| locks.is_enabled()),
    }
}

fn info(parts: &Components<'_>, mail: &[BoundListener]) -> restante_http::ServerInfo {
    restante_http::ServerInfo {
        about: about(parts, mail),
        status: restante_http::Status::from_config(parts.config),
        greeting_file: parts.config.web.greeting_file.clone(),
    }
}

fn about(parts: &Components<'_>, mail: &[BoundListener]) -> restante_http::About {
    let announced = |plain, with_tls, tls: &restante_settings::Tls| {
        let port = |name, implicit_tls| {
            BoundListener::port(mail, name).map(|number| restante_http::Port { number, implicit_tls })
        };
        port(plain, tls.force).or_else(|| port(with_tls, true))
    };
    let smtp = announced(smtp::PLAIN, smtp::WITH_TLS, &parts.config.smtp.tls);
    let pop3 = announced(pop3::PLAIN, pop3::WITH_TLS, &parts.config.pop3.tls);
    restante_http::About::new(parts.config, smtp, pop3, parts.metrics.started())
}

async fn serve(
    stream: Stream,
    ip: Option<IpAddr>,
    admission: Result<Admission, TooMany>,
    secure: Option<HttpsListener>,
    router: Router,
    shutdown: Shutdown,
) {
    let admission = match admission {
        Ok(admission) => admission,
        // A handshake is too much work for a connection that is sent away, and there is no other way to tell it.
        Err(_) if secure.is_some() => return,
        Err(too_many) => return restante_http::refuse_connection(stream, too_many).await,
    };
    let stream = match secure {
        // A connection without TLS shall not take the memory that a handshake needs.
        Some(secure) => match Box::pin(secure.handshake(stream, ip, shutdown.clone())).await {
            Some(stream) => stream,
            None => return,
        },
        None => stream,
    };
    let peer = restante_http::Peer { ip, socket_ip: stream.peer_ip(), tls: stream.is_tls() };
    let version = restante_http::Version::from_alpn(stream.alpn_protocol());
    restante_http::serve_connection(
        stream,
        peer,
        version,
        router,
        restante_http::ConnectionGuard::new(Some(admission), shutdown),
    )
    .await;
}
