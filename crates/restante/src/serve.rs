//! The server: builds it from the configuration, starts it, handles signals, and shuts it down.

mod banner;
mod bound_listener;
mod imap;
mod metrics;
mod open_page;
mod pop3;
mod smtp;
mod web;

use std::convert::Infallible;
use std::process::ExitCode;
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use restante_auth::AuthService;
use restante_journal::Journal;
use restante_mail_server::ListenerContext;
use restante_mailroom::chaos::Chaos;
use restante_mailroom::store_error_log::StoreErrorLog;
use restante_mailroom::{Mailroom, Settings};
use restante_metrics::{Metrics, Protocol, Registry};
use restante_net::{AdmissionControl, ConnectionLimits, ListenAddr, Network, Readiness, ShutdownTrigger, Tls};
use restante_platform::SignalRequest;
use restante_script::ScriptError;
use restante_settings::{Config, Loaded};
use restante_store::Store;
use tokio::runtime::Runtime;

use crate::mailpit;
use crate::process::{self, PidFile, SLOW_SHUTDOWN_INTERVAL, Signals};
use crate::services::ManagedServices;
use crate::storage;
use crate::storage::{OpenError, OpenedStore};
use bound_listener::{BoundListener, Endpoint};

/// How long open sessions may continue after a shutdown was requested.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(15);
/// The part of that time in which HTTP is still served while mail sessions are open.
const MAIL_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(14);
/// How long blocking tasks may continue after everything else has ended.
const RUNTIME_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// The exit code for errors that a restart cannot fix. The systemd unit does not restart the server after it.
const EXIT_PERMANENT_ERROR: u8 = 2;

/// A program that the server replaces. It determines log lines; everything else is in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmulatedProgram {
    /// Mailpit.
    Mailpit,
}

/// How the server is started, apart from its configuration.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServeOptions {
    /// The program that the server replaces.
    pub emulated: Option<EmulatedProgram>,
    /// True to open the web interface in a browser.
    pub open_page: bool,
}

/// Runs the server until it is stopped. Errors are logged, or returned as a sentence for the operator if there is no
/// log yet.
pub fn run(loaded: &Loaded, options: ServeOptions) -> Result<ExitCode, String> {
    process::tune_allocator();
    let config = &loaded.config;
    let log = restante_logging::start(&config.log).map_err(|error| format!("cannot open the log: {error}"))?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    process::raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(process::network_threads())
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?;
    match run_server(config, options, runtime, &log) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(ServeError { message, is_permanent }) => {
            tracing::error!("{message}");
            Ok(if is_permanent { ExitCode::from(EXIT_PERMANENT_ERROR) } else { ExitCode::FAILURE })
        }
    }
}

/// Loads the script, opens the store, serves, and closes the store.
fn run_server(
    config: &Config,
    options: ServeOptions,
    runtime: Runtime,
    log: &restante_logging::Handle,
) -> Result<(), ServeError> {
    // The signal handlers come first: a signal may be sent as soon as the first log line appears.
    let mut signals = runtime.block_on(async { Signals::listen() })?;
    if config.stop_with_stdin {
        signals.stop_with_stdin()?;
    }
    // An invalid script is treated like an invalid setting: nothing has been changed yet.
    let mut services = ManagedServices::with_script(config);
    if !runtime.block_on(load_script(&services, &mut signals))? {
        // A thread that is still loading the script holds no resources.
        runtime.shutdown_background();
        return Ok(());
    }
    let Some(opened) = runtime.block_on(open_store(config, &mut signals))? else {
        runtime.shutdown_background();
        return Ok(());
    };
    storage::log_storage(&config.storage, runtime.block_on(opened.store.usage()));
    runtime.block_on(services.add_webhooks(config, &opened))?;
    runtime.block_on(services.add_relay(config, &opened))?;
    services.add_search(config);
    let journal = storage::open_journal(config, &opened);
    let services = Arc::new(services);
    let auth = AuthService::open(config.auth.clone())?;
    let mailroom = build_mailroom(config, opened.store.clone(), journal.clone(), &services);
    let mailroom = Arc::new(mailroom.with_runs(auth.authenticator.runs().clone()));
    let result = runtime.block_on(serve(config, options, &opened, (mailroom, auth), services, signals, log));
    // The runtime drops all other references to store and journal, so that this thread closes them.
    runtime.shutdown_timeout(RUNTIME_SHUTDOWN_TIMEOUT);
    drop((opened, journal));
    Ok(result?)
}

/// Why the server stops: a sentence for the operator, and whether a restart cannot help.
struct ServeError {
    message: String,
    is_permanent: bool,
}

impl From<String> for ServeError {
    fn from(message: String) -> Self {
        Self { message, is_permanent: false }
    }
}

impl From<ScriptError> for ServeError {
    fn from(error: ScriptError) -> Self {
        Self { message: error.to_string(), is_permanent: error.is_permanent() }
    }
}

impl From<OpenError> for ServeError {
    fn from(error: OpenError) -> Self {
        Self { message: error.to_string(), is_permanent: error.is_permanent() }
    }
}

/// The components that all protocols are built from.
struct Components<'a> {
    config: &'a Config,
    emulated: Option<EmulatedProgram>,
    mailroom: Arc<Mailroom>,
    services: Arc<ManagedServices>,
    metrics: Arc<Metrics>,
    registry: Arc<Registry>,
    readiness: Arc<Readiness>,
    auth: Arc<AuthService>,
}

impl Components<'_> {
    /// Returns the addresses of the setting with this key.
    fn endpoint<'a>(&self, name: &'static str, key: &'static str, addrs: &'a [ListenAddr]) -> Endpoint<'a> {
        let option = match self.emulated {
            Some(EmulatedProgram::Mailpit) => mailpit::option_for(key),
            None => None,
        };
        let own = || {
            let name = key.replace('.', "-");
            format!("--{name} or RESTANTE_{}", name.replace('-', "_").to_ascii_uppercase())
        };
        Endpoint { name, addrs, option: option.unwrap_or_else(own) }
    }

    /// Returns the limits on the connections of a protocol.
    fn admission(
        &self,
        limits: Arc<ConnectionLimits>,
        proxies: &[Network],
        exempt: &[Network],
    ) -> Arc<AdmissionControl> {
        let readiness = self.readiness.clone();
        Arc::new(AdmissionControl { limits, proxies: proxies.to_vec(), exempt: exempt.to_vec(), readiness })
    }

    /// Returns a function that creates the context of a listener. The listeners of a mail protocol share their session numbers
    /// and their log of store errors.
    fn listener_contexts(
        &self,
        tls: Option<&Arc<Tls>>,
        idle_timeout: Duration,
    ) -> impl Fn(Protocol, bool) -> ListenerContext {
        let (session_count, store_errors) = (Arc::<AtomicU64>::default(), Arc::<StoreErrorLog>::default());
        move |protocol, implicit_tls| ListenerContext {
            protocol,
            mailroom: self.mailroom.clone(),
            tls: tls.cloned(),
            implicit_tls,
            metrics: self.metrics.clone(),
            idle_timeout,
            netdebug: self.config.log.netdebug,
            session_count: session_count.clone(),
            store_errors: store_errors.clone(),
        }
    }
}

/// Loads the script, which may take a while. Returns false if a shutdown was requested in the meantime.
async fn load_script(services: &ManagedServices, signals: &mut Signals) -> Result<bool, ScriptError> {
    tokio::select! {
        loaded = services.load_script() => loaded.map(|()| true),
        () = signals.wait_for_shutdown() => {
            tracing::info!("shutting down");
            services.abort_script();
            Ok(false)
        },
    }
}

/// Opens the store, which may take a while. Returns `None` if a shutdown was requested in the meantime.
async fn open_store(config: &Config, signals: &mut Signals) -> Result<Option<OpenedStore>, OpenError> {
    tokio::select! {
        opened = storage::open_with_retry(&config.storage) => opened.map(Some),
        () = signals.wait_for_shutdown() => {
            tracing::info!("shutting down");
            Ok(None)
        },
    }
}

async fn serve(
    config: &Config,
    options: ServeOptions,
    opened: &OpenedStore,
    (mailroom, auth): (Arc<Mailroom>, Arc<AuthService>),
    services: Arc<ManagedServices>,
    mut signals: Signals,
    log: &restante_logging::Handle,
) -> Result<(), String> {
    let smtp_tls = load_certificate(&config.smtp.tls, from_ref(&config.smtp.domain), &[])?;
    let pop3_tls = load_certificate(&config.pop3.tls, from_ref(&config.pop3.domain), &[])?;
    let imap_tls = load_certificate(&config.imap.tls, from_ref(&config.imap.domain), &[])?;
    let web_tls = load_certificate(&config.web.tls, config.web.hosts.names(), &restante_http::ALPN_PROTOCOLS)?;
    let mut registry = Registry::default();
    let metrics = Arc::new(Metrics::new(config.storage.retention_period, &mut registry));
    metrics::register(services.services.clone(), &metrics, &mut registry);
    let emulated = options.emulated;
    let (registry, readiness) = (Arc::new(registry), Arc::default());
    let components = Components { config, emulated, mailroom, services, metrics, registry, readiness, auth };

    // All listeners are bound before any is served, so that the server never starts partially.
    let mut problems = Vec::new();
    let mut mail = smtp::bind(&components, smtp_tls.as_ref(), &mut problems);
    mail.extend(pop3::bind(&components, pop3_tls.as_ref(), &mut problems));
    mail.extend(imap::bind(&components, imap_tls.as_ref(), &mut problems));
    let web = web::bind(&components, &mail, web_tls.as_ref(), &mut problems);
    if !problems.is_empty() {
        return Err(problems.join(" "));
    }
    let page = web::page_url(&components, &web);
    let _pidfile = config.pidfile.clone().map(PidFile::write).transpose()?;

    let Components { mailroom, services, metrics, readiness, auth, .. } = components;
    services.connect(config, opened, &mailroom).await?;
    mailroom.read_feed_backlog().await;
    let feed_task = {
        let mailroom = mailroom.clone();
        tokio::spawn(async move { mailroom.follow_feed().await })
    };
    let web_port = web::port(&web);
    let banner = emulated.is_none().then(|| banner::render(config, &mail, page.as_deref()));
    let mail_shutdown = start_listeners(mail);
    let web_shutdown = start_listeners(web);
    match banner {
        Some(banner) => banner::show(config, &banner),
        None => mailpit::log_ready_lines(config, web_port),
    }
    if options.open_page {
        open_page::open(page.as_deref());
    }
    let retention = {
        let (mailroom, period) = (mailroom.clone(), config.storage.retention_period);
        tokio::spawn(async move { mailroom.run_retention(period).await })
    };
    let message_limit = config.storage.max_messages.map(|max_messages| {
        let mailroom = mailroom.clone();
        tokio::spawn(async move { mailroom.run_message_limit(max_messages).await })
    });
    let run_expiry = {
        let mailroom = mailroom.clone();
        tokio::spawn(async move { mailroom.delete_expired_runs().await })
    };
    {
        let metrics = metrics.clone();
        tokio::spawn(async move { metrics.run_history(&mailroom).await });
    }
    tokio::spawn(services.clone().reload_on_request());
    {
        let auth = auth.clone();
        tokio::spawn(async move { auth.log_suppressed_periodically().await });
    }

    while signals.next().await == SignalRequest::Reload {
        reload(log, [&smtp_tls, &pop3_tls, &imap_tls, &web_tls].into_iter().flatten());
        services.request_reload();
        auth.authenticator.reload().await;
    }
    readiness.start_shutdown();
    tracing::info!("shutting down");
    let started = Instant::now();
    let (is_clean, time_left) = tokio::select! {
        all_ended = shut_down(mail_shutdown, web_shutdown) => {
            if !all_ended {
                tracing::warn!("some sessions did not end in time and were closed");
            }
            (all_ended, SHUTDOWN_TIMEOUT.saturating_sub(started.elapsed()))
        },
        () = signals.wait_for_shutdown() => {
            tracing::warn!("second signal received: closing open sessions");
            (false, Duration::ZERO)
        },
        never = log_open_connections(&metrics, started) => match never {},
    };
    auth.log_suppressed();
    // The last changes of sessions and retention still cause events, so the services are shut down after them.
    for task in message_limit.into_iter().chain([retention, run_expiry, feed_task]) {
        task.abort();
        // The task was aborted, so there is no result.
        let _ = task.await;
    }
    tokio::select! {
        () = services.shut_down(time_left, is_clean) => {},
        () = signals.wait_for_shutdown() => {
            tracing::warn!("another signal received: aborting script and webhooks");
            services.abort_script();
        },
    }
    Ok(())
}

/// Serves these listeners until the shutdown is triggered.
fn start_listeners(listeners: Vec<BoundListener>) -> ShutdownTrigger {
    let (trigger, shutdown) = ShutdownTrigger::new();
    for listener in listeners {
        listener.start(shutdown.clone());
    }
    trigger
}

/// Shuts down in two steps: while mail sessions are open, HTTP requests still get a response, so that a supervisor sees
/// that the server is shutting down. Returns true if all sessions ended in time.
async fn shut_down(mail: ShutdownTrigger, web: ShutdownTrigger) -> bool {
    let started = Instant::now();
    let mail_ended = mail.trigger_and_wait(MAIL_SHUTDOWN_TIMEOUT).await;
    let web_ended = web.trigger_and_wait(SHUTDOWN_TIMEOUT.saturating_sub(started.elapsed())).await;
    mail_ended && web_ended
}

/// Logs which connections a slow shutdown waits for. Never returns.
async fn log_open_connections(metrics: &Metrics, started: Instant) -> Infallible {
    tokio::time::sleep(SLOW_SHUTDOWN_INTERVAL).await;
    let open = |protocol: Protocol| match (metrics.connections(protocol).open_now(), protocol.log_name()) {
        (0, _) => None,
        (1, name) => Some(format!("1 {name} connection")),
        (count, name) => Some(format!("{count} {name} connections")),
    };
    let mail = Protocol::ALL.into_iter().filter(|protocol| *protocol != Protocol::Http);
    let mut connections: Vec<String> = mail.filter_map(open).collect();
    // HTTP is served until the mail sessions have ended.
    if connections.is_empty() {
        connections.extend(open(Protocol::Http));
    }
    if !connections.is_empty() {
        let (connections, left) =
            (connections.join(", "), SHUTDOWN_TIMEOUT.saturating_sub(started.elapsed()).as_secs());
        tracing::info!(
            "still shutting down: waiting for {connections}, at most {left} s; a second signal closes them at once"
        );
    }
    std::future::pending().await
}

/// Loads the certificate of a protocol; `None` if TLS is disabled. A self-signed certificate is issued for these names.
fn load_certificate(
    tls: &restante_settings::Tls,
    names: &[String],
    protocols: &'static [&'static str],
) -> Result<Option<Arc<Tls>>, String> {
    let tls = tls.certificate().map(|certificate| Tls::new(certificate, names, protocols));
    Ok(tls.transpose()?.map(Arc::new))
}

/// Reopens the log file and reloads the certificates, after they were rotated or renewed.
fn reload<'a>(log: &restante_logging::Handle, certificates: impl Iterator<Item = &'a Arc<Tls>>) {
    match log.reopen() {
        Ok(()) => tracing::info!("reloaded log file"),
        Err(error) => tracing::error!(%error, "cannot reopen the log file, still using the old one"),
    }
    for certificate in certificates {
        match certificate.reload() {
            Ok(()) => tracing::info!("reloaded certificate"),
            Err(error) => tracing::error!(error, "cannot reload the certificate, still using the old one"),
        }
    }
}

fn build_mailroom(
    config: &Config,
    store: Arc<dyn Store>,
    journal: Option<Arc<Journal>>,
    services: &ManagedServices,
) -> Mailroom {
    let settings = Settings {
        domain: config.smtp.domain.clone(),
        naming: config.mailbox_naming,
        policy: config.smtp.policy.clone(),
        projects: config.projects.clone(),
        limits: config.storage.limits(),
        tagging: config.tagging.clone(),
        history: config.web.monitor_history,
    };
    let mut mailroom = Mailroom::new(settings, store, services.for_mailroom());
    if let Some(journal) = journal {
        mailroom = mailroom.with_journal(journal);
    }
    if config.chaos.is_enabled() {
        mailroom = mailroom.with_chaos(Chaos::new(config.chaos.triggers.unwrap_or_default()));
    }
    mailroom
}
