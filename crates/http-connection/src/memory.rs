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
pub const SMALL: usize = 256 * 1024;

/// What all large answers that are not remembered may take together.
const UNDER_WAY: usize = 64 * 1024 * 1024;
/// The most that one answer counts for. As it is half of the whole, two answers can always be under way, however
/// large they are.
const MOST: usize = UNDER_WAY / 2;
/// How long an answer waits for room.
const WAIT: Duration = Duration::from_secs(5);

/// See the module's documentation. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Semaphore>);

/// Room for an answer; given back with the last of its bytes.
#[derive(Debug)]
pub struct Room(Option<OwnedSemaphorePermit>);

/// What an answer may take: as much as there is, or what was waited for.
#[derive(Debug)]
pub enum Allowance {
    /// What the budget has at the moment.
    Rest(Budget),
    /// This room, which an answer of its length needs.
    Granted(Room),
}

/// There is no room for an answer of this length at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess(usize);

impl Budget {
    /// A budget beside a cache of so many bytes: what that remembers comes on top.
    pub fn beside_cache(cache_bytes: usize) -> Self {
        let bytes = cache_bytes.saturating_add(UNDER_WAY).min(Semaphore::MAX_PERMITS);
        Self(Arc::new(Semaphore::new(bytes)))
    }

    /// Waits a moment for room for an answer of this length.
    pub async fn room(&self, length: usize) -> Result<Room, Excess> {
        match self.room_now(length) {
            Ok(room) => Ok(room),
            Err(excess) => self.room_for(excess).await,
        }
    }

    /// Waits a moment for room for an answer that had none.
    pub async fn room_for(&self, excess: Excess) -> Result<Room, Excess> {
        let permit = self.0.clone().acquire_many_owned(permits(excess.0));
        // The semaphore is never closed, so it is always the time that is up.
        let Ok(Ok(permit)) = timeout(WAIT, permit).await else { return Err(excess) };
        Ok(Room(Some(permit)))
    }

    fn room_now(&self, length: usize) -> Result<Room, Excess> {
        if length <= SMALL {
            return Ok(Room(None));
        }
        let permit = self.0.clone().try_acquire_many_owned(permits(length)).map_err(|_| Excess(length))?;
        Ok(Room(Some(permit)))
    }
}

impl Allowance {
    /// Takes these bytes into account, until the last reference to them is gone.
    pub fn cover(self, bytes: Bytes) -> Result<Bytes, Excess> {
        let room = match self {
            Self::Rest(budget) => budget.room_now(bytes.len())?,
            Self::Granted(room) => room,
        };
        Ok(room.hold(bytes))
    }
}

impl Room {
    /// The same bytes, which keep this room until the last reference to them is gone.
    pub fn hold(self, bytes: Bytes) -> Bytes {
        match self.0 {
            Some(permit) => Bytes::from_owner(Held { bytes, _permit: permit }),
            None => bytes,
        }
    }
}

/// What an answer of this length counts for.
fn permits(length: usize) -> u32 {
    u32::try_from(length.min(MOST)).unwrap_or(u32::MAX)
}

struct Held {
    bytes: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
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

    fn cover(budget: &Budget, bytes: Bytes) -> Result<Bytes, Excess> {
        Allowance::Rest(budget.clone()).cover(bytes)
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_count_until_the_last_reference_is_gone() {
        let budget = Budget::beside_cache(0);
        let whole = cover(&budget, answer(1_000_000)).unwrap();
        let (copy, piece) = (whole.clone(), whole.slice(..1));
        for one in [whole, copy, piece] {
            assert_eq!(budget.0.available_permits(), UNDER_WAY - 1_000_000);
            drop(one);
        }
        assert_eq!(budget.0.available_permits(), UNDER_WAY);
    }

    #[tokio::test(start_paused = true)]
    async fn two_answers_go_however_large_and_the_third_waits() {
        let budget = Budget::beside_cache(0);
        let first = budget.room(usize::MAX).await.unwrap();
        let second = cover(&budget, answer(MOST + 1)).unwrap();
        assert_eq!(cover(&budget, answer(SMALL + 1)).unwrap_err(), Excess(SMALL + 1));
        assert_eq!(budget.room_for(Excess(SMALL + 1)).await.unwrap_err(), Excess(SMALL + 1));
        assert!(cover(&budget, answer(SMALL)).is_ok(), "a small one goes always");

        let waiting = {
            let budget = budget.clone();
            tokio::spawn(async move { budget.room(MOST).await })
        };
        tokio::task::yield_now().await;
        drop(first);
        let third = waiting.await.unwrap().unwrap();
        assert_eq!(budget.0.available_permits(), 0);
        drop((second, third));
        assert_eq!(budget.0.available_permits(), UNDER_WAY);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_cache_leaves_the_whole_budget() {
        let budget = Budget::beside_cache(4_000_000);
        let remembered: Vec<_> = (0..4).map(|_| cover(&budget, answer(1_000_000)).unwrap()).collect();
        assert_eq!(budget.0.available_permits(), UNDER_WAY);
        drop(remembered);
    }
}
