//! Sets of documents of one segment.

/// A set of numbers below a fixed length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bitmap {
    words: Vec<u64>,
    len: u32,
}

impl Bitmap {
    /// Creates an empty set of numbers below `len`.
    pub(super) fn new(len: u32) -> Self {
        Self { words: vec![0; len.div_ceil(u64::BITS) as usize], len }
    }

    /// Creates the set of all numbers below `len`.
    pub(super) fn full(len: u32) -> Self {
        Self::new(len).not()
    }

    /// Reads a set from bytes of [`Bitmap::to_bytes`]. Returns `None` if they have another length, or contain other numbers.
    pub(super) fn from_bytes(len: u32, bytes: &[u8]) -> Option<Self> {
        let (chunks, rest) = bytes.as_chunks();
        let words: Vec<u64> = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk)).collect();
        let bitmap = Self { words, len };
        let is_valid = rest.is_empty() && bitmap.words.len() == len.div_ceil(u64::BITS) as usize;
        (is_valid && bitmap.iter().all(|number| number < len)).then_some(bitmap)
    }

    /// Returns the set as bytes.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Adds a number. Returns false if it is not below the length.
    pub(super) fn insert(&mut self, number: u32) -> bool {
        let is_valid = number < self.len;
        if is_valid {
            self.words[(number / u64::BITS) as usize] |= 1 << (number % u64::BITS);
        }
        is_valid
    }

    /// Returns true if the set contains the number.
    pub(super) fn contains(&self, number: u32) -> bool {
        self.words.get((number / u64::BITS) as usize).is_some_and(|word| word >> (number % u64::BITS) & 1 == 1)
    }

    /// Returns the number of elements.
    pub(super) fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns true if the set has no elements.
    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Returns the elements in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.words).flat_map(|(position, &word)| {
            let rest = move |word: &u64| Some(word & (word - 1)).filter(|rest| *rest != 0);
            let words = std::iter::successors(Some(word).filter(|word| *word != 0), rest);
            words.map(move |word| position * u64::BITS + word.trailing_zeros())
        })
    }

    /// Returns the numbers that are not in the set.
    pub(super) fn not(mut self) -> Self {
        self.words.iter_mut().for_each(|word| *word = !*word);
        // The bits of the last word above the length are not numbers of the set.
        let used = self.len % u64::BITS;
        if let Some(last) = self.words.last_mut().filter(|_| used > 0) {
            *last &= u64::MAX >> (u64::BITS - used);
        }
        self
    }

    /// Returns the numbers that are in both sets, which have the same length.
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
        self
    }

    /// Returns the numbers that are in one of both sets, which have the same length.
    pub(super) fn or(mut self, other: &Self) -> Self {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_like_a_set(
            len in 0_u32..200,
            left in prop::collection::btree_set(0_u32..250, 0..40),
            right in prop::collection::btree_set(0_u32..250, 0..40),
        ) {
            let build = |numbers: &std::collections::BTreeSet<u32>| {
                let mut bitmap = Bitmap::new(len);
                for &number in numbers {
                    assert_eq!(bitmap.insert(number), number < len);
                }
                bitmap
            };
            let (a, b) = (build(&left), build(&right));
            let numbers = |bitmap: &Bitmap| bitmap.iter().collect::<Vec<_>>();
            let expected = |keep: &dyn Fn(&u32) -> bool| (0..len).filter(keep).collect::<Vec<_>>();
            prop_assert_eq!(numbers(&a), expected(&|number| left.contains(number)));
            prop_assert_eq!(numbers(&a.clone().not()), expected(&|number| !left.contains(number)));
            prop_assert_eq!(numbers(&a.clone().and(&b)), expected(&|n| left.contains(n) && right.contains(n)));
            prop_assert_eq!(numbers(&a.clone().or(&b)), expected(&|n| left.contains(n) || right.contains(n)));
            prop_assert_eq!(numbers(&Bitmap::full(len)), expected(&|_| true));
            prop_assert_eq!(a.count() as usize, numbers(&a).len());
            prop_assert_eq!(a.is_empty(), numbers(&a).is_empty());
            prop_assert!((0..250).all(|number| a.contains(number) == (number < len && left.contains(&number))));
            prop_assert_eq!(Bitmap::from_bytes(len, &a.to_bytes()), Some(a));
            prop_assert_eq!(Bitmap::from_bytes(len, &[0; 3]), None);
        }
    }
}
