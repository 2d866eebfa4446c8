//! A few words of a mail around what was looked for, so that one sees why it was found. What the mail says goes out as plain text in
//! pieces; how a piece that was found is shown is somebody else's business.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};

use crate::query::Phrase;
use crate::words;

/// How long a snippet is, in characters, and how much of that stands before the first place.
const SNIPPET_CHARS: usize = 160;
const LEAD_CHARS: usize = 40;
/// How much of a text is looked through, in bytes: as much as the index does.
const MAX_TEXT_BYTES: usize = 256 << 10;

/// A part of a snippet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnippetPart {
    /// What the mail says, with one blank for each run of blanks and line ends.
    pub text: String,
    /// Whether it was looked for.
    pub is_hit: bool,
}

/// The part of a text around the first of these phrases, or its beginning when there is none of them.
pub(crate) fn snippet(text: &str, phrases: &[&Phrase]) -> Vec<SnippetPart> {
    let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
    let hits = first_hits(text, phrases);
    let window = window(text, hits.first());
    let mut pieces = SnippetBuilder::default();
    let mut at = window.start;
    for hit in hits.iter().filter(|hit| hit.start < window.end) {
        let end = hit.end.min(window.end);
        pieces.push(&text[at..hit.start], false);
        pieces.push(&text[hit.start..end], true);
        at = end;
    }
    pieces.push(&text[at..window.end], false);
    pieces.finish()
}

/// The places of the first phrase that is found, and of those that follow it closely.
fn first_hits(text: &str, phrases: &[&Phrase]) -> Vec<Range<usize>> {
    let mut hits: Vec<Range<usize>> = Vec::new();
    let Some(longest) = phrases.iter().map(|phrase| phrase.words.len()).max() else { return hits };
    let mut recent: VecDeque<(String, Range<usize>)> = VecDeque::with_capacity(longest);
    words::for_each(text, |word, place| {
        // A character takes four bytes at most.
        if hits.first().is_some_and(|first| place.start > first.start + 4 * SNIPPET_CHARS) {
            return ControlFlow::Break(());
        }
        let mut slot =
            if recent.len() == longest { recent.pop_front().unwrap_or_default() } else { Default::default() };
        slot.0.clear();
        slot.0.push_str(word);
        slot.1 = place.clone();
        recent.push_back(slot);
        let starts = phrases.iter().filter_map(|phrase| phrase_start(phrase, &recent));
        if let Some(start) = starts.min() {
            hits.push(start..place.end);
        }
        ControlFlow::Continue(())
    });
    hits.sort_unstable_by_key(|hit| hit.start);
    // Those of two phrases can overlap.
    hits.dedup_by(|next, hit| {
        let overlap = next.start < hit.end;
        hit.end = if overlap { hit.end.max(next.end) } else { hit.end };
        overlap
    });
    hits
}

/// Where a phrase starts that ends with the last of these words.
fn phrase_start(phrase: &Phrase, recent: &VecDeque<(String, Range<usize>)>) -> Option<usize> {
    let (last, before) = phrase.words.split_last()?;
    let (word, _) = recent.back()?;
    if !(word == last || phrase.is_prefix && word.starts_with(last)) {
        return None;
    }
    let first = recent.len().checked_sub(phrase.words.len())?;
    let same = recent.range(first..).zip(before).all(|((word, _), expected)| word == expected);
    same.then(|| recent[first].1.start)
}

/// What of a text is shown: from a little before the hit, or from the beginning, at the border of a word where there is one.
fn window(text: &str, hit: Option<&Range<usize>>) -> Range<usize> {
    let hit = hit.map_or(0, |hit| hit.start);
    let before = &text[..hit];
    let start = match before.char_indices().rev().nth(LEAD_CHARS - 1) {
        None => 0,
        Some((cut, _)) => before[cut..].find(char::is_whitespace).map_or(cut, |blank| cut + blank),
    };
    // Runs of blanks count as one.
    let (mut room, mut was_blank) = (SNIPPET_CHARS, true);
    for (at, c) in text[start..].char_indices() {
        let is_blank = c.is_whitespace();
        room -= usize::from(!(is_blank && was_blank));
        was_blank = is_blank;
        if room == 0 {
            let end = start + at;
            let word = text[hit..end].rfind(char::is_whitespace).map_or(end, |blank| hit + blank);
            return start..word;
        }
    }
    start..text.len()
}

/// Pieces while they are written. Blanks at the border of two belong to the first.
#[derive(Default)]
struct SnippetBuilder(Vec<SnippetPart>);

impl SnippetBuilder {
    fn push(&mut self, raw: &str, is_hit: bool) {
        let mut text = String::with_capacity(raw.len());
        let mut after_blank = self.0.last().is_none_or(|piece| piece.text.ends_with(' '));
        for c in raw.chars() {
            let is_blank = c.is_whitespace() || c.is_control();
            if is_blank && !after_blank {
                text.push(' ');
            } else if !is_blank {
                text.push(c);
            }
            after_blank = is_blank;
        }
        if !text.is_empty() {
            self.0.push(SnippetPart { text, is_hit });
        }
    }

    fn finish(mut self) -> Vec<SnippetPart> {
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

    /// The snippet with its hits in brackets.
    fn shown(text: &str, query: &str) -> String {
        let query = Query::parse(query, Timestamp::UNIX_EPOCH).unwrap();
        let pieces = snippet(text, &query.highlight_phrases());
        let bracketed =
            pieces.iter().map(|SnippetPart { text, is_hit }| if *is_hit { format!("[{text}]") } else { text.clone() });
        bracketed.collect()
    }

    #[test]
    fn snippets() {
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
            assert_eq!(shown(text, query), expected, "{text} {query}");
        }
        let around = shown(&far, "code 4242");
        assert!(around.starts_with("ipsum Lorem ipsum Lorem ipsum Your [code] is [4242]. dolor sit"), "{around}");
        assert!((120..=SNIPPET_CHARS + 4).contains(&around.len()), "{around}");
    }

    #[test]
    fn a_snippet_is_short_whatever_the_text_is() {
        for text in ["x".repeat(1 << 20), " ".repeat(1 << 20), "code ".repeat(1 << 18), "確".repeat(1 << 18)] {
            let pieces = snippet(&text, &Query::parse("code", Timestamp::UNIX_EPOCH).unwrap().highlight_phrases());
            assert!(pieces.iter().map(|piece| piece.text.chars().count()).sum::<usize>() <= SNIPPET_CHARS);
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "[ab é確\n㍿\u{301}.]{0,400}", query in "[ab確é]{1,3}( [ab]\\*)?") {
            let query = Query::parse(&query, Timestamp::UNIX_EPOCH).unwrap();
            let pieces = snippet(&text, &query.highlight_phrases());
            prop_assert!(pieces.iter().all(|piece| !piece.text.is_empty()));
        }
    }
}
