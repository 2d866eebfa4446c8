//! The message that a request is about: an id in the path, or `latest`.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::Method;
use axum::http::request::Parts;
use restante_auth::{Grant, Scope};
use restante_http_core::extractors::cancellation::Cancellation;
use restante_http_core::extractors::parameters::{LATEST, RequestGrant, path_value, path_values};
use restante_http_core::response::problem::Problem;
use restante_http_core::server::Server;
use restante_mail::message::{Message, Summary};
use restante_store::MessageSelector;

use crate::error::Error;
use crate::search::SearchParameters;
use crate::search::latest_match;

/// The text of the status 404 if there is no latest message.
pub(crate) const MESSAGE_NOT_FOUND: &str = "Message not found";

/// The message in `{id}`, with the copies that the grant of the request allows.
pub(crate) struct TargetMessage {
    pub(crate) grant: Grant,
    pub(crate) message: Message,
    /// Whether the request is a HEAD request. It changes nothing.
    is_head: bool,
}

impl FromRequestParts<Arc<Server>> for TargetMessage {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Error> {
        let values: Vec<(String, String)> = path_values(parts, server).await?;
        let RequestGrant(grant) = RequestGrant::from_request_parts(parts, server).await?;
        Self::find(server, parts, grant, path_value(&values, "id")).await
    }
}

impl TargetMessage {
    /// Returns the message with this id, or the latest one. If the request has the parameter `query`, that is the latest
    /// one that matches.
    pub(crate) async fn find(server: &Server, parts: &mut Parts, grant: Grant, id: &str) -> Result<Self, Error> {
        let is_head = parts.method == Method::HEAD;
        if id == LATEST
            && let Some(parameters) = SearchParameters::optional(parts)?
        {
            let Ok(cancellation) = Cancellation::from_request_parts(parts, &()).await;
            let found = latest_match(server, &grant, &parameters, &cancellation).await?;
            return found.map(|message| Self { grant, message, is_head }).ok_or(Error::NotFound(MESSAGE_NOT_FOUND));
        }
        let selector = match id {
            LATEST => MessageSelector::Latest,
            id => MessageSelector::Id(id.parse().map_err(|_| Error::NOT_FOUND)?),
        };
        match server.messages.permitted_message(&grant, selector).await {
            Ok(message) => Ok(Self { grant, message, is_head }),
            Err(Problem::NoSuchMessage) if id == LATEST => Err(Error::NotFound(MESSAGE_NOT_FOUND)),
            Err(problem) => Err(problem.into()),
        }
    }

    /// Marks the message as read, if the client may change it. A HEAD request does not mark it, unlike in Mailpit.
    pub(crate) async fn mark_as_read(&self, server: &Server) -> Result<(), Error> {
        if self.is_head {
            return Ok(());
        }
        let is_changed = |copy: &&Summary| !copy.seen && self.grant.allows(Scope::Write, &copy.mailbox);
        let unread: Vec<_> = self.message.copies().iter().filter(is_changed).map(Into::into).collect();
        if !unread.is_empty() {
            server.mailroom.mark_copies(unread, true).await?;
        }
        Ok(())
    }
}
