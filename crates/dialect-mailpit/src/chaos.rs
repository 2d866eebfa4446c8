//! Simulated failures of SMTP: what they are now, and changes of them.

use std::sync::Arc;

use axum::extract::{Request, State};
use restante_http_core::extractors::parameters::{RequestGrant, RequireAdmin};
use restante_http_core::server::Server;
use restante_mailroom::Mailroom;
use restante_mailroom::chaos::{Chaos, Trigger, Triggers};
use serde::{Deserialize, Serialize};

use crate::error::{Error, HandlerResult};
use crate::{body, success};

/// The maximum size of a request body.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// Returns the triggers.
pub(crate) async fn get(State(server): State<Arc<Server>>, _: RequestGrant) -> HandlerResult {
    success::json(&TriggersRecord::from(*chaos(&server.mailroom)?.read()))
}

/// Replaces the triggers. Those that are missing in the request never fire. All clients are affected, so this requires the
/// scope `admin` for all mailboxes.
pub(crate) async fn set(State(server): State<Arc<Server>>, _: RequireAdmin, request: Request) -> HandlerResult {
    let chaos = chaos(&server.mailroom)?;
    let record: TriggersRecord = body::read(request, MAX_BODY_BYTES).await?;
    let defaults = Triggers::default();
    let triggers = Triggers {
        sender: record.sender.parse(defaults.sender)?,
        recipient: record.recipient.parse(defaults.recipient)?,
        authentication: record.authentication.parse(defaults.authentication)?,
    };
    *chaos.write() = triggers;
    tracing::info!(?triggers, "simulated failures of SMTP changed");
    success::json(&TriggersRecord::from(triggers))
}

fn chaos(mailroom: &Mailroom) -> Result<&Chaos, Error> {
    mailroom.chaos().ok_or_else(|| Error::text("Chaos is not enabled"))
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "PascalCase")]
struct TriggersRecord {
    sender: TriggerRecord,
    recipient: TriggerRecord,
    authentication: TriggerRecord,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "PascalCase")]
struct TriggerRecord {
    error_code: i64,
    probability: i64,
}

impl From<Triggers> for TriggersRecord {
    fn from(Triggers { sender, recipient, authentication }: Triggers) -> Self {
        let record = |trigger: Trigger| TriggerRecord {
            error_code: trigger.code().into(),
            probability: trigger.probability().into(),
        };
        Self { sender: record(sender), recipient: record(recipient), authentication: record(authentication) }
    }
}

impl TriggerRecord {
    /// Returns the trigger. The code 0 is the code of `default`.
    fn parse(&self, default: Trigger) -> Result<Trigger, Error> {
        let code = if self.error_code == 0 { default.code().into() } else { self.error_code };
        Trigger::new(code, self.probability).map_err(|error| Error::text(error.to_string()))
    }
}
