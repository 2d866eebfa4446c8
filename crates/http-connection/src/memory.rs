//! The memory for large answers. A client can be slow to take its answer, and there can be many of them: so large answers
//! count against a budget for as long as their bytes are held, by a connection or by the cache, and when it is used up
//! the next one has to wait. Small answers are not counted: connections are, and that is bound enough.
//!
//! How large an answer becomes is known only when it is made: a byte of mail can become a dozen of JSON. Therefore it is
//! made first, where little else happens at the same time. When there is no room for it then, it is thrown away, its
//! length waits for room, and it is made again. So nothing but numbers ever waits.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Up to so many bytes an answer is small.
pub const SMALL_BYTES: usize = 256 * 1024;

/// What all large answers that are not remembered may take together.
const MAX_UNCACHED_BYTES: usize = 64 * 1024 * 1024;
/// The most that one answer counts for. As it is half of the whole, two answers can always be under way, however
/// large they are.
const MAX_COUNTED_BYTES: usize = MAX_UNCACHED_BYTES / 2;
/// How long an answer waits for room.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(5);

/// See the module's documentation. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ResponseBudget(Arc<Semaphore>);

/// Room for an answer; given back with the last of its bytes.
#[derive(Debug)]
pub struct ReservedMemory(Option<OwnedSemaphorePermit>);

/// What an answer may take: as much as there is, or what was waited for.
#[derive(Debug)]
pub enum MemoryPermit {
    /// What the budget has at the moment.
    OnDemand(ResponseBudget),
    /// This room, which an answer of its length needs.
    Reserved(ReservedMemory),
}

/// There is no room for an answer of this length at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverBudget(usize);

impl ResponseBudget {
    /// A budget beside a cache of so many bytes: what that remembers comes on top.
    pub fn with_cache_bytes(cache_bytes: usize) -> Self {
        let bytes = cache_bytes.saturating_add(MAX_UNCACHED_BYTES).min(Semaphore::MAX_PERMITS);
        Self(Arc::new(Semaphore::new(bytes)))
    }

    /// Waits a moment for room for an answer of this length.
    pub async fn reserve(&self, length: usize) -> Result<ReservedMemory, OverBudget> {
        match self.try_reserve(length) {
            Ok(room) => Ok(room),
            Err(excess) => self.reserve_for(excess).await,
        }
    }

    /// Waits a moment for room for an answer that had none.
    pub async fn reserve_for(&self, excess: OverBudget) -> Result<ReservedMemory, OverBudget> {
        let permit = self.0.clone().acquire_many_owned(permit_count(excess.0));
        // The semaphore is never closed, so it is always the time that is up.
        let Ok(Ok(permit)) = timeout(RESERVE_TIMEOUT, permit).await else { return Err(excess) };
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
    /// Takes these bytes into account, until the last reference to them is gone.
    pub fn charge(self, bytes: Bytes) -> Result<Bytes, OverBudget> {
        let room = match self {
            Self::OnDemand(budget) => budget.try_reserve(bytes.len())?,
            Self::Reserved(room) => room,
        };
        Ok(room.attach(bytes))
    }
}

impl ReservedMemory {
    /// The same bytes, which keep this room until the last reference to them is gone.
    pub fn attach(self, bytes: Bytes) -> Bytes {
        match self.0 {
            Some(permit) => Bytes::from_owner(TrackedBytes { bytes, _permit: permit }),
            None => bytes,
        }
    }
}

/// What an answer of this length counts for.
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

    fn answer(length: usize) -> Bytes {
        vec![b'x'; length].into()
    }

    fn cover(budget: &ResponseBudget, bytes: Bytes) -> Result<Bytes, OverBudget> {
        MemoryPermit::OnDemand(budget.clone()).charge(bytes)
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_count_until_the_last_reference_is_gone() {
        let budget = ResponseBudget::with_cache_bytes(0);
        let whole = cover(&budget, answer(1_000_000)).unwrap();
        let (copy, piece) = (whole.clone(), whole.slice(..1));
        for one in [whole, copy, piece] {
            assert_eq!(budget.0.available_permits(), MAX_UNCACHED_BYTES - 1_000_000);
            drop(one);
        }
        assert_eq!(budget.0.available_permits(), MAX_UNCACHED_BYTES);
    }

    #[tokio::test(start_paused = true)]
    async fn two_answers_go_however_large_and_the_third_waits() {
        let budget = ResponseBudget::with_cache_bytes(0);
        let first = budget.reserve(usize::MAX).await.unwrap();
        let second = cover(&budget, answer(MAX_COUNTED_BYTES + 1)).unwrap();
        assert_eq!(cover(&budget, answer(SMALL_BYTES + 1)).unwrap_err(), OverBudget(SMALL_BYTES + 1));
        assert_eq!(budget.reserve_for(OverBudget(SMALL_BYTES + 1)).await.unwrap_err(), OverBudget(SMALL_BYTES + 1));
        assert!(cover(&budget, answer(SMALL_BYTES)).is_ok(), "a small one goes always");

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
    async fn a_full_cache_leaves_the_whole_budget() {
        let budget = ResponseBudget::with_cache_bytes(4_000_000);
        let remembered: Vec<_> = (0..4).map(|_| cover(&budget, answer(1_000_000)).unwrap()).collect();
        assert_eq!(budget.0.available_permits(), MAX_UNCACHED_BYTES);
        drop(remembered);
    }
}
