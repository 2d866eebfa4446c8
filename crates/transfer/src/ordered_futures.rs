//! Concurrent futures that keep their order: they are first polled, and their results returned, in the order in which
//! they were added. The store commits many appends at once, but assigns ids in the order in which it receives them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A queue of concurrent futures.
pub(super) struct OrderedFutures<T> {
    slots: VecDeque<Slot<T>>,
}

enum Slot<T> {
    Pending(Pin<Box<dyn Future<Output = T> + Send>>),
    Done(T),
}

impl<T> OrderedFutures<T> {
    pub(super) fn new() -> Self {
        Self { slots: VecDeque::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Adds a future and polls it once, after all futures that were added before.
    pub(super) async fn add(&mut self, work: impl Future<Output = T> + Send + 'static) {
        let mut slot = Slot::Pending(Box::pin(work));
        poll_fn(|context| {
            slot.poll(context);
            Poll::Ready(())
        })
        .await;
        self.slots.push_back(slot);
    }

    /// Waits for the oldest future. Returns `None` if the queue is empty. Cancel-safe: no result is lost.
    pub(super) async fn next(&mut self) -> Option<T> {
        poll_fn(|context| {
            if let Some(Slot::Pending(_)) = self.slots.front() {
                self.poll_all(context);
            }
            match self.slots.pop_front() {
                Some(Slot::Done(result)) => Poll::Ready(Some(result)),
                Some(pending) => {
                    self.slots.push_front(pending);
                    Poll::Pending
                }
                None => Poll::Ready(None),
            }
        })
        .await
    }

    /// Polls all futures in order: a future may need to be polled before later ones can continue.
    fn poll_all(&mut self, context: &mut Context<'_>) {
        self.slots.iter_mut().for_each(|slot| slot.poll(context));
    }
}

impl<T> Slot<T> {
    fn poll(&mut self, context: &mut Context<'_>) {
        if let Self::Pending(work) = self
            && let Poll::Ready(result) = work.as_mut().poll(context)
        {
            *self = Self::Done(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test]
    async fn polls_and_returns_futures_in_order() {
        let started = Arc::new(Mutex::new(Vec::new()));
        let mut futures = OrderedFutures::new();
        for number in 0..10_u32 {
            let started = started.clone();
            futures
                .add(async move {
                    started.lock().unwrap().push(number);
                    // Later futures need fewer polls, and would complete first without the order.
                    for _ in number..10 {
                        tokio::task::yield_now().await;
                    }
                    number
                })
                .await;
        }
        assert_eq!(*started.lock().unwrap(), (0..10).collect::<Vec<_>>());
        for number in 0..10 {
            assert_eq!(futures.next().await, Some(number));
        }
        assert_eq!(futures.next().await, None);
    }
}
