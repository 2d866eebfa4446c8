//! The configuration of Mailpit's web interface. Clients read from it which features are enabled.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;

use crate::dialects::mailpit::success;
use crate::dialects::mailpit::success::HandlerResult;
use crate::extractors::parameters::RequestGrant;
use crate::state::Server;

/// Returns the configuration. The server never forwards messages, and has no SpamAssassin.
pub(crate) async fn webui(State(server): State<Arc<Server>>, _: RequestGrant) -> HandlerResult {
    success::json(&WebUi { chaos_enabled: server.mailroom.chaos().is_some(), ..WebUi::default() })
}

#[derive(Default, Serialize)]
#[serde(rename_all = "PascalCase")]
#[expect(clippy::struct_excessive_bools, reason = "the format of Mailpit")]
struct WebUi {
    label: &'static str,
    message_relay: MessageRelay,
    spam_assassin: bool,
    chaos_enabled: bool,
    duplicates_ignored: bool,
    hide_delete_all_button: bool,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct MessageRelay {
    enabled: bool,
    #[serde(rename = "SMTPServer")]
    smtp_server: &'static str,
    return_path: &'static str,
    allowed_recipients: &'static str,
    blocked_recipients: &'static str,
    override_from: &'static str,
    #[serde(rename = "PreserveMessageIDs")]
    preserve_message_ids: bool,
    recipient_allowlist: &'static str,
}
