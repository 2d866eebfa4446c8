//! The making of the POP3 servers: from the configuration to bound listeners, each with who serves its connections.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use restante_mailroom::Mailroom;
use restante_proto::pop3 as protocol;

use super::bind_all;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::net::{Budget, Listener, Tls};
use crate::pop3::{Login, Server};

/// What all the messages that are being sent may take together. One message always goes, however large it is.
const BYTES_BEING_SENT: usize = 64 * 1024 * 1024;

/// A bound listener, and who serves its connections.
pub(super) struct MailListener {
    pub(super) name: &'static str,
    pub(super) listener: Listener,
    pub(super) server: Arc<Server>,
}

/// Binds every POP3 listener: plain ones with STLS, and those with TLS from the first byte.
pub(super) fn listeners(
    config: &Config,
    mailroom: &Arc<Mailroom>,
    metrics: &Arc<Metrics>,
    tls: Option<&Arc<Tls>>,
    problems: &mut Vec<String>,
) -> Vec<MailListener> {
    let pop3 = &config.pop3;
    let login = Arc::new(Login::new(pop3.keys.clone()));
    let budget = Budget::new(BYTES_BEING_SENT);
    let server = |implicit_tls: bool| {
        let settings = protocol::Settings {
            domain: pop3.domain.clone(),
            stls: tls.is_some() && !implicit_tls,
            max_bad_commands: pop3.max_bad_commands as usize,
        };
        Arc::new(Server {
            settings: Arc::new(settings),
            mailroom: mailroom.clone(),
            tls: tls.cloned(),
            implicit_tls,
            login: login.clone(),
            budget: budget.clone(),
            metrics: metrics.clone(),
            timeout: pop3.timeout,
            netdebug: config.log.netdebug,
            sessions: AtomicU64::new(0),
        })
    };
    let kinds = [("POP3", &pop3.addr, pop3.tls.force), ("POP3 with TLS", &pop3.tls_addr, true)];
    let mut listeners = Vec::new();
    for (name, addrs, implicit_tls) in kinds {
        let server = server(implicit_tls);
        for listener in bind_all(name, addrs, problems) {
            listeners.push(MailListener { name, listener, server: server.clone() });
        }
    }
    listeners
}
