//! Short extracts of messages around the words that a query matched. An excerpt is plain text, in parts that are
//! highlighted or not.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};

use crate::query::Phrase;
use crate::words;

/// The maximum length of an excerpt in characters, and how many of them precede the first match.
const EXCERPT_CHARS: usize = 160;
const LEAD_CHARS: usize = 40;
/// The maximum number of bytes of a text that are searched, as in the index.
const MAX_TEXT_BYTES: usize = 256 << 10;

/// A part of an excerpt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExcerptPart {
    /// The text. Runs of whitespace are replaced with one space.
    pub text: String,
    /// True if the part matches the query.
    pub is_hit: bool,
}

/// Returns the extract of a text around the first match of a phrase, or its beginning if there is no match.
pub(crate) fn excerpt(text: &str, phrases: &[&Phrase]) -> Vec<ExcerptPart> {
    let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
    let hits = first_hits(text, phrases);
    let window = window(text, hits.first());
    let mut parts = ExcerptBuilder::default();
    let mut position = window.start;
    for hit in hits.iter().filter(|hit| hit.start < window.end) {
        let end = hit.end.min(window.end);
        parts.push(&text[position..hit.start], false);
        parts.push(&text[hit.start..end], true);
        position = end;
    }
    parts.push(&text[position..window.end], false);
    parts.finish()
}

/// Returns the ranges of the first match and of the matches close to it.
fn first_hits(text: &str, phrases: &[&Phrase]) -> Vec<Range<usize>> {
    let mut hits: Vec<Range<usize>> = Vec::new();
    let Some(longest) = phrases.iter().map(|phrase| phrase.words.len()).max() else { return hits };
    let mut recent: VecDeque<(String, Range<usize>)> = VecDeque::with_capacity(longest);
    words::for_each(text, |word, range| {
        // A character has at most four bytes.
        if hits.first().is_some_and(|first| range.start > first.start + 4 * EXCERPT_CHARS) {
            return ControlFlow::Break(());
        }
        let mut slot =
            if recent.len() == longest { recent.pop_front().unwrap_or_default() } else { Default::default() };
        slot.0.clear();
        slot.0.push_str(word);
        slot.1 = range.clone();
        recent.push_back(slot);
        let starts = phrases.iter().filter_map(|phrase| phrase_start(phrase, &recent));
        if let Some(start) = starts.min() {
            hits.push(start..range.end);
        }
        ControlFlow::Continue(())
    });
    hits.sort_unstable_by_key(|hit| hit.start);
    // Matches of two phrases can overlap.
    hits.dedup_by(|next, hit| {
        let overlap = next.start < hit.end;
        hit.end = if overlap { hit.end.max(next.end) } else { hit.end };
        overlap
    });
    hits
}

/// Returns where the phrase starts if it ends with the last of the recent words.
fn phrase_start(phrase: &Phrase, recent: &VecDeque<(String, Range<usize>)>) -> Option<usize> {
    let (last, before) = phrase.words.split_last()?;
    let (word, _) = recent.back()?;
    if !(word == last || phrase.is_prefix && word.starts_with(last)) {
        return None;
    }
    let first = recent.len().checked_sub(phrase.words.len())?;
    let is_match = recent.range(first..).zip(before).all(|((word, _), expected)| word == expected);
    is_match.then(|| recent[first].1.start)
}

/// Returns the range of the text to show. It starts shortly before the match, or at the beginning of the text, and ends
/// at a word boundary if possible.
fn window(text: &str, hit: Option<&Range<usize>>) -> Range<usize> {
    let hit = hit.map_or(0, |hit| hit.start);
    let before = &text[..hit];
    let start = match before.char_indices().rev().nth(LEAD_CHARS - 1) {
        None => 0,
        Some((start, _)) => before[start..].find(char::is_whitespace).map_or(start, |space| start + space),
    };
    // A run of whitespace counts as one character.
    let (mut chars_left, mut was_space) = (EXCERPT_CHARS, true);
    for (position, c) in text[start..].char_indices() {
        let is_space = c.is_whitespace();
        chars_left -= usize::from(!(is_space && was_space));
        was_space = is_space;
        if chars_left == 0 {
            let end = start + position;
            let word_end = text[hit..end].rfind(char::is_whitespace).map_or(end, |space| hit + space);
            return start..word_end;
        }
    }
    start..text.len()
}

/// Collects the parts of an excerpt. Whitespace between two parts belongs to the first one.
#[derive(Default)]
struct ExcerptBuilder(Vec<ExcerptPart>);

impl ExcerptBuilder {
    fn push(&mut self, raw: &str, is_hit: bool) {
        let mut text = String::with_capacity(raw.len());
        let mut after_space = self.0.last().is_none_or(|part| part.text.ends_with(' '));
        for c in raw.chars() {
            let is_space = c.is_whitespace() || c.is_control();
            if is_space && !after_space {
                text.push(' ');
            } else if !is_space {
                text.push(c);
            }
            after_space = is_space;
        }
        if !text.is_empty() {
            self.0.push(ExcerptPart { text, is_hit });
        }
    }

    fn finish(mut self) -> Vec<ExcerptPart> {
        if let Some(last) = self.0.last_mut() {
            last.text.truncate(last.text.trim_end().len());
            if last.text.is_empty() {
                self.0.pop();
            }
        }
        self.0
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use crate::query::Query;

    /// Returns the excerpt with its matches in brackets.
    fn bracketed_excerpt(text: &str, query: &str) -> String {
        let query = Query::parse(query, Timestamp::UNIX_EPOCH).unwrap();
        let parts = excerpt(text, &query.highlight_phrases());
        let bracketed =
            parts.iter().map(|ExcerptPart { text, is_hit }| if *is_hit { format!("[{text}]") } else { text.clone() });
        bracketed.collect()
    }

    #[test]
    fn highlights_matches() {
        let far = format!("{}Your code is 4242.\n\n{}", "Lorem ipsum ".repeat(20), "dolor sit ".repeat(30));
        let table = [
            ("", "x", ""),
            ("Hello\r\n  World ", "", "Hello World"),
            ("Hello World", "nothing", "Hello World"),
            ("Hello World", "world", "Hello [World]"),
            ("Hello World", "hello world", "[Hello] [World]"),
            ("Hello World", "\"hello world\"", "[Hello World]"),
            ("Hello World", "wor*", "Hello [World]"),
            ("Hello World", "-world hello", "[Hello] World"),
            ("Hello World", "-(world -hello)", "[Hello] World"),
            ("Hello World", "subject:world", "Hello World"),
            ("Un café\u{301}, naïve!", "CAFE naive", "Un [café\u{301}], [naïve]!"),
            ("確認コードは", "コード", "確認[コード]は"),
            ("a b c d", "\"a b c\" \"b c d\" c", "[a b c d]"),
            ("<b>&amp;</b>", "amp", "<b>&[amp];</b>"),
        ];
        for (text, query, expected) in table {
            assert_eq!(bracketed_excerpt(text, query), expected, "{text} {query}");
        }
        let around = bracketed_excerpt(&far, "code 4242");
        assert!(around.starts_with("ipsum Lorem ipsum Lorem ipsum Your [code] is [4242]. dolor sit"), "{around}");
        assert!((120..=EXCERPT_CHARS + 4).contains(&around.len()), "{around}");
    }

    #[test]
    fn length_of_an_excerpt_is_limited() {
        for text in ["x".repeat(1 << 20), " ".repeat(1 << 20), "code ".repeat(1 << 18), "確".repeat(1 << 18)] {
            let parts = excerpt(&text, &Query::parse("code", Timestamp::UNIX_EPOCH).unwrap().highlight_phrases());
            assert!(parts.iter().map(|part| part.text.chars().count()).sum::<usize>() <= EXCERPT_CHARS);
        }
    }

    proptest! {
        #[test]
        fn parts_are_never_empty(text in "[ab é確\n㍿\u{301}.]{0,400}", query in "[ab確é]{1,3}( [ab]\\*)?") {
            let query = Query::parse(&query, Timestamp::UNIX_EPOCH).unwrap();
            let parts = excerpt(&text, &query.highlight_phrases());
            prop_assert!(parts.iter().all(|part| !part.text.is_empty()));
        }
    }
}
