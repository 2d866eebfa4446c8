//! The parameter `wait` of requests for the latest message of a mailbox.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use restante_mail::message::{MessageId, Summary};
use restante_store::MessageSelector;

use crate::extractors::cancellation::Attendance;
use crate::extractors::parameters::{OneMessage, any_query, duration};
use crate::response::problem::Problem;
use crate::state::Server;

/// How long the client waits for the first message of an empty mailbox, which it asks the latest one of: `?wait=`.
pub(crate) struct Patience {
    within: Option<Duration>,
    attendance: Attendance,
}

impl<S: Sync> FromRequestParts<S> for Patience {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let within = match parts.uri.query() {
            Some(_) => duration(&any_query(parts)?, "wait")?,
            None => None,
        };
        let Ok(attendance) = Attendance::from_request_parts(parts, state).await;
        Ok(Self { within, attendance })
    }
}

impl Server {
    /// Waits until the mailbox of a message is not empty, where the latest one is asked for with patience.
    pub(crate) async fn await_latest(&self, target: &OneMessage, patience: Patience) -> Result<(), Problem> {
        let (MessageSelector::Latest, Some(within)) = (target.which, patience.within) else { return Ok(()) };
        if self.mailroom.find(&target.mailbox, MessageSelector::Latest).await?.is_some() {
            return Ok(());
        }
        let _place = self.place_to_wait()?;
        let mut arrivals = self.mailroom.arrivals(&target.mailbox, MessageId::ZERO, within);
        let first = async { Ok(arrivals.next().await?) };
        patience.attendance.during(first).await.map(|_: Option<Summary>| ())
    }
}
