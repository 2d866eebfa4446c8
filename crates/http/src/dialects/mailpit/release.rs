//! Requests for features that are not there: forwarding a message to another server, and SpamAssassin. The responses are
//! those of Mailpit if these are not configured.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use restante_mail::address::{Address, Alphabet};
use restante_store::MessageSelector;
use serde::Deserialize;

use crate::dialects::mailpit::body;
use crate::dialects::mailpit::error::Error;
use crate::dialects::mailpit::success::HandlerResult;
use crate::extractors::parameters::RequestGrant;
use crate::state::Server;

/// The maximum size of a request body.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// Refuses to forward a message. The server never forwards messages.
pub(crate) async fn release(
    State(server): State<Arc<Server>>,
    RequestGrant(grant): RequestGrant,
    Path(id): Path<String>,
    request: Request,
) -> HandlerResult {
    let id = id.parse().map_err(|_| Error::NOT_FOUND)?;
    server.permitted_message(&grant, MessageSelector::Id(id)).await?;
    let Recipients { to } = body::read(request, MAX_BODY_BYTES).await?;
    if let Some(invalid) = to.iter().find(|address| !is_address(address)) {
        return Err(Error::text(format!("Invalid email address: {invalid}")));
    }
    if to.is_empty() {
        return Err(Error::text("No valid addresses found"));
    }
    Err(Error::text("SMTP error: this server does not relay messages"))
}

/// Responds that there is no SpamAssassin.
pub(crate) async fn spam_check(_: RequestGrant) -> Error {
    Error::NotFound("File not found\n")
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Recipients {
    to: Vec<String>,
}

/// Returns whether a text is `ann@example.org` or `Ann <ann@example.org>`.
fn is_address(text: &str) -> bool {
    let text = text.trim();
    let address = text.strip_suffix('>').and_then(|text| text.rsplit_once('<')).map_or(text, |(_, address)| address);
    Address::parse(address.trim(), Alphabet::Utf8).is_ok()
}
