//! Random numbers that are the same on all platforms.

use std::ops::Range;

/// `SplitMix64`.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Creates a generator. Generators with equal seeds return equal numbers.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns another generator.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("smaller than a usize")
    }

    /// Returns true once in this many calls, on average.
    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// Returns one of these values.
    pub(crate) fn choose<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())].clone()
    }

    /// Returns a part of a range that is not empty.
    pub(crate) fn part_of(&mut self, range: Range<usize>) -> Range<usize> {
        let start = range.start + self.below(range.len());
        let max_len = range.end - start;
        let len = if self.one_in(2) { 1 } else { 1 + self.below(max_len) };
        start..start + len
    }
}
