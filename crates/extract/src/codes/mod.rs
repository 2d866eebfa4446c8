//! One-time codes: numbers or words that a message asks its reader to enter somewhere.
//!
//! `lines` converts the message to the lines that a reader sees. `shapes` finds candidates in them. `lexicon` finds the
//! words of the table in `vocabulary`, and `labels` decides which of these words describe which number. `revoked`
//! recognizes former codes. `scoring` combines all of this, and `findings` merges the same code of several sources.
//! `otp_token` reads the code that the header declares. Time is linear in the size of the message, and all results are bounded.

mod findings;
mod labels;
mod lexicon;
mod lines;
mod otp_token;
mod revoked;
mod scoring;
mod sentences;
mod shapes;
mod vocabulary;

use std::ops::Range;

use restante_mail::mime::{HeaderField, Mime};
use serde::Serialize;

use crate::link::LinkSource;
use crate::links::links_in_bodies;
use findings::Findings;
use labels::AnalyzedLine;
pub use otp_token::otp_token_defects;
use scoring::{AnalyzedText, MessageTopics};

/// The maximum length of the words before and after a code, in bytes.
const MAX_CONTEXT_BYTES: usize = 80;

/// A possible one-time code.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Code {
    /// The text to enter: digits without separators, anything else as written.
    pub code: String,
    /// The probability that this is the code, from 0 to 1. Below 0.5 it is more likely something else.
    pub score: f64,
    /// The words before it.
    pub before: String,
    /// The words after it.
    pub after: String,
    /// The part of the message that contains it. If there are several, the one with the highest score.
    #[serde(rename = "where")]
    pub source: CodeSource,
    /// The origin of the web page that the code is for, such as `https://example.com`. Only a code of the header can have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// The part of a message that contains a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CodeSource {
    /// The header field OTP-Token.
    Header,
    /// The subject.
    Subject,
    /// The plain text, or a URL in it.
    Text,
    /// The HTML, or a link in it.
    Html,
}

/// Returns the possible one-time codes of a message, the most likely first: the code of the header field OTP-Token, then
/// those of the text.
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
        for (line_index, line) in text.lines.iter().enumerate() {
            for (candidate_index, candidate) in line.candidates.iter().enumerate() {
                let weight = text.weight(line_index, candidate_index, &topics);
                found.add(&candidate.code, weight, source, || {
                    surrounding_words(&text.lines, line_index, &candidate.range)
                });
            }
        }
    }
    for (code, source) in codes_in_links(&html, text.as_deref()) {
        found.add_from_link(&code, source);
    }
    found.into_ranked(otp_token::header_code(mime).and_then(Result::ok))
}

/// Returns the words before and after a candidate. If its line has none, those of the adjacent lines.
fn surrounding_words(lines: &[AnalyzedLine], line_index: usize, range: &Range<usize>) -> (String, String) {
    let text = &lines[line_index].line.text;
    let (before, after) = (text[..range.start].trim(), text[range.end..].trim());
    let has_words = |text: &&str| text.contains(char::is_alphanumeric);
    let line = |index: Option<usize>| {
        index.and_then(|index| lines.get(index)).map(|line| line.line.text.as_str()).unwrap_or_default()
    };
    let before = Some(before).filter(has_words).unwrap_or_else(|| line(line_index.checked_sub(1)));
    let after = Some(after).filter(has_words).unwrap_or_else(|| line(Some(line_index + 1)));
    (last_words(before), first_words(after))
}

fn first_words(text: &str) -> String {
    let truncated = &text[..text.floor_char_boundary(MAX_CONTEXT_BYTES)];
    let whole_words = truncated.rsplit_once(' ').filter(|_| truncated.len() < text.len());
    whole_words.map_or(truncated, |(words, _)| words).replace(lines::CELL_SEPARATOR, " ")
}

fn last_words(text: &str) -> String {
    let truncated = &text[text.ceil_char_boundary(text.len().saturating_sub(MAX_CONTEXT_BYTES))..];
    let whole_words = truncated.split_once(' ').filter(|_| truncated.len() < text.len());
    whole_words.map_or(truncated, |(_, words)| words).replace(lines::CELL_SEPARATOR, " ")
}

/// Returns the codes in the query parameters of links, if the name of the parameter is that of a code.
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
