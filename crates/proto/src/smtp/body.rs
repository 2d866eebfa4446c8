//! Holds the bytes of a mail while it arrives: within the limit, and in no more memory than needed. How the bytes are
//! told from the rest of the input is the business of [`super::data`] and [`super::chunk`].

/// The most memory that is set aside because of what the peer announced, before it has sent anything.
const MAX_ADVANCE: usize = 1 << 20;

/// The mail so far; nothing any more once it was too long.
#[derive(Debug)]
pub(crate) struct Body {
    kept: Option<Vec<u8>>,
    limit: usize,
    announced: usize,
}

/// The mail had more bytes than are allowed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Body {
    /// An empty mail which may grow to `limit` bytes, and will grow to `announced` if the peer is honest.
    pub(crate) fn new(limit: usize, announced: usize) -> Self {
        Self { kept: Some(Vec::new()), limit, announced: announced.min(limit) }
    }

    /// Appends bytes, or forgets the whole mail when that makes it too long.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let Some(kept) = &mut self.kept else { return };
        let length = kept.len().saturating_add(bytes.len());
        if length > self.limit {
            self.kept = None;
            return;
        }
        if length > kept.capacity() {
            let target = target_capacity(kept.capacity(), length, self.announced).min(self.limit);
            kept.reserve_exact(target - kept.len());
        }
        kept.extend_from_slice(bytes);
    }

    /// Makes room for exactly so many more bytes, which the caller has seen and will push.
    pub(crate) fn reserve(&mut self, more: usize) {
        if let Some(kept) = &mut self.kept
            && kept.len().saturating_add(more) <= self.limit
        {
            kept.reserve_exact(more);
        }
    }

    /// Learns that so many more bytes will come. A mail that they make too long is given up at once.
    pub(crate) fn announce(&mut self, more: u64) {
        let length = u64::try_from(self.len()).unwrap_or(u64::MAX).saturating_add(more);
        match usize::try_from(length) {
            Ok(length) if length <= self.limit => self.announced = self.announced.max(length),
            _ => self.kept = None,
        }
    }

    /// The bytes held now.
    pub(crate) fn len(&self) -> usize {
        self.kept.as_ref().map_or(0, Vec::len)
    }

    /// How many bytes fit in without growing; any number when they are not kept.
    pub(crate) fn room(&self) -> usize {
        self.kept.as_ref().map_or(usize::MAX, |kept| kept.capacity() - kept.len())
    }

    /// Whether the mail has become too long.
    pub(crate) fn is_too_long(&self) -> bool {
        self.kept.is_none()
    }

    /// The whole mail, in a vector without spare capacity.
    pub(crate) fn finish(self) -> Result<Vec<u8>, TooLong> {
        let mut bytes = self.kept.ok_or(TooLong)?;
        bytes.shrink_to_fit();
        Ok(bytes)
    }
}

/// The capacity to grow to so that `length` bytes fit. What the peer announced is believed only up to a bound in
/// advance, and later when no more than half of it is missing: a lie costs nothing that was not sent.
fn target_capacity(capacity: usize, length: usize, announced: usize) -> usize {
    let believed = length.max(capacity.saturating_mul(2)).max(MAX_ADVANCE);
    if (length..=believed).contains(&announced) { announced } else { length.max(capacity.saturating_mul(2)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_follows_what_was_sent_and_what_was_honestly_announced() {
        let mib = 1 << 20;
        let table = [
            // capacity, length, announced, expected
            (0, 100, 0, 100),
            (100, 101, 0, 200),
            (0, 100, 5_000, 5_000),
            (0, 100, mib, mib),
            (0, 100, 100 * mib, 100),
            (60 * mib, 60 * mib + 1, 100 * mib, 100 * mib),
            (40 * mib, 40 * mib + 1, 100 * mib, 80 * mib),
            (5_000, 5_001, 5_000, 10_000),
        ];
        for (capacity, length, announced, expected) in table {
            assert_eq!(target_capacity(capacity, length, announced), expected, "{capacity} {length} {announced}");
        }
    }

    #[test]
    fn the_limit_is_sharp_and_frees_what_was_held() {
        let mut body = Body::new(10, 0);
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
        let mut body = Body::new(1_000_000, 100_000);
        body.push(b"much less than announced");
        let bytes = body.finish().unwrap();
        assert_eq!(bytes.capacity(), bytes.len());
    }

    #[test]
    fn an_announcement_beyond_the_limit_is_enough() {
        let mut body = Body::new(10, 0);
        body.announce(10);
        assert!(!body.is_too_long());
        body.announce(u64::MAX);
        assert!(body.is_too_long());
    }
}
