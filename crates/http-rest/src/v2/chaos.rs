//! Simulated failures of SMTP: what they are now, and changes of them.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use restante_http_core::extractors::body;
use restante_http_core::extractors::parameters::{RequestGrant, RequireAdmin};
use restante_http_core::response::problem::Problem;
use restante_http_core::response::success;
use restante_http_core::server::Server;
use restante_mailroom::chaos::{Chaos, Trigger, TriggerError, Triggers};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The maximum size of a request body.
const MAX_BODY_BYTES: usize = 64 * 1024;

const TRIGGERS_SHAPE: &str = "{\"sender\": {\"code\": 451, \"probability\": 5}, \"recipient\": {…}, \
                              \"authentication\": {…}}, with whole numbers, and no other members. All members are optional";

/// Returns the triggers.
pub(crate) async fn get(State(server): State<Arc<Server>>, _: RequestGrant) -> Result<Response, Problem> {
    success::no_store_json(&SimulatedFailures::from(*chaos(&server)?.read()))
}

/// Replaces the triggers. Those that are missing in the request never fire. All clients are affected, so this requires the
/// scope `admin` for all mailboxes.
pub(crate) async fn set(
    State(server): State<Arc<Server>>,
    _: RequireAdmin,
    request: Request,
) -> Result<Response, Problem> {
    let triggers = parse_triggers(body::read_json(request, MAX_BODY_BYTES).await?.as_ref())?;
    *chaos(&server)?.write() = triggers;
    tracing::info!(?triggers, "simulated failures of SMTP changed");
    success::no_store_json(&SimulatedFailures::from(triggers))
}

fn chaos(server: &Server) -> Result<&Chaos, Problem> {
    server.mailroom.chaos().ok_or(Problem::ChaosDisabled)
}

/// When SMTP sessions refuse senders, recipients and logins at random.
#[derive(Serialize, ToSchema)]
pub(crate) struct SimulatedFailures {
    sender: SimulatedFailure,
    recipient: SimulatedFailure,
    authentication: SimulatedFailure,
}

/// A reply code, and how often it is sent.
#[derive(Serialize, ToSchema)]
struct SimulatedFailure {
    /// The reply code.
    #[schema(minimum = 400, maximum = 599)]
    code: u16,
    /// The probability in percent.
    #[schema(maximum = 100)]
    probability: u8,
}

impl From<Triggers> for SimulatedFailures {
    fn from(Triggers { sender, recipient, authentication }: Triggers) -> Self {
        Self { sender: sender.into(), recipient: recipient.into(), authentication: authentication.into() }
    }
}

impl From<Trigger> for SimulatedFailure {
    fn from(trigger: Trigger) -> Self {
        Self { code: trigger.code(), probability: trigger.probability() }
    }
}

/// Parses the body of a request. A member that is missing has its default.
fn parse_triggers(body: Option<&Value>) -> Result<Triggers, Problem> {
    let wrong_shape = || Problem::WrongShape(TRIGGERS_SHAPE);
    let mut triggers = Triggers::default();
    for (name, value) in body.and_then(Value::as_object).ok_or_else(wrong_shape)? {
        let trigger = match name.as_str() {
            "sender" => &mut triggers.sender,
            "recipient" => &mut triggers.recipient,
            "authentication" => &mut triggers.authentication,
            _ => return Err(wrong_shape()),
        };
        let (mut code, mut probability) = (trigger.code().into(), trigger.probability().into());
        for (member, value) in value.as_object().ok_or_else(wrong_shape)? {
            let number = match member.as_str() {
                "code" => &mut code,
                "probability" => &mut probability,
                _ => return Err(wrong_shape()),
            };
            *number = value.as_i64().ok_or_else(wrong_shape)?;
        }
        *trigger = Trigger::new(code, probability).map_err(|error| {
            let member = if error == TriggerError::Code { "code" } else { "probability" };
            Problem::invalid_member(format!("{name}.{member}"), &error)
        })?;
    }
    Ok(triggers)
}
