//! Builds the SMTP and LMTP servers from the configuration, and binds their listeners.

use std::slice::from_ref;
use std::sync::Arc;

use restante_mail_server::smtp::{Login, Server};
use restante_metrics::Protocol;
use restante_net::{Budget, ConnectionLimits, ListenAddr, Tls};
use restante_proto::smtp::{self, Settings};
use restante_settings::Config;

use super::{BoundListener, Components};

/// The name of the listeners at `smtp.addr`.
pub(super) const PLAIN: &str = "SMTP";
/// The name of the listeners with TLS from the first byte.
pub(super) const WITH_TLS: &str = "SMTP with TLS";

/// Binds all listeners for messages: plain ones with STARTTLS, those with TLS from the first byte, and LMTP.
pub(super) fn bind(
    components: &Components<'_>,
    tls: Option<&Arc<Tls>>,
    problems: &mut Vec<String>,
) -> Vec<BoundListener> {
    let Config { smtp, lmtp, .. } = components.config;
    let limits = ConnectionLimits::new(smtp.max_connections, smtp.max_connections_per_ip);
    let admission = components.admission(limits, &smtp.proxies, &[]);
    let context = components.listener_contexts(tls, smtp.timeout);
    let login = Arc::new(Login::new(smtp.credentials.clone(), smtp.accept_any_login, components.auth.clone()));
    let budget = Budget::new(smtp.max_inflight_bytes);
    let server = |protocol, implicit_tls: bool, addr: &ListenAddr| {
        let settings = Settings {
            domain: smtp.domain.clone(),
            protocol: if protocol == Protocol::Lmtp { smtp::Protocol::Lmtp } else { smtp::Protocol::Smtp },
            listener: Some(addr.to_string().into()),
            max_message_bytes: components.config.effective_max_message_bytes(),
            max_recipients: smtp.max_recipients,
            max_bad_commands: smtp.max_bad_commands as usize,
            starttls: tls.is_some() && !implicit_tls,
            require_starttls: smtp.require_starttls,
            require_auth: smtp.require_auth,
            cram_md5: login.can_verify_digests(),
            strict: smtp.strict,
            disabled_commands: smtp.disabled_commands.clone(),
        };
        Arc::new(Server {
            context: context(protocol, implicit_tls),
            settings: Arc::new(settings),
            login: login.clone(),
            message_budget: budget.clone(),
        })
    };
    let kinds = [
        (PLAIN, "smtp.addr", &smtp.addr, Protocol::Smtp, smtp.tls.force),
        (WITH_TLS, "smtp.tlsaddr", &smtp.tls_addr, Protocol::Smtp, true),
        ("LMTP", "lmtp.addr", &lmtp.addr, Protocol::Lmtp, false),
    ];
    let mut listeners = Vec::new();
    for (name, key, addrs, protocol, implicit_tls) in kinds {
        for addr in addrs {
            let server = server(protocol, implicit_tls, addr);
            let serve = move |stream, ip, admission, shutdown| server.clone().serve(stream, ip, admission, shutdown);
            let (endpoint, counters) =
                (components.endpoint(name, key, from_ref(addr)), components.metrics.connections(protocol));
            listeners.extend(BoundListener::bind_all(&endpoint, &admission, counters, serve, problems));
        }
    }
    listeners
}
