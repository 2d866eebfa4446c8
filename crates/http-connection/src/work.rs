//! Permits for expensive work, such as parsing large messages. It runs on blocking threads, so that it does not delay
//! the network threads.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// The time to wait for a permit. A client that tries again later does not wait longer in total, and holds nothing in
/// the meantime.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// The reason why work was not done.
#[derive(Debug)]
pub enum WorkError {
    /// No permit became available in time.
    NoPermit,
    /// The work panicked or was cancelled.
    Failed(String),
}

/// The permission to do work now: on the current thread if it is quick, otherwise on a blocking thread.
pub enum WorkPermit {
    /// Run on the current network thread.
    Inline,
    /// Run on a blocking thread. The permit is held until the work is done.
    Blocking(OwnedSemaphorePermit),
}

impl WorkPermit {
    /// Acquires a permit from this semaphore. Waits up to ten seconds.
    pub async fn acquire(permits: &Arc<Semaphore>) -> Result<Self, WorkError> {
        timeout(PERMIT_TIMEOUT, Self::acquire_without_timeout(permits)).await.unwrap_or(Err(WorkError::NoPermit))
    }

    /// Acquires a permit from this semaphore. Waits without a timeout.
    pub async fn acquire_without_timeout(permits: &Arc<Semaphore>) -> Result<Self, WorkError> {
        permits.clone().acquire_owned().await.map(Self::Blocking).map_err(|error| WorkError::Failed(error.to_string()))
    }

    /// Does the work.
    pub async fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, WorkError> {
        let permit = match self {
            Self::Inline => return Ok(work()),
            Self::Blocking(permit) => permit,
        };
        let result = Arc::new(Mutex::new(None));
        let result_of_work = result.clone();
        // The work holds the permit, because it runs to completion even if the client disconnects.
        let work = move || {
            let _permit = permit;
            *result_of_work.lock() = Some(work());
        };
        run_boxed(Box::new(work)).await?;
        let result = result.lock().take();
        result.ok_or_else(|| WorkError::Failed("the work has no result".to_owned()))
    }
}

/// Does work on a blocking thread. It takes no type parameters, so that the task is compiled once.
async fn run_boxed(work: Box<dyn FnOnce() + Send>) -> Result<(), WorkError> {
    spawn_blocking(work).await.map_err(|error| WorkError::Failed(error.to_string()))
}
