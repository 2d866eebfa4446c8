//! Builds the IMAP servers from the configuration, and binds their listeners.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use restante_mail_server::MailboxLogin;
use restante_mail_server::imap::{FolderNotes, ListCache, Server};
use restante_metrics::Protocol;
use restante_net::{Budget, ConnectionLimits, Tls};
use restante_proto::imap::Settings;

use super::{BoundListener, Components};

/// The memory budget for all messages that are being sent or received, in bytes. A single message is always allowed,
/// however large it is.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;
/// The memory budget for the lists of messages of all selected mailboxes, in bytes.
const MAX_INDEX_BYTES: usize = 256 * 1024 * 1024;

/// The name of the listeners at `imap.addr`.
pub(super) const PLAIN: &str = "IMAP";
/// The name of the listeners with TLS from the first byte.
pub(super) const WITH_TLS: &str = "IMAP with TLS";

/// Binds all listeners: plain ones with STARTTLS, and those with TLS from the first byte.
pub(super) fn bind(
    components: &Components<'_>,
    tls: Option<&Arc<Tls>>,
    problems: &mut Vec<String>,
) -> Vec<BoundListener> {
    let imap = &components.config.imap;
    let limits = ConnectionLimits::new(imap.max_connections, imap.max_connections_per_ip);
    let admission = components.admission(limits, &imap.proxies, &[]);
    let context = components.listener_contexts(tls, imap.timeout);
    let login =
        Arc::new(MailboxLogin::new("imap.credentials", imap.mailbox_passwords.clone(), components.auth.clone()));
    let (indexes, messages) = (Budget::new(MAX_INDEX_BYTES), Budget::new(MAX_MESSAGE_BYTES));
    let (folders, lists) = (Arc::<FolderNotes>::default(), Arc::<ListCache>::default());
    // Nodes and restarts have different values. `RandomState` has new random keys each time.
    let first_uid_validity = u32::try_from(RandomState::new().hash_one(()) >> 32).unwrap_or_default();
    let session_uid_validity = Arc::new(AtomicU32::new(first_uid_validity));
    let server = |implicit_tls: bool| {
        let settings = Settings {
            domain: imap.domain.clone(),
            starttls: tls.is_some() && !implicit_tls,
            max_bad_commands: imap.max_bad_commands as usize,
            max_message_bytes: components.config.effective_max_message_bytes(),
        };
        Arc::new(Server {
            context: context(Protocol::Imap, implicit_tls),
            settings: Arc::new(settings),
            login: login.clone(),
            folders: folders.clone(),
            index_budget: indexes.clone(),
            message_budget: messages.clone(),
            lists: lists.clone(),
            session_uid_validity: session_uid_validity.clone(),
        })
    };
    let kinds = [
        (components.endpoint(PLAIN, "imap.addr", &imap.addr), imap.tls.force),
        (components.endpoint(WITH_TLS, "imap.tlsaddr", &imap.tls_addr), true),
    ];
    let mut listeners = Vec::new();
    for (endpoint, implicit_tls) in kinds {
        let server = server(implicit_tls);
        let serve = move |stream, ip, admission, shutdown| server.clone().serve(stream, ip, admission, shutdown);
        let counters = components.metrics.connections(Protocol::Imap);
        listeners.extend(BoundListener::bind_all(&endpoint, &admission, counters, serve, problems));
    }
    listeners
}
