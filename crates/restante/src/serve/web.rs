//! The making of the HTTP server: from the configuration to bound listeners.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;

use super::{Bound, Parts, pop3, smtp};
use crate::config::Tls;
use crate::http;
use crate::metrics::Protocol;
use crate::net::{Admission, Gate, Limits, Shutdown, Stream, TooMany};

/// Binds every listener for HTTP, which tells where the others listen.
pub(super) fn bind(parts: &Parts<'_>, mail: &[Bound], problems: &mut Vec<String>) -> Vec<Bound> {
    let web = &parts.config.web;
    let gate = Arc::new(Gate {
        limits: Limits::new(web.max_connections, web.max_connections_per_ip),
        proxies: web.proxies.clone(),
        exempt: web.trusted_proxies.clone(),
        readiness: parts.readiness.clone(),
    });
    let router = http::router(parts.mailroom.clone(), settings(parts, mail, &gate));
    let serve = move |stream, ip, admission, shutdown| serve(stream, ip, admission, router.clone(), shutdown);
    Bound::all("HTTP", &web.addr, &gate, parts.metrics.connections(Protocol::Http), serve, problems)
}

fn settings(parts: &Parts<'_>, mail: &[Bound], gate: &Gate) -> http::Settings {
    let web = &parts.config.web;
    http::Settings {
        base_path: web.base_path.clone(),
        public_url: web.public_url.clone(),
        hosts: web.hosts.clone(),
        trusted_proxies: web.trusted_proxies.clone(),
        cache_bytes: web.cache_bytes,
        max_monitors: web.max_monitors,
        clients: gate.limits.clients().clone(),
        readiness: gate.readiness.clone(),
        metrics: parts.metrics.clone(),
        status: http::Status::of(parts.config),
        about: about(parts, mail),
        extensions: parts.extensions.clone(),
        greeting_file: web.greeting_file.clone(),
    }
}

fn about(parts: &Parts<'_>, mail: &[Bound]) -> http::About {
    let announced = |plain, with_tls, tls: &Tls| {
        let port = |name, implicit_tls| Bound::port(mail, name).map(|number| http::Port { number, implicit_tls });
        port(plain, tls.force).or_else(|| port(with_tls, true))
    };
    let smtp = announced(smtp::PLAIN, smtp::WITH_TLS, &parts.config.smtp.tls);
    let pop3 = announced(pop3::PLAIN, pop3::WITH_TLS, &parts.config.pop3.tls);
    http::About::of(parts.config, smtp, pop3, parts.metrics.started())
}

async fn serve(
    stream: Stream,
    ip: Option<IpAddr>,
    admission: Result<Admission, TooMany>,
    router: Router,
    shutdown: Shutdown,
) {
    match admission {
        Ok(admission) => {
            let peer = http::Peer { ip, via: stream.remote(), tls: stream.is_tls() };
            http::serve_connection(stream, peer, router, http::Tenure::new(Some(admission), shutdown)).await;
        }
        Err(too_many) => http::refuse_connection(stream, too_many).await,
    }
}
