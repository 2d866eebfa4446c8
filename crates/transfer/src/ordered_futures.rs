//! Work that is under way at the same time and keeps its order: everything is begun, and handed back, in the order in
//! which it was added. The store commits many appends at once, but gives ids in the order in which it meets them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Futures under way.
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

    /// Begins something: when this returns it has been polled, after everything that was added before.
    pub(super) async fn add(&mut self, work: impl Future<Output = T> + Send + 'static) {
        let mut slot = Slot::Pending(Box::pin(work));
        poll_fn(|context| {
            slot.poll(context);
            Poll::Ready(())
        })
        .await;
        self.slots.push_back(slot);
    }

    /// Waits for the oldest to end; none when nothing is under way. Nothing is lost when the wait is given up.
    pub(super) async fn next(&mut self) -> Option<T> {
        poll_fn(|context| {
            if let Some(Slot::Pending(_)) = self.slots.front() {
                self.poll_all(context);
            }
            match self.slots.pop_front() {
                Some(Slot::Done(result)) => Poll::Ready(Some(result)),
                Some(under_way) => {
                    self.slots.push_front(under_way);
                    Poll::Pending
                }
                None => Poll::Ready(None),
            }
        })
        .await
    }

    /// All of them and in order, because each may need to be polled before those behind it can go on.
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
        let begun = Arc::new(Mutex::new(Vec::new()));
        let mut flight = OrderedFutures::new();
        for number in 0..10_u32 {
            let begun = begun.clone();
            flight
                .add(async move {
                    begun.lock().unwrap().push(number);
                    // Later ones need fewer turns, and would overtake if they could.
                    for _ in number..10 {
                        tokio::task::yield_now().await;
                    }
                    number
                })
                .await;
        }
        assert_eq!(*begun.lock().unwrap(), (0..10).collect::<Vec<_>>());
        for number in 0..10 {
            assert_eq!(flight.next().await, Some(number));
        }
        assert_eq!(flight.next().await, None);
    }
}
