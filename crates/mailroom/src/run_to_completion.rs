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
pub(crate) fn run_to_completion<C: StoreOperation>(change: C) -> RunToCompletion<C> {
    RunToCompletion { operation: Some(Box::pin(change)), is_started: false }
}

/// A future that changes the store. Implemented for all suitable futures.
pub(crate) trait StoreOperation: Future<Output = Result<Self::Value>> + Send + 'static {
    type Value: Send + 'static;
}

impl<A: Send + 'static, C: Future<Output = Result<A>> + Send + 'static> StoreOperation for C {
    type Value = A;
}

/// The future returned by [`run_to_completion`].
pub(crate) struct RunToCompletion<C: StoreOperation> {
    /// `None` after it completed.
    operation: Option<Pin<Box<C>>>,
    is_started: bool,
}

impl<C: StoreOperation> Future for RunToCompletion<C> {
    type Output = Result<C::Value>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.is_started = true;
        let Some(change) = &mut self.operation else {
            return Poll::Ready(Err(incomplete_error("it has ended already")));
        };
        // A panic fails only this operation, as it would in a task, and not the session that started it.
        let ended = match catch_unwind(AssertUnwindSafe(|| change.as_mut().poll(context))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(ended)) => ended,
            Err(_) => Err(incomplete_error("it panicked")),
        };
        self.operation = None;
        Poll::Ready(ended)
    }
}

impl<C: StoreOperation> Drop for RunToCompletion<C> {
    fn drop(&mut self) {
        if let Some(change) = self.operation.take().filter(|_| self.is_started)
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(change);
        }
    }
}

/// Returns the error of an operation that did not complete.
pub(crate) fn incomplete_error(cause: impl Display) -> StoreError {
    StoreError::Broken(format!("a change did not come to its end: {cause}"))
}
