//! Whether it is worth while to go on with an answer that takes long: the client may have left, or may not be let in any
//! more, and the server may be about to end.

use std::convert::Infallible;
use std::future::pending;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use restante_http_connection::context::ConnectionGuard;
use restante_http_connection::disconnect::Disconnect;
use restante_net::NotReady;

use crate::extractors::login_session::Admitted;
use crate::response::problem::Problem;

/// The presence of a client and of the server. Where a request came without a connection, both stay; where nobody has to
/// say who they are, everybody is let in.
pub(crate) struct Attendance {
    tenure: Option<ConnectionGuard>,
    departure: Option<Disconnect>,
    admitted: Option<Admitted>,
}

impl<S: Sync> FromRequestParts<S> for Attendance {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let extensions = &parts.extensions;
        Ok(Self {
            tenure: extensions.get().cloned(),
            departure: extensions.get().cloned(),
            admitted: extensions.get().cloned(),
        })
    }
}

impl Attendance {
    /// Does something for as long as it is worth while.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
        let done = tokio::select! {
            done = work => done?,
            denied = lost(self.admitted.as_ref()) => return Err(denied),
            () = ending(self.tenure.as_ref()) => return Err(Problem::NotReady(NotReady::ShuttingDown)),
            () = departed(self.departure.as_ref()) => return Err(Problem::Departed),
        };
        // Files are looked at now and then only, and nothing is answered in between.
        self.check_admitted().await?;
        Ok(done)
    }

    /// Fails if the credentials of the client are not valid any more.
    pub(crate) async fn check_admitted(&self) -> Result<(), Problem> {
        match &self.admitted {
            Some(admitted) => admitted.check().await,
            None => Ok(()),
        }
    }
}

/// Waits until the client would not be let in any more, and says so.
pub(crate) async fn lost(admitted: Option<&Admitted>) -> Problem {
    match admitted {
        Some(admitted) => admitted.lost().await,
        None => pending().await,
    }
}

/// Waits until the server begins to end.
pub(crate) async fn ending(tenure: Option<&ConnectionGuard>) {
    match tenure {
        Some(tenure) => tenure.shutdown_started().await,
        None => pending().await,
    }
}

/// Waits until the client has left.
pub(crate) async fn departed(departure: Option<&Disconnect>) {
    match departure {
        Some(departure) => departure.wait().await,
        None => pending().await,
    }
}
