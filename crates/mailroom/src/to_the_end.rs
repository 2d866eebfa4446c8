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
pub(crate) fn to_the_end<C: Change>(change: C) -> ToTheEnd<C> {
    ToTheEnd { change: Some(Box::pin(change)), begun: false }
}

/// What can be run to its end.
pub(crate) trait Change: Future<Output = Result<Self::Answer>> + Send + 'static {
    type Answer: Send + 'static;
}

impl<A: Send + 'static, C: Future<Output = Result<A>> + Send + 'static> Change for C {
    type Answer = A;
}

/// See [`to_the_end`].
pub(crate) struct ToTheEnd<C: Change> {
    /// None when it has ended.
    change: Option<Pin<Box<C>>>,
    begun: bool,
}

impl<C: Change> Future for ToTheEnd<C> {
    type Output = Result<C::Answer>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.begun = true;
        let Some(change) = &mut self.change else { return Poll::Ready(Err(unfinished("it has ended already"))) };
        // A panic is a failure of this change, as it is in a task, and not the end of the session that asked for it.
        let ended = match catch_unwind(AssertUnwindSafe(|| change.as_mut().poll(context))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(ended)) => ended,
            Err(_) => Err(unfinished("it panicked")),
        };
        self.change = None;
        Poll::Ready(ended)
    }
}

impl<C: Change> Drop for ToTheEnd<C> {
    fn drop(&mut self) {
        if let Some(change) = self.change.take().filter(|_| self.begun)
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(change);
        }
    }
}

/// The failure of a change that ended in the middle.
pub(crate) fn unfinished(cause: impl Display) -> StoreError {
    StoreError::Broken(format!("a change did not come to its end: {cause}"))
}
