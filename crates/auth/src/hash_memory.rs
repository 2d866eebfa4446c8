//! The memory of Argon2: some tens of megabytes for each password that is being verified. Buffers are reused by all
//! threads, because the allocator keeps freed memory separately for each thread.

use std::sync::Arc;

use argon2::Block;
use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The maximum size of a buffer that is kept, in blocks of 1 KiB. The allocator of glibc returns larger ones to the system.
const MAX_KEPT_BLOCKS: usize = 32 * 1024;

/// The memory for one password at a time.
#[derive(Default)]
pub(crate) struct HashMemory(Vec<Block>);

impl HashMemory {
    /// Returns at least `count` blocks, with any content.
    pub(crate) fn blocks(&mut self, count: usize) -> &mut [Block] {
        if self.0.len() < count {
            // The old buffer is freed first.
            self.0 = Vec::new();
            self.0 = vec![Block::new(); count];
        }
        &mut self.0
    }
}

/// Limits the number of passwords that are verified at the same time, and keeps the memory of each.
pub(crate) struct HashMemoryPool {
    permits: Arc<Semaphore>,
    /// The buffers that are not in use. There are at most as many as permits.
    kept: Mutex<Vec<HashMemory>>,
}

/// Memory of a pool, which gets it back on drop.
pub(crate) struct PooledMemory {
    /// The memory.
    pub(crate) memory: HashMemory,
    pool: Arc<HashMemoryPool>,
    /// Released after the memory was given back, so that the next password reuses it.
    _permit: OwnedSemaphorePermit,
}

impl HashMemoryPool {
    /// Creates a pool for this number of passwords at the same time.
    pub(crate) fn new(max_concurrent: usize) -> Arc<Self> {
        Arc::new(Self { permits: Arc::new(Semaphore::new(max_concurrent)), kept: Mutex::default() })
    }

    /// Waits until a password can be verified. Returns memory for it, which is allocated when it is used.
    pub(crate) async fn acquire(self: Arc<Self>) -> Result<PooledMemory, AcquireError> {
        let permit = self.permits.clone().acquire_owned().await?;
        let memory = self.kept.lock().pop().unwrap_or_default();
        Ok(PooledMemory { memory, pool: self, _permit: permit })
    }
}

impl Drop for PooledMemory {
    fn drop(&mut self) {
        if (1..=MAX_KEPT_BLOCKS).contains(&self.memory.0.len()) {
            let memory = std::mem::take(&mut self.memory);
            self.pool.kept.lock().push(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    impl HashMemoryPool {
        /// Returns the sizes of the buffers that are not in use, in blocks.
        pub(crate) fn kept_sizes(&self) -> Vec<usize> {
            self.kept.lock().iter().map(|memory| memory.0.len()).collect()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn number_of_buffers_is_limited_and_they_are_reused() {
        let pool = HashMemoryPool::new(2);
        let mut first = pool.clone().acquire().await.unwrap();
        let second = pool.clone().acquire().await.unwrap();
        let buffer = first.memory.blocks(8).as_ptr();
        let third = timeout(Duration::from_secs(1), pool.clone().acquire()).await;
        assert!(third.is_err(), "the limit is two");
        drop((first, second));
        assert_eq!(pool.kept_sizes(), [8], "unused memory is not kept");
        for count in [8, 3] {
            let mut next = pool.clone().acquire().await.unwrap();
            assert_eq!(next.memory.blocks(count).as_ptr(), buffer);
        }
        pool.clone().acquire().await.unwrap().memory.blocks(9);
        assert_eq!(pool.kept_sizes(), [9], "a larger buffer replaces the smaller one");
    }

    #[tokio::test]
    async fn large_buffers_are_not_kept() {
        let pool = HashMemoryPool::new(1);
        for (count, kept) in [(MAX_KEPT_BLOCKS, vec![MAX_KEPT_BLOCKS]), (MAX_KEPT_BLOCKS + 1, Vec::new())] {
            pool.clone().acquire().await.unwrap().memory.blocks(count);
            assert_eq!(pool.kept_sizes(), kept);
        }
    }
}
