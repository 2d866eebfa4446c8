//! Messages of generated words. The frequency of words is as uneven as in natural language. The same number always
//! generates the same message, so that the results are reproducible.

use std::ops::Range;

use crate::message::END_OF_DATA;

/// The number of different words.
const WORD_COUNT: u64 = 50_000;
/// The ranks of words that are in many messages, and of words that are in few.
const COMMON_RANKS: Range<u64> = 3..30;
const RARE_RANKS: Range<u64> = 5_000..20_000;

/// A kind of queries for two words.
pub(crate) struct QueryKind {
    pub(crate) name: &'static str,
    /// `None` for two words that follow each other in a message.
    words: Option<[WordChoice; 2]>,
}

/// The ranks of a word of a query, and the part of the word that is searched.
type WordChoice = (Range<u64>, Part);

enum Part {
    Whole,
    First(usize),
    WithoutLast,
}

const COMMON: WordChoice = (COMMON_RANKS, Part::Whole);
const RARE: WordChoice = (RARE_RANKS, Part::Whole);
const COMMON_PREFIX: WordChoice = (COMMON_RANKS, Part::First(3));
const RARE_PREFIX: WordChoice = (RARE_RANKS, Part::WithoutLast);
const LETTER: WordChoice = (0..16, Part::First(1));

/// All kinds of queries.
pub(crate) const QUERY_KINDS: [QueryKind; 7] = [
    QueryKind { name: "common+common", words: Some([COMMON, COMMON]) },
    QueryKind { name: "common+rare", words: Some([COMMON, RARE]) },
    QueryKind { name: "rare+rare", words: Some([RARE, RARE]) },
    QueryKind { name: "phrase", words: None },
    QueryKind { name: "common*+common*", words: Some([COMMON_PREFIX, COMMON_PREFIX]) },
    QueryKind { name: "common*+rare*", words: Some([COMMON_PREFIX, RARE_PREFIX]) },
    QueryKind { name: "letter+letter", words: Some([LETTER, LETTER]) },
];

/// Generates messages of words. The nth word is n times rarer than the first.
pub(crate) struct WordGenerator {
    words_per_message: usize,
    /// The sum of the weights of all words up to each one.
    cumulative_weights: Vec<u64>,
}

impl WordGenerator {
    pub(crate) fn new(words_per_message: usize) -> Self {
        const WEIGHT: u64 = 1 << 32;
        let mut sum = 0;
        let sums = (0..WORD_COUNT).map(|rank| {
            sum += WEIGHT / (rank + 1);
            sum
        });
        Self { words_per_message, cumulative_weights: sums.collect() }
    }

    /// Returns a message with its end-of-data line. The first words are its subject.
    pub(crate) fn message(&self, number: usize) -> Vec<u8> {
        let words = self.words(number);
        let (subject, body) = words.split_at(words.len().min(5));
        let mut message = format!(
            "From: {name} <{name}@bench.example>\r\nTo: receiver@bench.example\r\nSubject: {subject}\r\n\
             Date: Thu, 01 Jan 2026 12:00:00 +0000\r\nMessage-ID: <{number}@bench.example>\r\nMIME-Version: 1.0\r\n\
             Content-Type: text/plain; charset=utf-8\r\n\r\n",
            name = word(number as u64 % 1000),
            subject = subject.join(" "),
        );
        for line in body.chunks(12) {
            message.push_str(&line.join(" "));
            message.push_str("\r\n");
        }
        let mut message = message.into_bytes();
        message.extend_from_slice(END_OF_DATA);
        message
    }

    /// Returns the words of a message.
    fn words(&self, number: usize) -> Vec<String> {
        let mut random = SplitMix64(number as u64);
        (0..self.words_per_message).map(|_| word(self.rank(random.next()))).collect()
    }

    /// Returns a random word, weighted by frequency.
    pub(crate) fn random_word(&self, random: &mut SplitMix64) -> String {
        word(self.rank(random.next()))
    }

    /// Returns the rank of a random word, weighted by frequency.
    fn rank(&self, random: u64) -> u64 {
        let total = self.cumulative_weights.last().copied().unwrap_or(1);
        self.cumulative_weights.partition_point(|&sum| sum <= random % total) as u64
    }

    /// Returns a query. `messages` is the number of messages that were generated.
    pub(crate) fn query(&self, kind: &QueryKind, number: usize, messages: usize) -> String {
        let mut random = SplitMix64(u64::MAX - number as u64);
        let Some(words) = &kind.words else {
            let words = self.words(usize::try_from(random.next()).unwrap_or(0) % messages);
            return format!("\"{}\"", words[words.len().saturating_sub(2)..].join(" "));
        };
        let words = words.each_ref().map(|(ranks, part)| {
            let mut word = word(random.in_range(ranks));
            word.truncate(match part {
                Part::Whole => word.len(),
                Part::First(length) => *length,
                Part::WithoutLast => word.len() - 1,
            });
            word
        });
        words.join(" ")
    }
}

/// Returns the word of a rank: two to four syllables.
pub(crate) fn word(mut rank: u64) -> String {
    const CONSONANTS: &[u8; 16] = b"bdfghjklmnprstvz";
    const VOWELS: &[u8; 5] = b"aeiou";
    let letter = |letters: &[u8], index: u64| char::from(letters[usize::try_from(index).unwrap_or(0) % letters.len()]);
    let mut word = String::new();
    while rank > 0 || word.len() < 4 {
        word.push(letter(CONSONANTS, rank % 16));
        word.push(letter(VOWELS, rank / 16 % 5));
        rank /= 80;
    }
    word
}

/// A deterministic generator of pseudorandom numbers (SplitMix64).
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn in_range(&mut self, range: &Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn words_are_unique() {
        let words: HashSet<String> = (0..WORD_COUNT).map(word).collect();
        assert_eq!(words.len() as u64, WORD_COUNT);
        assert!(words.iter().all(|word| word.len() >= 4));
    }

    #[test]
    fn word_frequencies_are_uneven() {
        let generator = WordGenerator::new(60);
        let words: Vec<String> = (0..1000).flat_map(|number| generator.words(number)).collect();
        let count = |rank: u64| words.iter().filter(|&other| *other == word(rank)).count();
        assert!(count(0) > 50 * count(300).max(1), "{} {}", count(0), count(300));
        assert_eq!(generator.words(7), generator.words(7), "a message is always the same");
    }
}
