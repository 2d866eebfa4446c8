//! The server as a whole: builds it from the configuration, starts it, listens to signals, and ends it in good order.

mod pop3;

use std::net::IpAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::Router;
use restante_mailroom::{Mailroom, Settings};
use restante_proto::smtp::{self as protocol, Dialect};
use restante_store::Store;
use restante_store::disk::OpenError;
use tokio::runtime::Runtime;

use crate::config::{self, Config, ListenAddr, Loaded};
use crate::metrics::{Metrics, Protocol};
use crate::net::{
    self, Admission, Budget, Gate, Limits, Listener, Readiness, Shutdown, ShutdownTrigger, Stream, Tls, TooMany,
};
use crate::process::{self, PidFile, Signals, Told};
use crate::smtp::{Login, Server};
use crate::{http, log, storage};

/// How long open sessions may go on after the end was asked for.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long work away from the network threads may go on after everything else has ended.
const LAST_MOMENT: Duration = Duration::from_secs(2);
/// The exit code that says that trying again does not help. The systemd unit knows it.
const HOPELESS: u8 = 2;

/// Runs the server until it is told to end. What stops it is told in the log or, before there is one, by the error: a
/// sentence for the operator.
pub fn run(loaded: &Loaded) -> Result<ExitCode, String> {
    process::teach_the_allocator();
    let config = &loaded.config;
    let log = log::start(&config.log).map_err(|error| format!("cannot open the log: {error}"))?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    process::raise_the_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(process::network_threads())
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?;
    match live(config, runtime, &log) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Failure { problem, hopeless }) => {
            tracing::error!("{problem}");
            Ok(if hopeless { ExitCode::from(HOPELESS) } else { ExitCode::FAILURE })
        }
    }
}

/// Opens the store, serves, and closes the store.
fn live(config: &Config, runtime: Runtime, log: &log::Handle) -> Result<(), Failure> {
    // The signals come first: whoever reads the first line of the log may send one.
    let signals = runtime.block_on(async { Signals::listen() })?;
    let store = storage::open(&config.storage)?;
    storage::tell(&config.storage, runtime.block_on(store.usage()));
    let ended = runtime.block_on(serve(config, store.clone(), signals, log));
    // With the runtime goes whoever else holds the store, so that it is this thread that closes it, in peace.
    runtime.shutdown_timeout(LAST_MOMENT);
    drop(store);
    Ok(ended?)
}

/// Why the server ends: a sentence for the operator, and whether starting it again cannot help.
struct Failure {
    problem: String,
    hopeless: bool,
}

impl From<String> for Failure {
    fn from(problem: String) -> Self {
        Self { problem, hopeless: false }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self { problem: error.to_string(), hopeless: error.is_permanent() }
    }
}

async fn serve(config: &Config, store: Arc<dyn Store>, mut signals: Signals, log: &log::Handle) -> Result<(), String> {
    let (trigger, shutdown) = ShutdownTrigger::new();
    let smtp_tls = certificate(&config.smtp.tls, &config.smtp.domain)?;
    let pop3_tls = certificate(&config.pop3.tls, &config.pop3.domain)?;
    let mailroom = Arc::new(mailroom(config, store));
    let metrics = Arc::new(Metrics::new(config.storage.retention_period));

    // Everything is bound before anything is served: a server that starts by halves helps nobody.
    let mut problems = Vec::new();
    let smtp = smtp_listeners(config, &mailroom, &metrics, smtp_tls.as_ref(), &mut problems);
    let pop3 = pop3::listeners(config, &mailroom, &metrics, pop3_tls.as_ref(), &mut problems);
    let web = bind_all("HTTP", &config.web.addr, &mut problems);
    if !problems.is_empty() {
        return Err(problems.join("; "));
    }
    let _pidfile = config.pidfile.clone().map(PidFile::write).transpose()?;

    let readiness = Arc::new(Readiness::default());
    let gate = Arc::new(Gate {
        limits: Limits::new(config.smtp.max_connections, config.smtp.max_connections_per_ip),
        proxies: config.smtp.proxies.clone(),
        exempt: Vec::new(),
        readiness: readiness.clone(),
    });
    for MailListener { name, listener, server } in smtp {
        tracing::info!("{name} listening on {listener}");
        let tally = metrics.connections(server.protocol()).clone();
        let serve = move |stream, ip, admission, shutdown| server.clone().serve(stream, ip, admission, shutdown);
        tokio::spawn(net::accept(listener, gate.clone(), tally, shutdown.clone(), serve));
    }
    let gate = Arc::new(Gate {
        limits: Limits::new(config.pop3.max_connections, config.pop3.max_connections_per_ip),
        proxies: config.pop3.proxies.clone(),
        exempt: Vec::new(),
        readiness: readiness.clone(),
    });
    for pop3::MailListener { name, listener, server } in pop3 {
        tracing::info!("{name} listening on {listener}");
        let tally = metrics.connections(Protocol::Pop3).clone();
        let serve = move |stream, ip, admission, shutdown| server.clone().serve(stream, ip, admission, shutdown);
        tokio::spawn(net::accept(listener, gate.clone(), tally, shutdown.clone(), serve));
    }
    let gate = Arc::new(Gate {
        limits: Limits::new(config.web.max_connections, config.web.max_connections_per_ip),
        proxies: config.web.proxies.clone(),
        exempt: config.web.trusted_proxies.clone(),
        readiness: readiness.clone(),
    });
    let router = http::router(mailroom.clone(), http_settings(config, &gate, &metrics));
    for listener in web {
        tracing::info!("HTTP listening on {listener}");
        let router = router.clone();
        let tally = metrics.connections(Protocol::Http).clone();
        let serve = move |stream, ip, admission, shutdown| serve_http(stream, ip, admission, router.clone(), shutdown);
        tokio::spawn(net::accept(listener, gate.clone(), tally, shutdown.clone(), serve));
    }
    if let Some(period) = config.storage.retention_period {
        let mailroom = mailroom.clone();
        tokio::spawn(async move { mailroom.keep_retention(period).await });
    }
    tokio::spawn(async move { metrics.keep_history(&mailroom).await });
    drop(shutdown);

    while signals.next().await == Told::Reload {
        reload(log, [&smtp_tls, &pop3_tls].into_iter().flatten());
    }
    tracing::info!("shutting down");
    readiness.end();
    tokio::select! {
        all_ended = trigger.run(PATIENCE) => if !all_ended {
            tracing::warn!("some sessions did not end in time and were cut off");
        },
        () = told_to_end(&mut signals) => tracing::warn!("told twice: sessions are cut off"),
    }
    Ok(())
}

async fn told_to_end(signals: &mut Signals) {
    while signals.next().await != Told::End {}
}

/// The certificate of a protocol, or none when its TLS is off.
fn certificate(tls: &config::Tls, domain: &str) -> Result<Option<Arc<Tls>>, String> {
    let tls = tls.certificate().map(|certificate| Tls::new(certificate, domain));
    Ok(tls.transpose()?.map(Arc::new))
}

/// Opens the log file and reads the certificates again, after somebody has moved or renewed them.
fn reload<'a>(log: &log::Handle, certificates: impl Iterator<Item = &'a Arc<Tls>>) {
    match log.reopen() {
        Ok(()) => tracing::info!("reloaded log file"),
        Err(error) => tracing::error!(%error, "cannot open the log file again; going on with the old one"),
    }
    for certificate in certificates {
        match certificate.reload() {
            Ok(()) => tracing::info!("reloaded certificate"),
            Err(problem) => tracing::error!(problem, "the certificate stays as it was"),
        }
    }
}

fn mailroom(config: &Config, store: Arc<dyn Store>) -> Mailroom {
    let settings = Settings {
        domain: config.smtp.domain.clone(),
        naming: config.mailbox_naming,
        policy: config.smtp.policy.clone(),
        history: config.web.monitor_history,
    };
    Mailroom::new(settings, store, None)
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
    metrics: &Arc<Metrics>,
    tls: Option<&Arc<Tls>>,
    problems: &mut Vec<String>,
) -> Vec<MailListener> {
    let smtp = &config.smtp;
    let login = Arc::new(Login::new(smtp.credentials.clone()));
    let budget = Budget::new(smtp.max_inflight_bytes);
    let server = |dialect, implicit_tls: bool| {
        let settings = protocol::Settings {
            domain: smtp.domain.clone(),
            dialect,
            max_message_bytes: smtp.max_message_bytes.min(largest_message(config)),
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
            metrics: metrics.clone(),
            timeout: smtp.timeout,
            netdebug: config.log.netdebug,
            sessions: AtomicU64::new(0),
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
        for listener in bind_all(name, addrs, problems) {
            listeners.push(MailListener { name, listener, server: server.clone() });
        }
    }
    listeners
}

/// A message that the whole store has no room for must not be acknowledged. A little is left for the lines that are added
/// for each mailbox.
fn largest_message(config: &Config) -> usize {
    match config.storage.max_bytes {
        0 => usize::MAX,
        room => usize::try_from(room - room / 64).unwrap_or(usize::MAX),
    }
}

/// Listens on all of the addresses, and tells of every one where that is not possible.
fn bind_all(name: &str, addrs: &[ListenAddr], problems: &mut Vec<String>) -> Vec<Listener> {
    let mut listeners = Vec::new();
    for addr in addrs {
        match net::bind(addr) {
            Ok(bound) => listeners.extend(bound),
            Err(error) => problems.push(format!("{name} cannot listen on {addr}: {error}")),
        }
    }
    listeners
}

fn http_settings(config: &Config, gate: &Gate, metrics: &Arc<Metrics>) -> http::Settings {
    http::Settings {
        base_path: config.web.base_path.clone(),
        public_url: config.web.public_url.clone(),
        hosts: config.web.hosts.clone(),
        trusted_proxies: config.web.trusted_proxies.clone(),
        cache_bytes: config.web.cache_bytes,
        clients: gate.limits.clients().clone(),
        readiness: gate.readiness.clone(),
        metrics: metrics.clone(),
        status: http::Status::of(config),
    }
}

async fn serve_http(
    stream: Stream,
    ip: Option<IpAddr>,
    admission: Result<Admission, TooMany>,
    router: Router,
    shutdown: Shutdown,
) {
    match admission {
        Ok(admission) => {
            let peer = http::Peer { ip, tls: stream.is_tls() };
            http::serve_connection(stream, peer, router, http::Tenure::new(Some(admission), shutdown)).await;
        }
        Err(too_many) => http::refuse_connection(stream, too_many).await,
    }
}
