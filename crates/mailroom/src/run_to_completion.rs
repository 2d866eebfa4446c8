//! Runs a change of the store and its publication to completion, even if the caller is cancelled.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use restante_store::{Result, StoreError};
use tokio::runtime::Handle;

/// Wraps a store operation so that it completes once it was polled. A caller can be cancelled at any time, for example
/// because its client disconnects. The store would still make the change, but its event would not be published. If the
/// returned future is dropped after it started, the rest of the operation is moved to a new task. While the caller
/// keeps polling, there is no extra task.
pub(crate) fn run_to_completion<T: Send + 'static>(
    operation: impl Future<Output = Result<T>> + Send + 'static,
) -> RunToCompletion<T> {
    RunToCompletion { operation: Some(Box::pin(operation)), is_started: false }
}

/// The future returned by [`run_to_completion`]. Its type does not depend on the type of the operation, so that the code of its task is
/// generated once for each type of result.
pub(crate) struct RunToCompletion<T: Send + 'static> {
    /// `None` after it completed.
    operation: Option<Pin<Box<dyn Future<Output = Result<T>> + Send>>>,
    is_started: bool,
}

impl<T: Send + 'static> Future for RunToCompletion<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.is_started = true;
        let Some(operation) = &mut self.operation else {
            return Poll::Ready(Err(incomplete_error("polled after completion")));
        };
        // A panic fails only this operation, as it would in a task, and not the session that started it.
        let result = match catch_unwind(AssertUnwindSafe(|| operation.as_mut().poll(context))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(result)) => result,
            Err(_) => Err(incomplete_error("it panicked")),
        };
        self.operation = None;
        Poll::Ready(result)
    }
}

impl<T: Send + 'static> Drop for RunToCompletion<T> {
    fn drop(&mut self) {
        if let Some(operation) = self.operation.take().filter(|_| self.is_started)
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(operation);
        }
    }
}

/// Returns the error of an operation that did not complete.
pub(crate) fn incomplete_error(cause: impl Display) -> StoreError {
    StoreError::Broken(format!("store operation did not complete: {cause}"))
}
