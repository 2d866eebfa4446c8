//! The parameter `wait` of requests for the latest message of a mailbox.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use restante_mail::message::{Message, MessageId};
use restante_mailroom::ArrivalSource;
use restante_store::MessageSelector;

use crate::extractors::cancellation::Cancellation;
use crate::extractors::parameters::PathMessage;
use crate::extractors::query::QueryPairs;
use crate::response::problem::Problem;
use crate::server::Server;

/// How long to wait for the first message of an empty mailbox if the latest message is requested: `?wait=`.
pub struct LatestWait {
    timeout: Option<Duration>,
    cancellation: Cancellation,
}

impl<S: Sync> FromRequestParts<S> for LatestWait {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let timeout = match parts.uri.query() {
            Some(_) => QueryPairs::parse_leniently(&parts.uri)?.duration("wait")?,
            None => None,
        };
        let Ok(cancellation) = Cancellation::from_request_parts(parts, state).await;
        Ok(Self { timeout, cancellation })
    }
}

impl LatestWait {
    /// Waits until the mailbox is not empty, if the request is for the latest message and has a timeout.
    pub async fn wait(self, server: &Server, target: &PathMessage) -> Result<(), Problem> {
        let (MessageSelector::Latest, Some(timeout)) = (target.selector, self.timeout) else { return Ok(()) };
        if server.mailroom.find(&target.mailbox, MessageSelector::Latest).await?.is_some() {
            return Ok(());
        }
        let _permit = server.wait_permit()?;
        let mut arrivals =
            server.mailroom.arrivals(ArrivalSource::Mailbox(target.mailbox.clone()), MessageId::ZERO, timeout);
        let first = async { Ok(arrivals.next().await?) };
        self.cancellation.run_until_cancelled(first).await.map(|_: Option<Message>| ())
    }
}
