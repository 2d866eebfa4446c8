//! Builds the POP3 servers from the configuration, and binds their listeners.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use restante_mail_server::ListenerContext;
use restante_mail_server::pop3::{Login, Server};
use restante_mailroom::store_error_log::StoreErrorLog;
use restante_metrics::Protocol;
use restante_net::{AdmissionControl, Budget, ConnectionLimits, Tls};
use restante_proto::pop3::Settings;
use restante_settings::Config;

use super::{BoundListener, Components};

/// The memory budget for all messages that are being sent, in bytes. A single message is always allowed, however large
/// it is.
const MAX_SENDING_BYTES: usize = 64 * 1024 * 1024;
/// The memory budget for the lists of messages of all open mailboxes, in bytes: 16 million messages.
const MAX_MAILDROP_BYTES: usize = 256 * 1024 * 1024;

/// The name of the listeners at `pop3.addr`.
pub(super) const PLAIN: &str = "POP3";
/// The name of the listeners with TLS from the first byte.
pub(super) const WITH_TLS: &str = "POP3 with TLS";

/// Binds all listeners: plain ones with STLS, and those with TLS from the first byte.
pub(super) fn bind(
    components: &Components<'_>,
    tls: Option<&Arc<Tls>>,
    problems: &mut Vec<String>,
) -> Vec<BoundListener> {
    let Config { pop3, log, .. } = components.config;
    let admission = Arc::new(AdmissionControl {
        limits: ConnectionLimits::new(pop3.max_connections, pop3.max_connections_per_ip),
        proxies: pop3.proxies.clone(),
        exempt: Vec::new(),
        readiness: components.readiness.clone(),
    });
    let login = Arc::new(Login::new(pop3.mailbox_passwords.clone(), components.auth.clone()));
    let sessions = Arc::new(AtomicU64::new(0));
    let store_errors = Arc::new(StoreErrorLog::default());
    let (maildrops, messages) = (Budget::new(MAX_MAILDROP_BYTES), Budget::new(MAX_SENDING_BYTES));
    let server = |implicit_tls: bool| {
        let settings = Settings {
            domain: pop3.domain.clone(),
            stls: tls.is_some() && !implicit_tls,
            max_bad_commands: pop3.max_bad_commands as usize,
        };
        let context = ListenerContext {
            protocol: Protocol::Pop3,
            mailroom: components.mailroom.clone(),
            tls: tls.cloned(),
            implicit_tls,
            metrics: components.metrics.clone(),
            idle_timeout: pop3.timeout,
            netdebug: log.netdebug,
            session_count: sessions.clone(),
            store_errors: store_errors.clone(),
        };
        Arc::new(Server {
            context,
            settings: Arc::new(settings),
            login: login.clone(),
            maildrop_budget: maildrops.clone(),
            message_budget: messages.clone(),
        })
    };
    let kinds = [
        (components.endpoint(PLAIN, "pop3.addr", &pop3.addr), pop3.tls.force),
        (components.endpoint(WITH_TLS, "pop3.tlsaddr", &pop3.tls_addr), true),
    ];
    let mut listeners = Vec::new();
    for (endpoint, implicit_tls) in kinds {
        let server = server(implicit_tls);
        let serve = move |stream, ip, admission, shutdown| server.clone().serve(stream, ip, admission, shutdown);
        listeners.extend(BoundListener::bind_all(
            &endpoint,
            &admission,
            components.metrics.connections(Protocol::Pop3),
            serve,
            problems,
        ));
    }
    listeners
}
