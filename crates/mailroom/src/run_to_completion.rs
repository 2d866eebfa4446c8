//! A change of the store and its announcement run to their end, whoever stops listening.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use restante_store::{Result, StoreError};
use tokio::runtime::Handle;

/// A caller may leave at any moment, as a client that disconnects does, and a store that was asked by then changes all the
/// same; nobody would be told. So when the caller leaves, what is left to do gets a task of its own. As long as the caller
/// stays, it costs none.
pub(crate) fn run_to_completion<C: StoreOperation>(change: C) -> RunToCompletion<C> {
    RunToCompletion { operation: Some(Box::pin(change)), is_started: false }
}

/// What can be run to its end.
pub(crate) trait StoreOperation: Future<Output = Result<Self::Value>> + Send + 'static {
    type Value: Send + 'static;
}

impl<A: Send + 'static, C: Future<Output = Result<A>> + Send + 'static> StoreOperation for C {
    type Value = A;
}

/// See [`to_the_end`].
pub(crate) struct RunToCompletion<C: StoreOperation> {
    /// None when it has ended.
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
        // A panic is a failure of this change, as it is in a task, and not the end of the session that asked for it.
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

/// The failure of a change that ended in the middle.
pub(crate) fn incomplete_error(cause: impl Display) -> StoreError {
    StoreError::Broken(format!("a change did not come to its end: {cause}"))
}
