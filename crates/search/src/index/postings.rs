//! Postings: the documents of a segment that contain a term, and the positions of the term in each of them.
//!
//! Numbers have seven bits per byte, and the last byte has the high bit clear. The documents are stored as differences,
//! shifted by one bit. The low bit is set if the term has more than one position in the document; then their number
//! follows. The positions are separate, so that queries without phrases need not read them. Those of one document are
//! stored as differences too. Terms that are never part of a phrase have no positions.

/// Postings in memory. Documents are appended in ascending order.
#[derive(Debug, Default)]
pub(super) struct Postings {
    last_document: u32,
    documents: Vec<u8>,
    positions: Vec<u8>,
}

/// Encoded postings.
#[derive(Clone, Copy, Debug)]
pub(super) struct EncodedPostings<'a> {
    pub(super) documents: &'a [u8],
    pub(super) positions: &'a [u8],
}

impl Postings {
    /// Appends a position of a document that [`Postings::push_document`] appends afterwards. `difference` is the
    /// distance from its previous position.
    pub(super) fn push_position(&mut self, difference: u32) {
        push_number(&mut self.positions, difference.into());
    }

    /// Appends a document and the number of its positions.
    pub(super) fn push_document(&mut self, document: u32, position_count: u32) {
        let difference = u64::from(document - self.last_document) << 1;
        self.last_document = document;
        push_number(&mut self.documents, difference | u64::from(position_count > 1));
        if position_count > 1 {
            push_number(&mut self.documents, position_count.into());
        }
    }

    /// Appends documents of other postings with new numbers. Documents without a new number are left out. Returns
    /// `None` if the other postings are damaged.
    pub(super) fn append(&mut self, other: EncodedPostings<'_>, new_number: impl Fn(u32) -> Option<u32>) -> Option<()> {
        let mut positions = other.positions;
        other.for_each(|document, count| {
            let start = positions;
            if !other.positions.is_empty() {
                skip_numbers(&mut positions, count)?;
            }
            if let Some(document) = new_number(document) {
                self.positions.extend_from_slice(&start[..start.len() - positions.len()]);
                self.push_document(document, count);
            }
            Some(())
        })
    }

    /// Removes all documents. Keeps the allocated memory.
    pub(super) fn clear(&mut self) {
        self.last_document = 0;
        self.documents.clear();
        self.positions.clear();
    }

    /// Returns true if there are no documents.
    pub(super) fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// Returns the encoded postings.
    pub(super) fn encoded(&self) -> EncodedPostings<'_> {
        EncodedPostings { documents: &self.documents, positions: &self.positions }
    }
}

impl EncodedPostings<'_> {
    /// Calls `visit` with each document and the number of its positions. Returns `None` if the postings are damaged, or
    /// if `visit` does.
    pub(super) fn for_each(self, mut visit: impl FnMut(u32, u32) -> Option<()>) -> Option<()> {
        let (mut bytes, mut document) = (self.documents, 0_u32);
        while !bytes.is_empty() {
            let number = read_number(&mut bytes)?;
            document = document.checked_add(u32::try_from(number >> 1).ok()?)?;
            let count = if number & 1 == 1 { u32::try_from(read_number(&mut bytes)?).ok()? } else { 1 };
            visit(document, count)?;
        }
        Some(())
    }

    /// Calls `visit` with each position of the documents for which `is_wanted` returns true, in ascending order. Returns
    /// `None` if the postings are damaged.
    pub(super) fn for_each_position(
        self,
        is_wanted: impl Fn(u32) -> bool,
        mut visit: impl FnMut(u32, u32),
    ) -> Option<()> {
        let mut bytes = self.positions;
        self.for_each(|document, count| {
            if !is_wanted(document) {
                return skip_numbers(&mut bytes, count);
            }
            let mut position = 0_u32;
            for _ in 0..count {
                position = position.checked_add(u32::try_from(read_number(&mut bytes)?).ok()?)?;
                visit(document, position);
            }
            Some(())
        })
    }
}

/// Appends a number.
pub(super) fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(low_byte(number) | 0x80);
        number >>= 7;
    }
    bytes.push(low_byte(number));
}

fn low_byte(number: u64) -> u8 {
    number.to_le_bytes()[0]
}

/// Reads a number and removes it from the bytes. Returns `None` if it is incomplete or too large.
#[inline]
pub(super) fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(first.into());
    }
    let mut number = 0;
    for (position, &byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * position);
        if byte < 0x80 {
            *bytes = &bytes[position + 1..];
            return Some(number);
        }
    }
    None
}

/// Skips numbers. Returns `None` if there are fewer.
fn skip_numbers(bytes: &mut &[u8], count: u32) -> Option<()> {
    for _ in 0..count {
        let end = bytes.iter().position(|byte| *byte < 0x80)?;
        *bytes = &bytes[end + 1..];
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Documents = BTreeMap<u32, Vec<u32>>;

    fn encode(documents: &Documents) -> Postings {
        let mut postings = Postings::default();
        for (&document, positions) in documents {
            let mut last = 0;
            for &position in positions {
                postings.push_position(position - last);
                last = position;
            }
            postings.push_document(document, u32::try_from(positions.len()).unwrap());
        }
        postings
    }

    fn decode(postings: EncodedPostings<'_>, is_wanted: impl Fn(u32) -> bool) -> Option<Documents> {
        let mut documents = Documents::new();
        let visit = |document, position| documents.entry(document).or_default().push(position);
        postings.for_each_position(is_wanted, visit)?;
        Some(documents)
    }

    fn documents() -> impl Strategy<Value = Documents> {
        let positions = prop::collection::btree_set(0_u32..70_000, 1..6);
        prop::collection::btree_map(0_u32..100_000, positions.prop_map(|set| set.into_iter().collect()), 0..30)
    }

    proptest! {
        #[test]
        fn postings_are_decoded_as_encoded(documents in documents()) {
            let postings = encode(&documents);
            prop_assert_eq!(postings.is_empty(), documents.is_empty());
            prop_assert_eq!(decode(postings.encoded(), |_| true), Some(documents.clone()));
            let even = |document: u32| document.is_multiple_of(2);
            let expected: Documents = documents.clone().into_iter().filter(|(document, _)| even(*document)).collect();
            prop_assert_eq!(decode(postings.encoded(), even), Some(expected.clone()), "unwanted documents are skipped");

            let mut renumbered = Postings::default();
            let new_number = |document: u32| even(document).then_some(document / 2);
            renumbered.append(postings.encoded(), new_number).unwrap();
            let expected = expected.into_iter().map(|(document, positions)| (document / 2, positions)).collect();
            prop_assert_eq!(decode(renumbered.encoded(), |_| true), Some(expected));
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(
            documents in prop::collection::vec(any::<u8>(), 0..40),
            positions in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let postings = EncodedPostings { documents: &documents, positions: &positions };
            decode(postings, |_| true);
            Postings::default().append(postings, |document| (document < 1000).then_some(document));
        }

        #[test]
        fn numbers_are_read_as_written(number in any::<u64>()) {
            let mut bytes = Vec::new();
            push_number(&mut bytes, number);
            prop_assert_eq!(read_number(&mut bytes.as_slice()), Some(number));
            prop_assert_eq!(read_number(&mut &bytes[..bytes.len() - 1]), None, "truncated");
        }
    }
}
