//! The description of the server: its version, the number of messages, and counters.
//!
//! Differences from Mailpit:
//!
//! - `LatestVersion` is `disabled`: the server does not look for newer versions.
//! - `Database` is empty. `DatabaseSize` is the size of all messages.
//! - `MessagesDeleted` counts a message in several mailboxes several times.
//! - `Memory` is the resident memory of the process, where the system reports it.
//! - A client that may read only some mailboxes gets the numbers of its messages, and 0 for the size of the store and the
//!   counters of the server.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use jiff::Timestamp;
use restante_http_core::extractors::parameters::RequestGrant;
use restante_http_core::server::Server;
use restante_mailroom::Counts;
use serde::Serialize;

use crate::error::HandlerResult;
use crate::{VERSION, success};

/// Returns the description of the server.
pub(crate) async fn info(State(server): State<Arc<Server>>, RequestGrant(grant): RequestGrant) -> HandlerResult {
    let overview = server.messages.overview(&grant).await?;
    let is_complete = grant.covers_all_mailboxes();
    success::json(&Info {
        version: VERSION,
        latest_version: "disabled",
        database: "",
        database_size: if is_complete { server.mailroom.usage().await?.bytes } else { 0 },
        messages: overview.messages,
        unread: overview.unread,
        tags: overview.tags.iter().map(|count| (count.tag.as_str(), count.messages)).collect(),
        runtime_stats: if is_complete { runtime_stats(&server) } else { RuntimeStats::default() },
    })
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Info<'a> {
    version: &'a str,
    latest_version: &'a str,
    database: &'a str,
    database_size: u64,
    messages: u64,
    unread: u64,
    /// The number of messages of each tag.
    tags: BTreeMap<&'a str, u64>,
    runtime_stats: RuntimeStats,
}

/// The counters of the server since its start. `SMTPIgnored` counts messages that were accepted and not stored.
#[derive(Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct RuntimeStats {
    /// In seconds.
    uptime: u64,
    /// In bytes.
    memory: u64,
    messages_deleted: u64,
    #[serde(rename = "SMTPAccepted")]
    smtp_accepted: u64,
    #[serde(rename = "SMTPAcceptedSize")]
    smtp_accepted_size: u64,
    #[serde(rename = "SMTPRejected")]
    smtp_rejected: u64,
    #[serde(rename = "SMTPIgnored")]
    smtp_ignored: u64,
}

fn runtime_stats(server: &Server) -> RuntimeStats {
    let metrics = &server.settings.metrics;
    let Counts { received, received_bytes, discarded, deleted, .. } = server.mailroom.counts();
    let uptime = Timestamp::now().as_second().saturating_sub(metrics.started().as_second());
    RuntimeStats {
        uptime: u64::try_from(uptime).unwrap_or(0),
        memory: metrics.resident_bytes().unwrap_or(0),
        messages_deleted: deleted.iter().sum(),
        smtp_accepted: received,
        smtp_accepted_size: received_bytes,
        smtp_rejected: metrics.refusals(),
        smtp_ignored: discarded,
    }
}
