//! Whether it is worth while to go on with an answer that takes long: the client may have left, and the server may be
//! about to end.

use std::convert::Infallible;
use std::future::pending;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::connection::Tenure;
use super::departure::Departure;
use super::problem::Problem;
use crate::net::NotReady;

/// The presence of a client and of the server. Where a request came without a connection, both stay.
pub(super) struct Attendance {
    tenure: Option<Tenure>,
    departure: Option<Departure>,
}

impl<S: Sync> FromRequestParts<S> for Attendance {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self { tenure: parts.extensions.get().cloned(), departure: parts.extensions.get().cloned() })
    }
}

impl Attendance {
    /// Does something for as long as it is worth while.
    pub(super) async fn during<T>(&self, work: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
        tokio::select! {
            done = work => done,
            () = ending(self.tenure.as_ref()) => Err(Problem::NotReady(NotReady::Ending)),
            () = departed(self.departure.as_ref()) => Err(Problem::Departed),
        }
    }
}

/// Waits until the server begins to end.
pub(super) async fn ending(tenure: Option<&Tenure>) {
    match tenure {
        Some(tenure) => tenure.ending().await,
        None => pending().await,
    }
}

/// Waits until the client has left.
pub(super) async fn departed(departure: Option<&Departure>) {
    match departure {
        Some(departure) => departure.happened().await,
        None => pending().await,
    }
}
