//! The server as a whole: builds it from the configuration, starts it, listens to signals, and ends it in good order.

mod bound_listener;
mod pop3;
mod smtp;
mod web;

use std::process::ExitCode;
use std::slice::from_ref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use restante_auth::AuthService;
use restante_journal::Journal;
use restante_mailroom::{Mailroom, Settings};
use restante_metrics::Metrics;
use restante_net::{Readiness, ShutdownTrigger, Tls};
use restante_script::ScriptError;
use restante_settings::{Config, Loaded};
use restante_store::Store;
use tokio::runtime::Runtime;

use crate::extensions::Extensions;
use crate::process::{self, PidFile, SignalRequest, Signals};
use crate::storage;
use crate::storage::{OpenError, OpenedStore};
use bound_listener::BoundListener;

/// How long open sessions may go on after the end was asked for.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(15);
/// How long of that HTTP is served for the sake of mail sessions that are still open.
const MAIL_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(14);
/// How long work away from the network threads may go on after everything else has ended.
const RUNTIME_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// The exit code that says that trying again does not help. The systemd unit knows it.
const EXIT_PERMANENT_ERROR: u8 = 2;

/// Runs the server until it is told to end. What stops it is told in the log or, before there is one, by the error: a
/// sentence for the operator.
pub fn run(loaded: &Loaded) -> Result<ExitCode, String> {
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
    match run_server(config, runtime, &log) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(ServeError { message: problem, is_permanent: hopeless }) => {
            tracing::error!("{problem}");
            Ok(if hopeless { ExitCode::from(EXIT_PERMANENT_ERROR) } else { ExitCode::FAILURE })
        }
    }
}

/// Loads the script, opens the store, serves, and closes the store.
fn run_server(config: &Config, runtime: Runtime, log: &restante_logging::Handle) -> Result<(), ServeError> {
    // The signals come first: whoever reads the first line of the log may send one.
    let mut signals = runtime.block_on(async { Signals::listen() })?;
    // A script with a mistake is like a setting with one: nothing has been touched yet.
    let mut extensions = Extensions::with_script(config);
    if !runtime.block_on(load_script(&extensions, &mut signals))? {
        // Whoever is still busy with loading has no hold on anything.
        runtime.shutdown_background();
        return Ok(());
    }
    let Some(opened) = runtime.block_on(open_store(config, &mut signals))? else {
        runtime.shutdown_background();
        return Ok(());
    };
    storage::log_storage(&config.storage, runtime.block_on(opened.store.usage()));
    extensions.add_webhooks(config)?;
    extensions.add_search(config);
    let journal = storage::open_journal(config, &opened);
    let extensions = Arc::new(extensions);
    let mailroom = build_mailroom(config, opened.store.clone(), journal.clone(), &extensions);
    let ended = runtime.block_on(serve(config, Arc::new(mailroom), extensions, signals, log));
    // With the runtime goes whoever else holds store and journal, so that it is this thread that closes them, in peace.
    runtime.shutdown_timeout(RUNTIME_SHUTDOWN_TIMEOUT);
    drop((opened, journal));
    Ok(ended?)
}

/// Why the server ends: a sentence for the operator, and whether starting it again cannot help.
struct ServeError {
    message: String,
    is_permanent: bool,
}

impl From<String> for ServeError {
    fn from(problem: String) -> Self {
        Self { message: problem, is_permanent: false }
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

/// What every server is built from.
struct Components<'a> {
    config: &'a Config,
    mailroom: Arc<Mailroom>,
    extensions: Arc<Extensions>,
    metrics: Arc<Metrics>,
    readiness: Arc<Readiness>,
    auth: Arc<AuthService>,
}

/// Loads the script, which may take its time. Whether nobody has asked for the end meanwhile.
async fn load_script(extensions: &Extensions, signals: &mut Signals) -> Result<bool, ScriptError> {
    tokio::select! {
        loaded = extensions.load_script() => loaded.map(|()| true),
        () = signals.wait_for_shutdown() => {
            tracing::info!("shutting down");
            extensions.abort_script();
            Ok(false)
        },
    }
}

/// Opens the store, which may take its time. None when somebody has asked for the end meanwhile.
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
    mailroom: Arc<Mailroom>,
    extensions: Arc<Extensions>,
    mut signals: Signals,
    log: &restante_logging::Handle,
) -> Result<(), String> {
    let smtp_tls = load_certificate(&config.smtp.tls, from_ref(&config.smtp.domain), &[])?;
    let pop3_tls = load_certificate(&config.pop3.tls, from_ref(&config.pop3.domain), &[])?;
    let web_tls = load_certificate(&config.web.tls, config.web.hosts.names(), &restante_http::ALPN_PROTOCOLS)?;
    let metrics = Arc::new(Metrics::new(config.storage.retention_period));
    let locks = AuthService::open(config.auth.settings())?;
    let parts = Components { config, mailroom, extensions, metrics, readiness: Arc::default(), auth: locks };

    // Everything is bound before anything is served: a server that starts by halves helps nobody.
    let mut problems = Vec::new();
    let mut mail = smtp::bind(&parts, smtp_tls.as_ref(), &mut problems);
    mail.extend(pop3::bind(&parts, pop3_tls.as_ref(), &mut problems));
    let web = web::bind(&parts, &mail, web_tls.as_ref(), &mut problems);
    if !problems.is_empty() {
        return Err(problems.join("; "));
    }
    let _pidfile = config.pidfile.clone().map(PidFile::write).transpose()?;

    let Components { mailroom, extensions, metrics, readiness, auth: locks, .. } = parts;
    extensions.connect(&mailroom).await;
    mailroom.read_feed_backlog().await;
    let following = {
        let mailroom = mailroom.clone();
        tokio::spawn(async move { mailroom.follow_feed().await })
    };
    let end_of_mail = start_listeners(mail);
    let end_of_web = start_listeners(web);
    let retention = config.storage.retention_period.map(|period| {
        let mailroom = mailroom.clone();
        tokio::spawn(async move { mailroom.run_retention(period).await })
    });
    tokio::spawn(async move { metrics.run_history(&mailroom).await });
    tokio::spawn(extensions.clone().reload_on_request());
    {
        let locks = locks.clone();
        tokio::spawn(async move { locks.log_suppressed_periodically().await });
    }

    while signals.next().await == SignalRequest::Reload {
        reload(log, [&smtp_tls, &pop3_tls, &web_tls].into_iter().flatten());
        extensions.request_reload();
        locks.authenticator.reload().await;
    }
    readiness.start_shutdown();
    tracing::info!("shutting down");
    let begun = Instant::now();
    let (in_good_order, patience) = tokio::select! {
        all_ended = shut_down(end_of_mail, end_of_web) => {
            if !all_ended {
                tracing::warn!("some sessions did not end in time and were cut off");
            }
            (all_ended, SHUTDOWN_TIMEOUT.saturating_sub(begun.elapsed()))
        },
        () = signals.wait_for_shutdown() => {
            tracing::warn!("told twice: sessions are cut off");
            (false, Duration::ZERO)
        },
    };
    locks.log_suppressed();
    // What sessions and retention have done last is something to tell of, so those who are told end after them.
    for task in retention.into_iter().chain([following]) {
        task.abort();
        // It was told to end, and that is all that it can say.
        let _ = task.await;
    }
    tokio::select! {
        () = extensions.shut_down(patience, in_good_order) => {},
        () = signals.wait_for_shutdown() => {
            tracing::warn!("told again: script and webhooks are cut off");
            extensions.abort_script();
        },
    }
    Ok(())
}

/// Serves these listeners, until they are told to end.
fn start_listeners(bound: Vec<BoundListener>) -> ShutdownTrigger {
    let (trigger, shutdown) = ShutdownTrigger::new();
    for bound in bound {
        bound.start(shutdown.clone());
    }
    trigger
}

/// Ends in two steps: as long as there are sessions with mail under way, a supervisor who asks by HTTP is told that the
/// server ends, instead of finding nobody. Whether all sessions have ended in time.
async fn shut_down(mail: ShutdownTrigger, web: ShutdownTrigger) -> bool {
    let begun = Instant::now();
    let mail_ended = mail.trigger_and_wait(MAIL_SHUTDOWN_TIMEOUT).await;
    let web_ended = web.trigger_and_wait(SHUTDOWN_TIMEOUT.saturating_sub(begun.elapsed())).await;
    mail_ended && web_ended
}

/// The certificate of a protocol, or none when its TLS is off. One that is made at start is for these names.
fn load_certificate(
    tls: &restante_settings::Tls,
    names: &[String],
    protocols: &'static [&'static str],
) -> Result<Option<Arc<Tls>>, String> {
    let tls = tls.certificate().map(|certificate| Tls::new(certificate, names, protocols));
    Ok(tls.transpose()?.map(Arc::new))
}

/// Opens the log file and reads the certificates again, after somebody has moved or renewed them.
fn reload<'a>(log: &restante_logging::Handle, certificates: impl Iterator<Item = &'a Arc<Tls>>) {
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

fn build_mailroom(
    config: &Config,
    store: Arc<dyn Store>,
    journal: Option<Arc<dyn Journal>>,
    extensions: &Extensions,
) -> Mailroom {
    let settings = Settings {
        domain: config.smtp.domain.clone(),
        naming: config.mailbox_naming,
        policy: config.smtp.policy.clone(),
        history: config.web.monitor_history,
    };
    let mailroom = Mailroom::new(settings, store, extensions.for_mailroom());
    match journal {
        Some(journal) => mailroom.with_journal(journal),
        None => mailroom,
    }
}
