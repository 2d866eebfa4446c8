//! The buffer of a message that is being received, within a size limit and with little memory. Finding the end of the
//! message is up to [`super::data`] and [`super::chunk`].
//!
//! A long message is collected in blocks and joined once at its end, in an allocation of exactly its size. The
//! allocator reuses the blocks at no cost, while a single growing buffer would be copied again and again.

/// The maximum memory that is allocated because of an announced size, before the client has sent anything.
const MAX_PREALLOCATED_BYTES: usize = 1 << 20;
/// The size of a block.
const BLOCK_BYTES: usize = 64 * 1024;

/// The message received so far. It is dropped once it is too long.
#[derive(Debug)]
pub(crate) struct BodyBuffer {
    blocks: Option<Vec<Vec<u8>>>,
    /// The number of bytes in memory.
    length: usize,
    /// The number of bytes received, kept or not.
    received: u64,
    limit: usize,
    announced_size: usize,
}

/// The error of a message above the limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl BodyBuffer {
    /// Creates an empty buffer for at most `limit` bytes. `announced_size` is the size that the client announced.
    pub(crate) fn new(limit: usize, announced_size: usize) -> Self {
        Self { blocks: Some(Vec::new()), length: 0, received: 0, limit, announced_size: announced_size.min(limit) }
    }

    /// Appends bytes. Drops the whole message if it becomes too long.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        self.received = self.received.saturating_add(bytes.len() as u64);
        if bytes.len() > self.limit.saturating_sub(self.length) {
            self.discard();
        }
        let Some(blocks) = &mut self.blocks else { return };
        self.length += bytes.len();
        while !bytes.is_empty() {
            let spare = blocks.last().map_or(0, spare_bytes);
            if spare == 0 {
                blocks.push(Vec::with_capacity(block_bytes(blocks.is_empty(), bytes.len(), self.announced_size)));
                continue;
            }
            let (fitting, rest) = bytes.split_at(spare.min(bytes.len()));
            if let Some(last) = blocks.last_mut() {
                last.extend_from_slice(fitting);
            }
            bytes = rest;
        }
    }

    /// Reserves exactly `total` bytes for a message of this size, all of which the caller will push. Does nothing
    /// within a message: many small blocks would take more memory than they hold.
    pub(crate) fn reserve(&mut self, total: usize) {
        if let Some(blocks) = &mut self.blocks
            && blocks.is_empty()
            && total <= self.limit
        {
            blocks.push(Vec::with_capacity(total));
        }
    }

    /// Announces that `more` bytes will follow. Drops the message at once if they make it too long.
    pub(crate) fn expect_bytes(&mut self, more: u64) {
        match usize::try_from(more) {
            Ok(more) if more <= self.limit.saturating_sub(self.length) => {
                self.announced_size = self.announced_size.max(self.length + more);
            }
            _ => self.discard(),
        }
    }

    /// Returns the number of bytes in memory.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Returns the number of bytes received, also if they were dropped.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.received
    }

    /// Returns the number of bytes that fit without an allocation. Unlimited if the message was dropped.
    pub(crate) fn spare_capacity(&self) -> usize {
        self.blocks.as_ref().map_or(usize::MAX, |blocks| blocks.last().map_or(0, spare_bytes))
    }

    /// Returns whether the message is too long.
    pub(crate) fn is_too_long(&self) -> bool {
        self.blocks.is_none()
    }

    /// Returns the message in a vector without spare capacity.
    pub(crate) fn finish(self) -> Result<Vec<u8>, TooLong> {
        let mut blocks = self.blocks.ok_or(TooLong)?;
        if blocks.len() != 1 {
            return Ok(blocks.concat());
        }
        let mut single = blocks.swap_remove(0);
        single.shrink_to_fit();
        Ok(single)
    }

    fn discard(&mut self) {
        self.blocks = None;
        self.length = 0;
    }
}

fn spare_bytes(block: &Vec<u8>) -> usize {
    block.capacity() - block.len()
}

/// Returns the size of the next block. An announced size is used up to [`MAX_PREALLOCATED_BYTES`], so a false one costs
/// no more than that.
fn block_bytes(first: bool, length: usize, announced_size: usize) -> usize {
    if first && (length..=MAX_PREALLOCATED_BYTES).contains(&announced_size) {
        announced_size
    } else {
        length.max(BLOCK_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_size_uses_plausible_announcements() {
        let table = [
            // first, length, announced, expected
            (true, 100, 0, BLOCK_BYTES),
            (true, 100, 5_000, 5_000),
            (true, 100, MAX_PREALLOCATED_BYTES, MAX_PREALLOCATED_BYTES),
            (true, 100, MAX_PREALLOCATED_BYTES + 1, BLOCK_BYTES),
            (true, 100, 99, BLOCK_BYTES),
            (true, 2 * BLOCK_BYTES, 0, 2 * BLOCK_BYTES),
            (false, 100, 5_000, BLOCK_BYTES),
        ];
        for (first, length, announced_size, expected) in table {
            assert_eq!(block_bytes(first, length, announced_size), expected, "{first} {length} {announced_size}");
        }
    }

    #[test]
    fn long_message_is_joined_from_its_blocks() {
        let message: Vec<u8> = (0..10 * BLOCK_BYTES).map(|at| u8::try_from(at % 251).unwrap_or(0)).collect();
        for announced_size in [0, 1_000, message.len()] {
            let mut body = BodyBuffer::new(message.len(), announced_size);
            for part in message.chunks(1_777) {
                body.push(part);
            }
            let bytes = body.finish().unwrap();
            assert_eq!(bytes.capacity(), bytes.len());
            assert!(bytes == message);
        }
    }

    #[test]
    fn message_above_the_limit_is_dropped() {
        let mut body = BodyBuffer::new(10, 0);
        body.push(b"12345");
        body.push(b"67890");
        assert_eq!(body.len(), 10);
        body.push(b"");
        assert!(!body.is_too_long());
        body.push(b"1");
        assert!(body.is_too_long());
        assert_eq!(body.len(), 0);
        assert_eq!(body.finish(), Err(TooLong));
    }

    #[test]
    fn finished_message_has_no_spare_capacity() {
        let mut body = BodyBuffer::new(1_000_000, 100_000);
        body.push(b"much less than announced");
        let bytes = body.finish().unwrap();
        assert_eq!(bytes.capacity(), bytes.len());
    }

    #[test]
    fn tiny_writes_do_not_use_more_memory() {
        let mut body = BodyBuffer::new(1_000_000, 0);
        for _ in 0..200_000 {
            body.reserve(1);
            body.push(b"x");
        }
        let blocks = body.blocks.as_ref().unwrap();
        let memory: usize = blocks.iter().map(|block| block.capacity() + size_of::<Vec<u8>>()).sum();
        assert!(memory < 200_000 + 2 * BLOCK_BYTES, "{memory}");
    }

    #[test]
    fn announcement_above_the_limit_drops_the_message() {
        let mut body = BodyBuffer::new(10, 0);
        body.expect_bytes(10);
        assert!(!body.is_too_long());
        body.expect_bytes(u64::MAX);
        assert!(body.is_too_long());
    }
}
