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
pub(crate) fn run_to_completion<T, O>(operation: O) -> RunToCompletion<O>
where
    T: Send + 'static,
    O: Future<Output = Result<T>> + Send + 'static,
{
    RunToCompletion { operation: Some(Box::pin(operation)), is_started: false }
}

/// The future returned by [`run_to_completion`].
pub(crate) struct RunToCompletion<O: Future<Output: Send> + Send + 'static> {
    /// `None` after it completed.
    operation: Option<Pin<Box<O>>>,
    is_started: bool,
}

impl<T: Send, O: Future<Output = Result<T>> + Send + 'static> Future for RunToCompletion<O> {
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

impl<O: Future<Output: Send> + Send + 'static> Drop for RunToCompletion<O> {
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
