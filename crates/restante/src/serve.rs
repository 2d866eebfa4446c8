//! The server as a whole: builds it from the configuration, starts it, listens to signals, and ends it in good order.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use restante_mailroom::{Mailroom, Settings};
use restante_proto::smtp::{self as protocol, Dialect};
use restante_store::memory::{Limits as StoreLimits, MemoryStore};

use crate::config::{Config, ListenAddr, Loaded};
use crate::net::{self, Admission, Limits, Listener, Shutdown, ShutdownTrigger, Stream, Tls, TooMany};
use crate::process::{self, PidFile, Signals, Told};
use crate::smtp::{Budget, Login, Server};
use crate::{http, log};

/// How long open sessions may go on after the end was asked for.
const PATIENCE: Duration = Duration::from_secs(15);

/// Runs the server until it is told to end. The error is a sentence for the operator.
pub fn run(loaded: &Loaded) -> Result<(), String> {
    process::teach_the_allocator();
    let config = &loaded.config;
    let log = log::start(&config.log).map_err(|error| format!("cannot open the log: {error}"))?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    process::raise_the_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?;
    runtime.block_on(serve(config, &log))
}

async fn serve(config: &Config, log: &log::Handle) -> Result<(), String> {
    let mut signals = Signals::listen()?;
    let (trigger, shutdown) = ShutdownTrigger::new();
    let tls = config.smtp.tls.certificate().map(|certificate| Tls::new(certificate, &config.smtp.domain));
    let tls = tls.transpose()?.map(Arc::new);
    let mailroom = Arc::new(mailroom(config));

    // Everything is bound before anything is served: a server that starts by halves helps nobody.
    let smtp = smtp_listeners(config, &mailroom, tls.as_ref())?;
    let web = bind_all("HTTP", &config.web.addr)?;
    let _pidfile = config.pidfile.clone().map(PidFile::write).transpose()?;

    let connections = Limits::new(config.smtp.max_connections, config.smtp.max_connections_per_ip);
    for MailListener { name, listener, server } in smtp {
        tracing::info!("{name} listening on {listener}");
        let serve = move |stream, ip, admission, shutdown| server.clone().serve(stream, ip, admission, shutdown);
        tokio::spawn(net::accept(listener, connections.clone(), shutdown.clone(), serve));
    }
    let connections = Limits::new(config.web.max_connections, None);
    let router = http::router(mailroom.clone(), http_settings(config));
    for listener in web {
        tracing::info!("HTTP listening on {listener}");
        let router = router.clone();
        let serve = move |stream, ip, admission, shutdown| serve_http(stream, ip, admission, router.clone(), shutdown);
        tokio::spawn(net::accept(listener, connections.clone(), shutdown.clone(), serve));
    }
    if let Some(period) = config.storage.retention_period {
        tokio::spawn(async move { mailroom.keep_retention(period).await });
    }
    drop(shutdown);

    while signals.next().await == Told::Reload {
        reload(log, tls.as_deref());
    }
    tracing::info!("shutting down");
    if !trigger.run(PATIENCE).await {
        tracing::warn!("some sessions did not end in time and were cut off");
    }
    Ok(())
}

/// Opens the log file and reads the certificate again, after somebody has moved or renewed them.
fn reload(log: &log::Handle, tls: Option<&Tls>) {
    if let Err(error) = log.reopen() {
        tracing::error!(%error, "cannot open the log file again; going on with the old one");
    }
    match tls.map(Tls::reload) {
        Some(Err(problem)) => tracing::error!(problem, "the certificate stays as it was"),
        Some(Ok(())) => tracing::info!("reloaded log file and certificate"),
        None => tracing::info!("reloaded log file"),
    }
}

fn mailroom(config: &Config) -> Mailroom {
    let storage = &config.storage;
    let store = MemoryStore::new(StoreLimits {
        messages_per_mailbox: storage.mailbox_msg_cap.unwrap_or(0),
        bytes: storage.max_bytes,
    });
    let settings = Settings {
        domain: config.smtp.domain.clone(),
        naming: config.mailbox_naming,
        policy: config.smtp.policy.clone(),
        history: config.web.monitor_history,
    };
    Mailroom::new(settings, Arc::new(store), None)
}

/// A bound listener, and who serves its connections.
struct MailListener {
    name: &'static str,
    listener: Listener,
    server: Arc<Server>,
}

/// Binds every mail listener: plain ones with STARTTLS, those with TLS from the first byte, and LMTP.
fn smtp_listeners(
    config: &Config,
    mailroom: &Arc<Mailroom>,
    tls: Option<&Arc<Tls>>,
) -> Result<Vec<MailListener>, String> {
    let smtp = &config.smtp;
    let login = Arc::new(Login::new(smtp.credentials.clone()));
    let budget = Budget::new(smtp.max_inflight_bytes);
    let server = |dialect, implicit_tls: bool| {
        let settings = protocol::Settings {
            domain: smtp.domain.clone(),
            dialect,
            max_message_bytes: smtp.max_message_bytes,
            max_recipients: smtp.max_recipients,
            max_bad_commands: smtp.max_bad_commands as usize,
            starttls: tls.is_some() && !implicit_tls,
            require_auth: smtp.require_auth,
        };
        Arc::new(Server {
            settings: Arc::new(settings),
            mailroom: mailroom.clone(),
            tls: tls.cloned(),
            implicit_tls,
            login: login.clone(),
            budget: budget.clone(),
            timeout: smtp.timeout,
            netdebug: config.log.netdebug,
        })
    };
    let kinds = [
        ("SMTP", &smtp.addr, Dialect::Smtp, smtp.tls.force),
        ("SMTP with TLS", &smtp.tls_addr, Dialect::Smtp, true),
        ("LMTP", &config.lmtp.addr, Dialect::Lmtp, false),
    ];
    let mut listeners = Vec::new();
    for (name, addrs, dialect, implicit_tls) in kinds {
        let server = server(dialect, implicit_tls);
        for listener in bind_all(name, addrs)? {
            listeners.push(MailListener { name, listener, server: server.clone() });
        }
    }
    Ok(listeners)
}

fn bind_all(name: &str, addrs: &[ListenAddr]) -> Result<Vec<Listener>, String> {
    let mut listeners = Vec::new();
    for addr in addrs {
        let bound = net::bind(addr).map_err(|error| format!("{name} cannot listen on {addr}: {error}"))?;
        listeners.extend(bound);
    }
    Ok(listeners)
}

fn http_settings(config: &Config) -> http::Settings {
    http::Settings {
        base_path: config.web.base_path.clone(),
        public_url: config.web.public_url.clone(),
        hosts: config.web.hosts.clone(),
        trusted_proxies: config.web.trusted_proxies.clone(),
        cache_bytes: config.web.cache_bytes,
    }
}

async fn serve_http(
    stream: Stream,
    ip: Option<IpAddr>,
    admission: Result<Admission, TooMany>,
    router: Router,
    mut shutdown: Shutdown,
) {
    match admission {
        Ok(_admission) => {
            let peer = http::Peer { ip, tls: stream.is_tls() };
            http::serve_connection(stream, peer, router, async move { shutdown.begun().await }).await;
        }
        Err(_) => http::refuse_connection(stream).await,
    }
}
