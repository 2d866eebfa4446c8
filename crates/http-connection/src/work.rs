//! Permits for expensive work. It runs on threads of its own, so that it does not delay the network threads.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How long is waited for a turn at it. Who comes again later waits no longer, and holds nothing meanwhile.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why work was not done.
#[derive(Debug)]
pub enum WorkError {
    /// No permit became available in time.
    NoPermit,
    /// The work panicked or was cancelled.
    Failed(String),
}

impl WorkError {
    fn failed(error: &dyn Display) -> Self {
        Self::Failed(error.to_string())
    }
}

/// The right to work on something now: here when that is quick, otherwise away from the network threads.
pub enum WorkPermit {
    /// On the network thread.
    Inline,
    /// On a thread of its own, with a permit.
    Blocking(OwnedSemaphorePermit),
}

impl WorkPermit {
    /// Waits a while for the turn to do heavy work, of those that this semaphore has.
    pub async fn acquire(turns: &Arc<Semaphore>) -> Result<Self, WorkError> {
        timeout(PERMIT_TIMEOUT, Self::acquire_without_timeout(turns)).await.unwrap_or(Err(WorkError::NoPermit))
    }

    /// Waits for such a turn, however long it takes.
    pub async fn acquire_without_timeout(turns: &Arc<Semaphore>) -> Result<Self, WorkError> {
        turns.clone().acquire_owned().await.map(Self::Blocking).map_err(|error| WorkError::failed(&error))
    }

    /// Does the work.
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, WorkError> {
        let permit = match self {
            Self::Inline => return Ok(work()),
            Self::Blocking(permit) => permit,
        };
        // The work keeps the permit: it runs to its end even if the client disconnects.
        let work = move || {
            let _permit = permit;
            work()
        };
        spawn_blocking(work).await.map_err(|error| WorkError::failed(&error))
    }
}
