//! Permits for expensive work. It runs on threads of its own, so that it does not delay the network threads.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How long is waited for a turn at it. Who comes again later waits no longer, and holds nothing meanwhile.
const TURN_PATIENCE: Duration = Duration::from_secs(10);

/// Why work was not done.
#[derive(Debug)]
pub enum WorkError {
    /// No permit became available in time.
    Crowded,
    /// The work panicked or was cancelled.
    Failed(String),
}

impl WorkError {
    fn failed(error: &dyn Display) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The right to work on something now: here when that is quick, otherwise away from the network threads.
pub enum Turn {
    /// On the network thread.
    Here,
    /// On a thread of its own, with a permit.
    Away(OwnedSemaphorePermit),
}

impl Turn {
    /// Waits a while for the turn to do heavy work, of those that this semaphore has.
    pub async fn away(turns: &Arc<Semaphore>) -> Result<Self, WorkError> {
        timeout(TURN_PATIENCE, Self::in_time(turns)).await.unwrap_or(Err(WorkError::Crowded))
    }

    /// Waits for such a turn, however long it takes.
    pub async fn in_time(turns: &Arc<Semaphore>) -> Result<Self, WorkError> {
        turns.clone().acquire_owned().await.map(Self::Away).map_err(|error| WorkError::failed(&error))
    }

    /// Does the work.
    pub async fn work<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, WorkError> {
        let permit = match self {
            Self::Here => return Ok(work()),
            Self::Away(permit) => permit,
        };
        // The work keeps the permit: it runs to its end even if the client disconnects.
        let work = move || {
            let _permit = permit;
            work()
        };
        spawn_blocking(work).await.map_err(|error| WorkError::failed(&error))
    }
}
