//! What most handlers of lists and searches need: the server, the grant and the cancellation.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use restante_auth::Grant;

use crate::extractors::cancellation::Cancellation;
use crate::extractors::parameters::RequestGrant;
use crate::response::problem::Problem;
use crate::server::Server;

/// The access of a request to the server: its grant, which allows the request's method for at least one mailbox as
/// [`RequestGrant`] has it, and the conditions that cancel the response.
pub struct Access {
    /// The server.
    pub server: Arc<Server>,
    /// The grant.
    pub grant: Grant,
    /// The conditions that cancel the response.
    pub cancellation: Cancellation,
}

impl FromRequestParts<Arc<Server>> for Access {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let RequestGrant(grant) = RequestGrant::from_request_parts(parts, server).await?;
        let Ok(cancellation) = Cancellation::from_request_parts(parts, server).await;
        Ok(Self { server: server.clone(), grant, cancellation })
    }
}
