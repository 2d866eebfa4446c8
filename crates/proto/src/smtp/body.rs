//! Holds the bytes of a mail while it arrives: within the limit, and in no more memory than needed. How the bytes are
//! told from the rest of the input is the business of [`super::data`] and [`super::chunk`].
//!
//! A long mail is collected in pieces and put together once, at its end, in a block of its own size. The pieces come and
//! go all the time and cost the allocator nothing; a block that grows would be copied or moved again and again.

/// The most memory that is set aside because of what the peer announced, before it has sent anything.
const MAX_PREALLOCATED_BYTES: usize = 1 << 20;
/// The size of a piece.
const BLOCK_BYTES: usize = 64 * 1024;

/// The mail so far; nothing any more once it was too long.
#[derive(Debug)]
pub(crate) struct BodyBuffer {
    blocks: Option<Vec<Vec<u8>>>,
    /// The bytes held.
    length: usize,
    /// The bytes that came, held or not.
    received: u64,
    limit: usize,
    announced_size: usize,
}

/// The mail had more bytes than are allowed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl BodyBuffer {
    /// An empty mail which may grow to `limit` bytes, and will grow to `announced` if the peer is honest.
    pub(crate) fn new(limit: usize, announced: usize) -> Self {
        Self { blocks: Some(Vec::new()), length: 0, received: 0, limit, announced_size: announced.min(limit) }
    }

    /// Appends bytes, or forgets the whole mail when that makes it too long.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        self.received = self.received.saturating_add(bytes.len() as u64);
        if bytes.len() > self.limit.saturating_sub(self.length) {
            self.discard();
        }
        let Some(pieces) = &mut self.blocks else { return };
        self.length += bytes.len();
        while !bytes.is_empty() {
            let room = pieces.last().map_or(0, spare_bytes);
            if room == 0 {
                pieces.push(Vec::with_capacity(block_bytes(pieces.is_empty(), bytes.len(), self.announced_size)));
                continue;
            }
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            if let Some(last) = pieces.last_mut() {
                last.extend_from_slice(now);
            }
            bytes = later;
        }
    }

    /// Makes room for a mail of exactly so many bytes, all of which the caller has seen and will push. In the middle of a
    /// mail it does nothing: many small pieces would take more memory than they hold.
    pub(crate) fn reserve(&mut self, whole: usize) {
        if let Some(pieces) = &mut self.blocks
            && pieces.is_empty()
            && whole <= self.limit
        {
            pieces.push(Vec::with_capacity(whole));
        }
    }

    /// Learns that so many more bytes will come. A mail that they make too long is given up at once.
    pub(crate) fn expect_bytes(&mut self, more: u64) {
        match usize::try_from(more) {
            Ok(more) if more <= self.limit.saturating_sub(self.length) => {
                self.announced_size = self.announced_size.max(self.length + more);
            }
            _ => self.discard(),
        }
    }

    /// The bytes held now.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The bytes that came, also when they made the mail too long and were thrown away.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.received
    }

    /// How many bytes fit in without growing; any number when they are not kept.
    pub(crate) fn spare_capacity(&self) -> usize {
        self.blocks.as_ref().map_or(usize::MAX, |pieces| pieces.last().map_or(0, spare_bytes))
    }

    /// Whether the mail has become too long.
    pub(crate) fn is_too_long(&self) -> bool {
        self.blocks.is_none()
    }

    /// The whole mail, in a vector without spare capacity.
    pub(crate) fn finish(self) -> Result<Vec<u8>, TooLong> {
        let mut pieces = self.blocks.ok_or(TooLong)?;
        match (pieces.pop(), pieces.as_slice()) {
            (None, _) => Ok(Vec::new()),
            (Some(mut only), []) => {
                only.shrink_to_fit();
                Ok(only)
            }
            (Some(last), _) => {
                pieces.push(last);
                Ok(pieces.concat())
            }
        }
    }

    fn discard(&mut self) {
        self.blocks = None;
        self.length = 0;
    }
}

fn spare_bytes(piece: &Vec<u8>) -> usize {
    piece.capacity() - piece.len()
}

/// The size of the next piece. What the peer announced is believed up to a bound; a lie costs no more than that.
fn block_bytes(first: bool, length: usize, announced: usize) -> usize {
    if first && (length..=MAX_PREALLOCATED_BYTES).contains(&announced) { announced } else { length.max(BLOCK_BYTES) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_follows_what_was_sent_and_what_was_believably_announced() {
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
        for (first, length, announced, expected) in table {
            assert_eq!(block_bytes(first, length, announced), expected, "{first} {length} {announced}");
        }
    }

    #[test]
    fn a_long_mail_is_put_together_from_its_pieces() {
        let mail: Vec<u8> = (0..10 * BLOCK_BYTES).map(|at| u8::try_from(at % 251).unwrap_or(0)).collect();
        for announced in [0, 1_000, mail.len()] {
            let mut body = BodyBuffer::new(mail.len(), announced);
            for part in mail.chunks(1_777) {
                body.push(part);
            }
            let bytes = body.finish().unwrap();
            assert_eq!(bytes.capacity(), bytes.len());
            assert!(bytes == mail);
        }
    }

    #[test]
    fn the_limit_is_sharp_and_frees_what_was_held() {
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
    fn a_finished_mail_has_no_spare_capacity() {
        let mut body = BodyBuffer::new(1_000_000, 100_000);
        body.push(b"much less than announced");
        let bytes = body.finish().unwrap();
        assert_eq!(bytes.capacity(), bytes.len());
    }

    #[test]
    fn a_mail_in_very_many_crumbs_takes_no_more_memory_than_another() {
        let mut body = BodyBuffer::new(1_000_000, 0);
        for _ in 0..200_000 {
            body.reserve(1);
            body.push(b"x");
        }
        let pieces = body.blocks.as_ref().unwrap();
        let memory: usize = pieces.iter().map(|piece| piece.capacity() + size_of::<Vec<u8>>()).sum();
        assert!(memory < 200_000 + 2 * BLOCK_BYTES, "{memory}");
    }

    #[test]
    fn an_announcement_beyond_the_limit_is_enough() {
        let mut body = BodyBuffer::new(10, 0);
        body.expect_bytes(10);
        assert!(!body.is_too_long());
        body.expect_bytes(u64::MAX);
        assert!(body.is_too_long());
    }
}
