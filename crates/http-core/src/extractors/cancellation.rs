//! Cancels long responses when the client disconnects, its credentials become invalid, or the server shuts down.

use std::convert::Infallible;
use std::future::{pending, ready};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use restante_http_connection::context::ConnectionGuard;
use restante_http_connection::disconnect::Disconnect;
use restante_net::NotReady;

use crate::extractors::accepted_credentials::AcceptedCredentials;
use crate::response::problem::Problem;

/// The conditions that cancel a response. A request without a connection, as in tests, is canceled neither by a
/// disconnect nor by the shutdown. Without authentication, credentials do not become invalid.
pub struct Cancellation {
    /// The connection of the request.
    pub connection: Option<ConnectionGuard>,
    disconnect: Option<Disconnect>,
    credentials: Option<AcceptedCredentials>,
}

impl<S: Sync> FromRequestParts<S> for Cancellation {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let extensions = &parts.extensions;
        Ok(Self {
            connection: extensions.get().cloned(),
            disconnect: extensions.get().cloned(),
            credentials: extensions.get().cloned(),
        })
    }
}

impl Cancellation {
    /// Runs `work` until it is done or a condition cancels it.
    pub async fn run_until_cancelled<T>(&self, work: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
        let done = tokio::select! {
            done = work => done?,
            denied = self.credentials_revoked() => return Err(denied),
            () = self.shutdown_started() => return Err(Problem::NotReady(NotReady::ShuttingDown)),
            () = self.disconnected() => return Err(Problem::Disconnected),
        };
        // Files with users and tokens are checked only at intervals. No response must be sent with credentials that
        // became invalid since the last check.
        self.check_credentials().await?;
        Ok(done)
    }

    /// Fails if a condition cancels the response now. For work that must not be canceled after it has started.
    pub async fn check(&self) -> Result<(), Problem> {
        tokio::select! {
            biased;
            denied = self.credentials_revoked() => return Err(denied),
            () = self.shutdown_started() => return Err(Problem::NotReady(NotReady::ShuttingDown)),
            () = self.disconnected() => return Err(Problem::Disconnected),
            () = ready(()) => {}
        }
        self.check_credentials().await
    }

    /// Waits until the credentials become invalid, and returns the problem.
    pub async fn credentials_revoked(&self) -> Problem {
        or_pending(self.credentials.as_ref().map(AcceptedCredentials::revoked)).await
    }

    /// Waits until the shutdown of the server starts.
    pub async fn shutdown_started(&self) {
        or_pending(self.connection.as_ref().map(ConnectionGuard::shutdown_started)).await;
    }

    /// Waits until the client has disconnected.
    pub async fn disconnected(&self) {
        or_pending(self.disconnect.as_ref().map(Disconnect::wait)).await;
    }

    /// Fails if the credentials of the client are not valid any more.
    pub async fn check_credentials(&self) -> Result<(), Problem> {
        match &self.credentials {
            Some(credentials) => credentials.check().await,
            None => Ok(()),
        }
    }
}

/// Waits for the result of a future. Without one, waits forever.
pub async fn or_pending<T>(future: Option<impl Future<Output = T>>) -> T {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}
