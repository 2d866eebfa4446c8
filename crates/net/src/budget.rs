//! A memory budget for messages in transfer, shared by all connections of a protocol. If it is used up, the next
//! connection waits.
//!
//! A connection that waits for more may already hold a part, so plain waiting could deadlock. Therefore one connection
//! at a time may exceed the budget: it finishes its message, releases its memory, and the next one continues. The total
//! stays below the budget plus one message.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit of reservation. Reserving every few bytes would be too expensive.
const STEP_BYTES: usize = 64 * 1024;

/// The memory that all messages in transfer may use together.
#[derive(Debug)]
pub struct Budget {
    steps: Arc<Semaphore>,
    overdraft: Arc<Semaphore>,
}

/// The memory reserved by one connection. It is released on drop.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    steps: Option<OwnedSemaphorePermit>,
    overdraft: Option<OwnedSemaphorePermit>,
}

impl Budget {
    /// Creates a budget of this many bytes.
    pub fn new(bytes: usize) -> Arc<Self> {
        let steps = (bytes / STEP_BYTES).clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Self { steps: Arc::new(Semaphore::new(steps)), overdraft: Arc::new(Semaphore::new(1)) })
    }

    /// Returns an empty reservation.
    pub fn reservation(self: &Arc<Self>) -> Reservation {
        Reservation { budget: self.clone(), steps: None, overdraft: None }
    }
}

impl Reservation {
    /// Waits until this connection may hold `bytes` bytes. Zero releases everything.
    pub async fn adjust_to(&mut self, bytes: usize) {
        if bytes == 0 {
            self.steps = None;
            self.overdraft = None;
            return;
        }
        let held = self.steps.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = bytes.div_ceil(STEP_BYTES).saturating_sub(held);
        if missing == 0 || self.overdraft.is_some() {
            return;
        }
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        // The semaphores are never closed, so acquiring cannot fail.
        tokio::select! {
            biased;
            Ok(more) = self.budget.steps.clone().acquire_many_owned(missing) => match &mut self.steps {
                Some(steps) => steps.merge(more),
                none => *none = Some(more),
            },
            Ok(overdraft) = self.budget.overdraft.clone().acquire_owned() => self.overdraft = Some(overdraft),
            else => {}
        }
    }

    /// Releases what exceeds `bytes` bytes. Does not wait. A connection that exceeds the budget no longer does so if the
    /// rest is available.
    pub fn shrink_to(&mut self, bytes: usize) {
        let needed = bytes.div_ceil(STEP_BYTES);
        if let Some(steps) = &mut self.steps {
            drop(steps.split(steps.num_permits().saturating_sub(needed)));
        }
        if self.overdraft.is_some() {
            let held = self.steps.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            let missing = u32::try_from(needed - held).unwrap_or(u32::MAX);
            let Ok(more) = self.budget.steps.clone().try_acquire_many_owned(missing) else { return };
            match &mut self.steps {
                Some(steps) => steps.merge(more),
                none => *none = Some(more),
            }
            self.overdraft = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn full_budget_waits_until_memory_is_released() {
        let budget = Budget::new(4 * STEP_BYTES);
        let (mut first, mut second, mut third) = (budget.reservation(), budget.reservation(), budget.reservation());
        first.adjust_to(4 * STEP_BYTES).await;
        second.adjust_to(STEP_BYTES).await;
        assert!(second.overdraft.is_some(), "one reservation may exceed the budget");
        assert!(timeout(SOON, third.adjust_to(STEP_BYTES)).await.is_err(), "a second one may not");
        first.adjust_to(0).await;
        timeout(LONG, third.adjust_to(STEP_BYTES)).await.unwrap();
        assert!(third.overdraft.is_none());
    }

    #[tokio::test]
    async fn reservation_can_shrink() {
        let budget = Budget::new(4 * STEP_BYTES);
        let mut reservation = budget.reservation();
        reservation.shrink_to(0);
        reservation.adjust_to(3 * STEP_BYTES).await;
        for (bytes, available) in [(4 * STEP_BYTES, 1), (STEP_BYTES + 1, 2), (STEP_BYTES + 1, 2), (0, 4)] {
            reservation.shrink_to(bytes);
            assert_eq!(budget.steps.available_permits(), available, "{bytes}");
        }
    }

    #[tokio::test]
    async fn connection_that_needs_less_no_longer_exceeds_the_budget() {
        let budget = Budget::new(2 * STEP_BYTES);
        let (mut first, mut second) = (budget.reservation(), budget.reservation());
        first.adjust_to(2 * STEP_BYTES).await;
        second.adjust_to(2 * STEP_BYTES).await;
        // The second one exceeds the budget until its rest is available.
        second.shrink_to(STEP_BYTES);
        assert_eq!((budget.overdraft.available_permits(), budget.steps.available_permits()), (0, 0));
        first.shrink_to(STEP_BYTES);
        second.shrink_to(STEP_BYTES);
        assert_eq!((budget.overdraft.available_permits(), budget.steps.available_permits()), (1, 0));
        first.adjust_to(2 * STEP_BYTES).await;
        first.shrink_to(0);
        assert_eq!((budget.overdraft.available_permits(), budget.steps.available_permits()), (1, 1));
    }

    #[tokio::test]
    async fn connections_that_hold_memory_and_need_more_do_not_deadlock() {
        let budget = Budget::new(8 * STEP_BYTES);
        let mut tasks = Vec::new();
        for _ in 0..8 {
            let mut reservation = budget.reservation();
            tasks.push(tokio::spawn(async move {
                for steps in 1..=8 {
                    reservation.adjust_to(steps * STEP_BYTES).await;
                    tokio::task::yield_now().await;
                }
            }));
        }
        for task in tasks {
            timeout(LONG, task).await.unwrap().unwrap();
        }
        assert_eq!(budget.steps.available_permits(), 8);
    }
}
