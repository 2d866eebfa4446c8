//! Work that is under way at the same time and keeps its order: everything is begun, and handed back, in the order in
//! which it was added. The store commits many appends at once, but gives ids in the order in which it meets them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Futures under way.
pub(super) struct Flight<T> {
    slots: VecDeque<Slot<T>>,
}

enum Slot<T> {
    UnderWay(Pin<Box<dyn Future<Output = T> + Send>>),
    Done(T),
}

impl<T> Flight<T> {
    pub(super) fn new() -> Self {
        Self { slots: VecDeque::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Begins something: when this returns it has been polled, after everything that was added before.
    pub(super) async fn add(&mut self, work: impl Future<Output = T> + Send + 'static) {
        self.slots.push_back(Slot::UnderWay(Box::pin(work)));
        poll_fn(|context| {
            self.poll_all(context);
            Poll::Ready(())
        })
        .await;
    }

    /// Waits for the oldest to end; none when nothing is under way.
    pub(super) async fn next(&mut self) -> Option<T> {
        poll_fn(|context| {
            self.poll_all(context);
            match self.slots.front() {
                Some(Slot::UnderWay(_)) => Poll::Pending,
                Some(Slot::Done(_)) | None => Poll::Ready(()),
            }
        })
        .await;
        match self.slots.pop_front()? {
            Slot::Done(result) => Some(result),
            Slot::UnderWay(work) => Some(work.await),
        }
    }

    /// All of them, because each may need to be polled before those behind it can go on; there are only a few.
    fn poll_all(&mut self, context: &mut Context<'_>) {
        for slot in &mut self.slots {
            if let Slot::UnderWay(work) = slot
                && let Poll::Ready(result) = work.as_mut().poll(context)
            {
                *slot = Slot::Done(result);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test]
    async fn work_begins_and_ends_in_order() {
        let begun = Arc::new(Mutex::new(Vec::new()));
        let mut flight = Flight::new();
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
