//! A memory budget for large responses. Clients can be slow to read, and there can be many of them. Therefore large
//! responses count against a budget while a connection or the cache holds their bytes. When the budget is used up,
//! further responses wait. Small responses are not counted: the limit on connections limits them sufficiently.
//!
//! The size of a response is known only after it was rendered: one byte of a message can become a dozen bytes of JSON.
//! Therefore it is rendered first, with a work permit, which limits the number of concurrent renderings. If the budget
//! has no memory left for the response, it is discarded, the request waits until memory of the same length is reserved,
//! and the response is rendered again. So no data is held while waiting.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Data up to this size is small: it is not counted, and it is processed on the network threads.
pub const SMALL_BYTES: usize = 256 * 1024;

/// The memory for all large responses together, in addition to the cache.
const MAX_UNCACHED_BYTES: usize = 64 * 1024 * 1024;
/// The maximum that one response counts for. It is half of the budget, so two responses of any size can always be sent
/// at the same time.
const MAX_COUNTED_BYTES: usize = MAX_UNCACHED_BYTES / 2;
/// The time that a response waits for memory.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The memory budget for large responses. See the module documentation. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ResponseBudget(Arc<Semaphore>);

/// Memory reserved for one response. It is released together with the last reference to the bytes of the response.
#[derive(Debug)]
pub struct ReservedMemory(Option<OwnedSemaphorePermit>);

/// The memory that a response may use.
#[derive(Debug)]
pub enum MemoryPermit {
    /// Memory is reserved after the response was rendered, without waiting.
    OnDemand(ResponseBudget),
    /// Memory that was reserved for a response of this length.
    Reserved(ReservedMemory),
}

/// The budget has no memory left for a response of this length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverBudget(usize);

impl ResponseBudget {
    /// Creates a budget. The bytes of the cache are added, because cached responses count too.
    pub fn with_cache_bytes(cache_bytes: usize) -> Self {
        let bytes = cache_bytes.saturating_add(MAX_UNCACHED_BYTES).min(Semaphore::MAX_PERMITS);
        Self(Arc::new(Semaphore::new(bytes)))
    }

    /// Reserves memory for a response of this length. Waits up to five seconds.
    pub async fn reserve(&self, length: usize) -> Result<ReservedMemory, OverBudget> {
        match self.try_reserve(length) {
            Ok(reserved) => Ok(reserved),
            Err(over_budget) => self.reserve_for(over_budget).await,
        }
    }

    /// Reserves memory for a response that was over budget. Waits up to five seconds.
    pub async fn reserve_for(&self, over_budget: OverBudget) -> Result<ReservedMemory, OverBudget> {
        let permit = self.0.clone().acquire_many_owned(permit_count(over_budget.0));
        // The semaphore is never closed, so an error means that the timeout has passed.
        let Ok(Ok(permit)) = timeout(RESERVE_TIMEOUT, permit).await else { return Err(over_budget) };
        Ok(ReservedMemory(Some(permit)))
    }

    fn try_reserve(&self, length: usize) -> Result<ReservedMemory, OverBudget> {
        if length <= SMALL_BYTES {
            return Ok(ReservedMemory(None));
        }
        let permit = self.0.clone().try_acquire_many_owned(permit_count(length)).map_err(|_| OverBudget(length))?;
        Ok(ReservedMemory(Some(permit)))
    }
}

impl MemoryPermit {
    /// Counts these bytes against the budget until the last reference to them is dropped.
    pub fn charge(self, bytes: Bytes) -> Result<Bytes, OverBudget> {
        Ok(self.reserve(bytes.len())?.attach(bytes))
    }

    /// Reserves memory for a response whose length is known before it is rendered. Does not wait.
    pub fn reserve(self, length: usize) -> Result<ReservedMemory, OverBudget> {
        match self {
            Self::OnDemand(budget) => budget.try_reserve(length),
            Self::Reserved(reserved) => Ok(reserved),
        }
    }
}

impl ReservedMemory {
    /// Returns the same bytes, which keep the reservation until the last reference to them is dropped.
    pub fn attach(self, bytes: Bytes) -> Bytes {
        match self.0 {
            Some(permit) => Bytes::from_owner(TrackedBytes { bytes, _permit: permit }),
            None => bytes,
        }
    }
}

/// Returns the number of bytes that a response of this length counts for.
fn permit_count(length: usize) -> u32 {
    u32::try_from(length.min(MAX_COUNTED_BYTES)).unwrap_or(u32::MAX)
}

struct TrackedBytes {
    bytes: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for TrackedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(length: usize) -> Bytes {
        vec![b'x'; length].into()
    }

    fn charge(budget: &ResponseBudget, bytes: Bytes) -> Result<Bytes, OverBudget> {
        MemoryPermit::OnDemand(budget.clone()).charge(bytes)
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_count_until_last_reference_is_dropped() {
        let budget = ResponseBudget::with_cache_bytes(0);
        let whole = charge(&budget, response(1_000_000)).unwrap();
        let (copy, slice) = (whole.clone(), whole.slice(..1));
        for bytes in [whole, copy, slice] {
            assert_eq!(budget.0.available_permits(), MAX_UNCACHED_BYTES - 1_000_000);
            drop(bytes);
        }
        assert_eq!(budget.0.available_permits(), MAX_UNCACHED_BYTES);
    }

    #[tokio::test(start_paused = true)]
    async fn two_huge_responses_fit_and_third_waits() {
        let budget = ResponseBudget::with_cache_bytes(0);
        let first = budget.reserve(usize::MAX).await.unwrap();
        let second = charge(&budget, response(MAX_COUNTED_BYTES + 1)).unwrap();
        assert_eq!(charge(&budget, response(SMALL_BYTES + 1)).unwrap_err(), OverBudget(SMALL_BYTES + 1));
        assert_eq!(budget.reserve_for(OverBudget(SMALL_BYTES + 1)).await.unwrap_err(), OverBudget(SMALL_BYTES + 1));
        assert!(charge(&budget, response(SMALL_BYTES)).is_ok(), "small responses are not counted");

        let waiting = {
            let budget = budget.clone();
            tokio::spawn(async move { budget.reserve(MAX_COUNTED_BYTES).await })
        };
        tokio::task::yield_now().await;
        drop(first);
        let third = waiting.await.unwrap().unwrap();
        assert_eq!(budget.0.available_permits(), 0);
        drop((second, third));
        assert_eq!(budget.0.available_permits(), MAX_UNCACHED_BYTES);
    }

    #[tokio::test(start_paused = true)]
    async fn full_cache_leaves_whole_budget() {
        let budget = ResponseBudget::with_cache_bytes(4_000_000);
        let cached: Vec<_> = (0..4).map(|_| charge(&budget, response(1_000_000)).unwrap()).collect();
        assert_eq!(budget.0.available_permits(), MAX_UNCACHED_BYTES);
        drop(cached);
    }
}
