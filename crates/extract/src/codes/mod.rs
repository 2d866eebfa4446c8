//! One-time codes: the number or word that a mail wants to be typed in somewhere.
//!
//! `lines` makes the mail into the lines that a reader sees, `shapes` finds what could be a code in them, `lexicon` the words
//! of the table in `words`, and `labels` says which of these words is for which number; `revoked` knows those that were codes
//! and are none any more. `weigh` puts it all together, and `findings` makes the same code in several places one. Time is
//! linear in the mail, and all that is found is bounded.

mod findings;
mod labels;
mod lexicon;
mod lines;
mod revoked;
mod scoring;
mod sentences;
mod shapes;
mod vocabulary;

use std::ops::Range;

use restante_mail::mime::{HeaderField, Mime};

use crate::links::{LinkSource, links_in_bodies};
use findings::Findings;
use labels::AnalyzedLine;
use scoring::{AnalyzedText, MessageTopics};

/// How much of the words around a code is given, in bytes.
const MAX_CONTEXT_BYTES: usize = 80;

/// Something in a mail that may be a one-time code.
#[derive(Debug, Clone, PartialEq)]
pub struct Code {
    /// What to type in: digits without the blanks or dashes between them, anything else as it is written.
    pub code: String,
    /// How likely it is the code, from 0 to 1. Below 0.5 it is more likely something else.
    pub score: f64,
    /// The words before it.
    pub before: String,
    /// The words behind it.
    pub after: String,
    /// Where it was found, or where it was clearest when it is in several places.
    pub source: CodeSource,
}

/// Where a code was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CodeSource {
    /// In the subject.
    Subject,
    /// In the plain text, or in an address there.
    Text,
    /// In the HTML, or in a link there.
    Html,
}

/// What may be one-time codes in a mail, the likeliest first.
pub fn codes(mime: &Mime) -> Vec<Code> {
    let subject = mime
        .header()
        .iter()
        .find(|field| field.has_name("Subject"))
        .map(HeaderField::decoded_value)
        .unwrap_or_default();
    let (html, text) = (mime.html(), mime.text_body());
    let subject = AnalyzedText::new(lines::from_text(&subject), true);
    let texts = [
        AnalyzedText::new(lines::from_text(text.as_deref().unwrap_or_default()), false),
        AnalyzedText::new(lines::from_html(&html), false),
    ];
    let topics = MessageTopics::from_texts(&subject, &texts);
    let mut found = Findings::default();
    for (source, text) in
        [(CodeSource::Subject, &subject), (CodeSource::Text, &texts[0]), (CodeSource::Html, &texts[1])]
    {
        for (at, line) in text.lines.iter().enumerate() {
            for (number, candidate) in line.candidates.iter().enumerate() {
                let weight = text.weight(at, number, &topics);
                found.add(&candidate.code, weight, source, || surrounding_words(&text.lines, at, &candidate.range));
            }
        }
    }
    for (code, source) in codes_in_links(&html, text.as_deref()) {
        found.add_from_link(&code, source);
    }
    found.into_ranked()
}

/// The words before and behind a candidate; those of the next lines where it has none on its own.
fn surrounding_words(lines: &[AnalyzedLine], at: usize, range: &Range<usize>) -> (String, String) {
    let text = &lines[at].line.text;
    let (before, after) = (text[..range.start].trim(), text[range.end..].trim());
    let has_words = |text: &&str| text.contains(char::is_alphanumeric);
    let line =
        |at: Option<usize>| at.and_then(|at| lines.get(at)).map(|line| line.line.text.as_str()).unwrap_or_default();
    let before = Some(before).filter(has_words).unwrap_or_else(|| line(at.checked_sub(1)));
    let after = Some(after).filter(has_words).unwrap_or_else(|| line(Some(at + 1)));
    (last_words(before), first_words(after))
}

fn first_words(text: &str) -> String {
    let truncated = &text[..text.floor_char_boundary(MAX_CONTEXT_BYTES)];
    let words = if truncated.len() < text.len() {
        truncated.rsplit_once(' ').map_or(truncated, |(words, _)| words)
    } else {
        truncated
    };
    words.replace(lines::CELL_SEPARATOR, " ")
}

fn last_words(text: &str) -> String {
    let truncated = &text[text.ceil_char_boundary(text.len().saturating_sub(MAX_CONTEXT_BYTES))..];
    let words = if truncated.len() < text.len() {
        truncated.split_once(' ').map_or(truncated, |(_, words)| words)
    } else {
        truncated
    };
    words.replace(lines::CELL_SEPARATOR, " ")
}

/// The codes that links carry in their query, under a name that says so.
fn codes_in_links(html: &str, text: Option<&str>) -> Vec<(String, CodeSource)> {
    const NAMES: [&str; 10] =
        ["code", "otp", "pin", "token", "passcode", "verification_code", "verificationcode", "confirm", "key", "c"];
    let mut found = Vec::new();
    for link in links_in_bodies(html, text) {
        let source = match link.source {
            LinkSource::Html => CodeSource::Html,
            LinkSource::Text => CodeSource::Text,
            LinkSource::Header => continue,
        };
        let query = link.href.split_once('?').map_or("", |(_, query)| query.split('#').next().unwrap_or_default());
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            if !NAMES.contains(&name.to_ascii_lowercase().as_str()) || value.len() > 16 {
                continue;
            }
            if let [candidate] = shapes::find_candidates(value).as_slice()
                && candidate.range == (0..value.len())
            {
                found.push((candidate.code.clone(), source));
            }
        }
    }
    found
}
