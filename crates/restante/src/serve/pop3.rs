//! Builds the POP3 servers from the configuration, and binds their listeners.

use std::sync::Arc;

use restante_mail_server::MailboxLogin;
use restante_mail_server::pop3::Server;
use restante_metrics::Protocol;
use restante_net::{Budget, ConnectionLimits, Tls};
use restante_proto::pop3::Settings;

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
    let pop3 = &components.config.pop3;
    let limits = ConnectionLimits::new(pop3.max_connections, pop3.max_connections_per_ip);
    let admission = components.admission(limits, &pop3.proxies, &[]);
    let context = components.listener_contexts(tls, pop3.timeout);
    let login =
        Arc::new(MailboxLogin::new("pop3.credentials", pop3.mailbox_passwords.clone(), components.auth.clone()));
    let (maildrops, messages) = (Budget::new(MAX_MAILDROP_BYTES), Budget::new(MAX_SENDING_BYTES));
    let server = |implicit_tls: bool| {
        let settings = Settings {
            domain: pop3.domain.clone(),
            stls: tls.is_some() && !implicit_tls,
            max_bad_commands: pop3.max_bad_commands as usize,
        };
        Arc::new(Server {
            context: context(Protocol::Pop3, implicit_tls),
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
        let counters = components.metrics.connections(Protocol::Pop3);
        listeners.extend(BoundListener::bind_all(&endpoint, &admission, counters, serve, problems));
    }
    listeners
}
