//! The `search` command: how long it takes to find a few of many messages by two words. The frequency of words in the
//! messages is as uneven as in natural language. The same number always generates the same message, so that the results
//! are reproducible. The server must have `/api/v2/search`.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Deserialize;

use crate::Verdict;
use crate::error::Error;
use crate::http::Client;
use crate::load::{Load, Messages, build_envelopes, parse_positive};
use crate::measure::{Latencies, Sample, mib, ratio, to_f64};
use crate::message::END_OF_DATA;
use crate::report::{Report, Row};
use crate::servers::ServerOptions;

const PREFIX: &str = "search";
/// The number of different words.
const WORD_COUNT: u64 = 50_000;
/// The ranks of words that are in many messages, and of words that are in few.
const COMMON_RANKS: Range<u64> = 3..30;
const RARE_RANKS: Range<u64> = 5_000..20_000;
/// The maximum time to wait until everything is indexed.
const INDEX_TIMEOUT: Duration = Duration::from_hours(1);
/// The interval at which the index is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Options of the `search` command.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    servers: ServerOptions,
    /// Messages to search.
    #[arg(long, default_value_t = 1_000_000, value_parser = parse_positive)]
    messages: usize,
    /// Do not send messages: they exist from an earlier run with the same options.
    #[arg(long)]
    filled: bool,
    /// Mailboxes over which they are spread; the message cap of the server must not be lower than what each will hold.
    #[arg(long, default_value_t = 2000, value_parser = parse_positive)]
    mailboxes: usize,
    /// Words in each message.
    #[arg(long, default_value_t = 60, value_parser = parse_positive)]
    words: usize,
    /// Concurrent connections that send.
    #[arg(long, default_value_t = 32, value_parser = parse_positive)]
    connections: usize,
    /// Queries of each kind.
    #[arg(long, default_value_t = 300, value_parser = parse_positive)]
    operations: usize,
    /// The server's process, to measure its memory.
    #[arg(long)]
    pid: Option<u32>,
}

/// The fields of a response that are used.
#[derive(Deserialize)]
struct SearchResponse {
    messages: Vec<serde::de::IgnoredAny>,
    complete: bool,
}

/// Runs the `search` command.
pub(crate) async fn run(options: &Options, json: bool) -> Result<Verdict, Error> {
    let generator = Arc::new(WordGenerator::new());
    let mut client = options.servers.http_client().await?;
    if !options.filled {
        let start = Instant::now();
        let sent = to_f64(fill(options, &generator).await?);
        let fill_time = start.elapsed();
        wait_for_index(&mut client).await?;
        let index_time = start.elapsed();
        eprintln!(
            "restante-bench: {sent} messages in {:.1} s, {:.0}/s; all indexed after {:.1} s",
            fill_time.as_secs_f64(),
            ratio(sent, fill_time.as_secs_f64()),
            index_time.as_secs_f64(),
        );
    }
    let mut report = Report::new(json);
    for (name, words) in &QUERY_KINDS {
        let mut latencies = Latencies::default();
        let mut found = 0;
        for number in 0..options.operations {
            let query = generator.query(words.as_ref(), number, options);
            let start = Instant::now();
            let response = search(&mut client, &query).await?;
            latencies.push(start.elapsed());
            found += response.messages.len();
        }
        let mut row = Row::default()
            .with("words", *name)
            .with("stored", options.messages)
            .with("questions", options.operations)
            .with_rounded("found", ratio(to_f64(found), to_f64(options.operations)), 1)
            .with_percentiles(latencies.percentiles());
        if let Some(sample) = options.pid.map(Sample::read).transpose()? {
            row = row.with_rounded("rss_mib", mib(sample.resident), 1);
        }
        report.row(&row);
    }
    Ok(Verdict::Clean)
}

async fn search(client: &mut Client, query: &str) -> Result<SearchResponse, Error> {
    let query = query.replace(' ', "%20").replace('"', "%22");
    client.get_json(&format!("/api/v2/search?q={query}")).await
}

async fn wait_for_index(client: &mut Client) -> Result<(), Error> {
    let deadline = Instant::now() + INDEX_TIMEOUT;
    while !search(client, "nothing").await?.complete {
        if Instant::now() > deadline {
            return Err(Error::Timeout);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// Sends all messages. Returns their number.
async fn fill(options: &Options, generator: &Arc<WordGenerator>) -> Result<usize, Error> {
    let addresses = options.servers.smtp_addresses().await?;
    let (generator, words) = (Arc::clone(generator), options.words);
    let load = Load {
        connections: options.connections,
        messages: Messages::Generated(Box::new(move |number| generator.message(number, words))),
        ..Load::new(addresses, build_envelopes(PREFIX, options.mailboxes, 1), Vec::new())
    };
    Ok(Arc::new(load).send_all(options.messages).await?.results.latencies.len())
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

/// The kinds of queries: their names, and their words. `None` for two words that follow each other in a message.
const QUERY_KINDS: [(&str, Option<[WordChoice; 2]>); 7] = [
    ("common+common", Some([COMMON, COMMON])),
    ("common+rare", Some([COMMON, RARE])),
    ("rare+rare", Some([RARE, RARE])),
    ("phrase", None),
    ("common*+common*", Some([COMMON_PREFIX, COMMON_PREFIX])),
    ("common*+rare*", Some([COMMON_PREFIX, RARE_PREFIX])),
    ("letter+letter", Some([LETTER, LETTER])),
];

/// Generates words. The nth word is n times rarer than the first.
struct WordGenerator {
    /// The sum of the weights of all words up to each one.
    cumulative_weights: Vec<u64>,
}

impl WordGenerator {
    fn new() -> Self {
        const WEIGHT: u64 = 1 << 32;
        let mut sum = 0;
        let sums = (0..WORD_COUNT).map(|rank| {
            sum += WEIGHT / (rank + 1);
            sum
        });
        Self { cumulative_weights: sums.collect() }
    }

    /// Returns a message with its end-of-data line. The first words are its subject.
    fn message(&self, number: usize, words: usize) -> Vec<u8> {
        let words: Vec<String> = self.words(number, words);
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

    fn words(&self, number: usize, count: usize) -> Vec<String> {
        let mut random = SplitMix64(number as u64);
        (0..count).map(|_| word(self.rank(random.next()))).collect()
    }

    /// Returns the rank of a random word, weighted by frequency.
    fn rank(&self, random: u64) -> u64 {
        let total = self.cumulative_weights.last().copied().unwrap_or(1);
        self.cumulative_weights.partition_point(|&sum| sum <= random % total) as u64
    }

    fn query(&self, words: Option<&[WordChoice; 2]>, number: usize, options: &Options) -> String {
        let mut random = SplitMix64(u64::MAX - number as u64);
        let Some(words) = words else {
            let number = usize::try_from(random.next()).unwrap_or(0) % options.messages;
            let words = self.words(number, options.words);
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
fn word(mut rank: u64) -> String {
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
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
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
        let generator = WordGenerator::new();
        let words: Vec<String> = (0..1000).flat_map(|number| generator.words(number, 60)).collect();
        let count = |rank: u64| words.iter().filter(|&other| *other == word(rank)).count();
        assert!(count(0) > 50 * count(300).max(1), "{} {}", count(0), count(300));
        assert_eq!(generator.words(7, 60), generator.words(7, 60), "a message is always the same");
    }
}
