//! Release of a message: it is sent to other addresses by the relay. The errors are those of Mailpit.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use restante_auth::Scope;
use restante_http_core::extractors::parameters::require_scope;
use restante_http_core::extractors::queue::QueueGrant;
use restante_http_core::response::problem::Problem;
use restante_http_core::server::Server;
use restante_relay::{ReleaseError, ReleaseRequest, Target};
use restante_store::MessageSelector;
use serde::Deserialize;

use crate::error::{Error, HandlerResult};
use crate::send::address_of;
use crate::{body, success};

/// The maximum size of a request body.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// The name of the target if there are several.
const TARGET: &str = "relay";

/// Adds a message to the relay queue. Mailpit sends it before it responds.
pub(crate) async fn release(
    State(server): State<Arc<Server>>,
    QueueGrant(grant): QueueGrant,
    Path(id): Path<String>,
    request: Request,
) -> HandlerResult {
    require_scope(&grant, Scope::Read)?;
    let id = id.parse().map_err(|_| Error::NOT_FOUND)?;
    let message = server.messages.permitted_message(&grant, MessageSelector::Id(id)).await?;
    let Recipients { to } = body::read(request, MAX_BODY_BYTES).await?;
    let target = target(&server);
    let recipients = check_recipients(target, &to)?;
    let (Some(relay), Some(target)) = (server.relay(), target) else {
        return Err(Error::text("SMTP error: this server does not relay messages"));
    };
    let by = grant.name().map(ToOwned::to_owned);
    let target = Some(target.name.clone());
    let request = ReleaseRequest { message, target, recipients, by, subject_prefix: String::new() };
    match relay.release(request).await {
        Ok(_) => Ok(success::ok()),
        Err(error @ (ReleaseError::Store(_) | ReleaseError::Deleted)) => Err(Problem::from(error).into()),
        Err(error) => Err(Error::text(format!("SMTP error: {error}"))),
    }
}

/// Returns the target that messages are released to: the one with the name `relay`, or the only one.
pub(super) fn target(server: &Server) -> Option<&Target> {
    let targets = server.relay()?.targets();
    let named = targets.iter().find(|target| target.name == TARGET);
    named.or(match targets {
        [only] => Some(only),
        _ => None,
    })
}

/// Returns the addresses of recipients in the form `ann@example.org`. Fails in the same order as Mailpit.
fn check_recipients(target: Option<&Target>, recipients: &[String]) -> Result<Vec<String>, Error> {
    let (mut addresses, mut not_allowed, mut blocked) = (Vec::new(), Vec::new(), Vec::new());
    for recipient in recipients {
        let Some(address) = address_of(recipient).map(|address| address.text()) else {
            return Err(Error::text(format!("Invalid email address: {recipient}")));
        };
        if target.is_some_and(|target| !target.allowed.matches(&address)) {
            not_allowed.push(recipient.as_str());
        } else if target.is_some_and(|target| target.blocked.matches(&address)) {
            blocked.push(recipient.as_str());
        } else {
            addresses.push(address);
        }
    }
    for (refused, reason) in [(not_allowed, "do not match the allowlist"), (blocked, "found on blocklist")] {
        let count = match refused.len() {
            0 => continue,
            1 => "1 Address".to_owned(),
            count => format!("{count} Addresses"),
        };
        return Err(Error::text(format!("Failed: {count} {reason}: {}", refused.join(", "))));
    }
    if addresses.is_empty() { Err(Error::text("No valid addresses found")) } else { Ok(addresses) }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Recipients {
    to: Vec<String>,
}
