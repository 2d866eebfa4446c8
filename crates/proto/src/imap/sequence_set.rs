//! Resolves sequence sets.

use std::ops::RangeInclusive;

use super::command::{SequenceSet, SetNumber};

impl SequenceSet {
    /// Returns the numbers as ranges that are ascending and not adjacent. `last` is the greatest number in use, the value of
    /// `*`. If it is 0, ranges with `*` are left out. [`SequenceSet::Saved`] has no ranges: the session knows its numbers.
    pub fn ranges(&self, last: u32) -> impl Iterator<Item = RangeInclusive<u32>> + use<> {
        let mut ranges: Vec<_> = self.sent_ranges(last).collect();
        ranges.sort_unstable_by_key(|range| *range.start());
        ranges.dedup_by(|next, range| {
            let is_adjacent = *next.start() <= range.end().saturating_add(1);
            if is_adjacent {
                *range = *range.start()..=*range.end().max(next.end());
            }
            is_adjacent
        });
        ranges.into_iter()
    }

    /// Returns the ranges as sent.
    fn sent_ranges(&self, last: u32) -> impl Iterator<Item = RangeInclusive<u32>> {
        let ranges = match self {
            Self::Ranges(ranges) => ranges.as_slice(),
            Self::Saved => &[],
        };
        let resolve = move |number| match number {
            SetNumber::Number(number) => Some(number.get()),
            SetNumber::Last => (last > 0).then_some(last),
        };
        ranges.iter().filter_map(move |(from, to)| {
            let (from, to) = (resolve(*from)?, resolve(*to)?);
            Some(from.min(to)..=from.max(to))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::sequence_set;
    use super::*;

    #[test]
    fn ranges_are_ascending_and_merged() {
        let table: &[(&str, u32, &[RangeInclusive<u32>])] = &[
            ("1", 9, &[1..=1]),
            ("5:2", 9, &[2..=5]),
            ("3,1,2", 9, &[1..=3]),
            ("1:3,7:9,2:4", 9, &[1..=4, 7..=9]),
            ("1:10,2:3,5", 9, &[1..=10]),
            ("*", 9, &[9..=9]),
            ("12:*", 9, &[9..=12]),
            ("*:*,1", 9, &[1..=1, 9..=9]),
            ("4:*", 9, &[4..=9]),
            ("4:*,2", 0, &[2..=2]),
            ("4294967295,1:4294967294", 9, &[1..=u32::MAX]),
            ("4294967295:*,4294967295", u32::MAX, &[u32::MAX..=u32::MAX]),
            ("$", 9, &[]),
        ];
        for (text, last, expected) in table {
            let set = sequence_set(text);
            let ranges: Vec<_> = set.ranges(*last).collect();
            assert_eq!(&ranges, expected, "{text}");
        }
    }
}
