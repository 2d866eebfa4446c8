//! Conversion of a message to the lines that a reader sees, with the ranges of emphasized text, and with all digits
//! converted to ASCII.

use std::ops::Range;

use restante_mail::mime::html_tokens::{Token, Tokens, find_attribute};
use restante_mail::mime::references::{ReferenceContext, resolve};

use crate::links::MAX_TOKENS;

/// The maximum length of the text that is examined, in bytes.
pub(super) const MAX_TEXT_BYTES: usize = 256 * 1024;
/// The maximum number of lines that are examined.
pub(super) const MAX_LINES: usize = 20_000;

/// The separator between two cells of a table.
pub(super) const CELL_SEPARATOR: char = '\t';

/// A line that is not blank.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TextLine {
    pub(super) text: String,
    /// The ranges that are displayed larger or heavier than the rest, or as code.
    pub(super) emphasized: Vec<Range<usize>>,
}

/// Returns the lines of a plain text.
pub(super) fn from_text(text: &str) -> Vec<TextLine> {
    let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
    let line = |line: &str| {
        let text: String = line.chars().filter_map(normalize_char).collect();
        TextLine { text: text.trim().to_owned(), emphasized: Vec::new() }
    };
    let lines = text.lines().map(line).filter(|line| !line.text.is_empty());
    join_single_characters(lines.take(MAX_LINES).collect())
}

/// Returns the lines of an HTML document.
pub(super) fn from_html(html: &str) -> Vec<TextLine> {
    let mut builder = LineBuilder::default();
    for token in Tokens::new(html).take(MAX_TOKENS) {
        match token {
            Token::Text(raw) => builder.push(raw),
            Token::StartTag(name, attributes) => builder.open(&name.to_ascii_lowercase(), attributes),
            Token::RawText(_) => {}
            Token::EndTag(name) => builder.close(&name.to_ascii_lowercase()),
        }
        if builder.written_bytes > MAX_TEXT_BYTES || builder.lines.len() >= MAX_LINES {
            break;
        }
    }
    builder.end_line();
    join_single_characters(builder.lines)
}

/// The separation between the last word and the next one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Blank,
    Cell,
}

/// The lines that were built so far.
#[derive(Default)]
struct LineBuilder {
    lines: Vec<TextLine>,
    line: TextLine,
    gap: Gap,
    /// The open elements that emphasize their text, each with the number of open elements of the same name inside of
    /// it.
    open_emphasis: Vec<(String, usize)>,
    written_bytes: usize,
}

impl LineBuilder {
    fn open(&mut self, name: &str, attributes: &str) {
        const VOID: [&str; 4] = ["br", "hr", "img", "input"];
        /// Elements that are nested more deeply are ignored.
        const MAX_OPEN_EMPHASIS: usize = 64;
        self.break_at(name);
        if let Some((last, nested)) = self.open_emphasis.last_mut()
            && last == name
        {
            *nested += 1;
        } else if !VOID.contains(&name)
            && self.open_emphasis.len() < MAX_OPEN_EMPHASIS
            && is_emphasized(name, attributes)
        {
            self.open_emphasis.push((name.to_owned(), 0));
        }
    }

    fn close(&mut self, name: &str) {
        if let Some((last, nested)) = self.open_emphasis.last_mut()
            && last == name
        {
            if *nested == 0 {
                self.open_emphasis.pop();
            } else {
                *nested -= 1;
            }
        }
        self.break_at(name);
    }

    fn break_at(&mut self, name: &str) {
        match name {
            "td" | "th" => self.gap = Gap::Cell,
            "br" | "p" | "div" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "table" | "tr" | "li" | "ul" | "ol"
            | "blockquote" | "section" | "article" | "header" | "footer" | "center" | "hr" | "pre" | "dl" | "dt"
            | "dd" | "body" | "html" | "main" | "aside" | "figure" | "address" => self.end_line(),
            _ => {}
        }
    }

    fn push(&mut self, raw: &str) {
        let raw = &raw[..raw.floor_char_boundary(MAX_TEXT_BYTES)];
        let start = self.line.text.len();
        for c in resolve(raw, ReferenceContext::Text).chars().filter_map(normalize_char) {
            if c.is_whitespace() {
                self.gap = self.gap.max(Gap::Blank);
                continue;
            }
            match self.gap {
                _ if self.line.text.is_empty() => {}
                Gap::None => {}
                Gap::Blank => self.line.text.push(' '),
                Gap::Cell => self.line.text.push(CELL_SEPARATOR),
            }
            self.gap = Gap::None;
            self.line.text.push(c);
        }
        let end = self.line.text.len();
        self.written_bytes += end - start;
        if end > start && !self.open_emphasis.is_empty() {
            self.line.emphasized.push(start..end);
        }
    }

    fn end_line(&mut self) {
        self.gap = Gap::None;
        if !self.line.text.is_empty() {
            self.lines.push(std::mem::take(&mut self.line));
        }
    }
}

/// Returns whether an element emphasizes its text.
fn is_emphasized(name: &str, attributes: &str) -> bool {
    const ELEMENTS: [&str; 11] = ["h1", "h2", "h3", "b", "strong", "code", "kbd", "samp", "tt", "pre", "big"];
    const STYLES: [&str; 5] = ["letter-spacing", "monospace", "courier", "bold", "font-weight:7"];
    if ELEMENTS.contains(&name) {
        return true;
    }
    let value = |name| find_attribute(attributes, name).unwrap_or_default().to_ascii_lowercase();
    let style: String = value("style").split_whitespace().collect();
    STYLES.iter().any(|emphasis| style.contains(emphasis))
        || is_large(&style)
        || ["code", "otp", "pin"].iter().any(|word| value("class").split(['-', '_', ' ']).any(|part| part == *word))
}

/// Returns whether a style without whitespace sets a font size that is larger than that of normal text.
fn is_large(style: &str) -> bool {
    let Some((_, size)) = style.split_once("font-size:") else { return false };
    let len = size.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let Ok(number) = size[..len].parse::<f32>() else { return false };
    match size[len..].get(..2) {
        Some("px") => number >= 20.0,
        Some("pt") => number >= 15.0,
        Some("em" | "re") => number >= 1.4,
        _ => false,
    }
}

/// Joins adjacent lines of a single character: some messages show every digit in a separate box.
fn join_single_characters(lines: Vec<TextLine>) -> Vec<TextLine> {
    let is_single = |line: &TextLine| {
        let mut chars = line.text.chars();
        chars.next().is_some_and(|c| c.is_ascii_digit() || c.is_ascii_uppercase()) && chars.next().is_none()
    };
    let mut joined: Vec<TextLine> = Vec::with_capacity(lines.len());
    let mut is_last_single = false;
    for line in lines {
        let single = is_single(&line);
        match joined.last_mut() {
            Some(last) if single && is_last_single => {
                last.text.push(' ');
                last.text.push_str(&line.text);
            }
            _ => joined.push(line),
        }
        is_last_single = single;
    }
    joined
}

/// Normalizes a character: digits of all scripts and full-width forms to ASCII, all dashes to one dash. Returns `None`
/// for invisible characters.
fn normalize_char(c: char) -> Option<char> {
    /// The zeros of the scripts that messages use. Nine more digits follow each.
    const ZEROS: [char; 9] = ['٠', '۰', '०', '০', '૦', '௦', '๐', '០', '０'];
    let ascii = |c: char, offset: u32| char::from_u32(u32::from(c) - offset);
    if c.is_ascii() {
        return Some(c);
    }
    if let Some(zero) = ZEROS.iter().find(|&&zero| (u32::from(zero)..u32::from(zero) + 10).contains(&u32::from(c))) {
        return ascii(c, u32::from(*zero) - u32::from('0'));
    }
    match c {
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{20e3}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' => None,
        '\u{2010}'..='\u{2013}' | '\u{2212}' => Some('-'),
        'Ａ'..='Ｚ' | 'ａ'..='ｚ' | '：' | '＃' | '％' | '－' => ascii(c, 0xfee0),
        c if c.is_whitespace() => Some(' '),
        c => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_html_to_lines() {
        let table: &[(&str, &[&str])] = &[
            ("", &[]),
            ("<p>Hello <b>you</b></p>there<br>x", &["Hello you", "there", "x"]),
            ("<span>1</span><span>2</span> <i>3</i>", &["12 3"]),
            ("<table><tr><td>Code</td> <td>12&nbsp;34</td></tr><tr><td>x</td></tr></table>", &["Code\t12 34", "x"]),
            ("<div>4</div><div>8</div><div>2</div><div>ok</div>", &["4 8 2", "ok"]),
            ("<style>p{color:#123456}</style><title>no</title>x&#8203;y&zwnj;z", &["xyz"]),
            ("１２３：٤٥٦ ०१ — ‑", &["123:456 01 — -"]),
        ];
        for (html, expected) in table {
            let lines: Vec<_> = from_html(html).into_iter().map(|line| line.text).collect();
            assert_eq!(lines, *expected, "{html}");
        }
    }

    #[test]
    fn finds_emphasized_text() {
        let table = [
            ("<h1>X</h1>y", "X"),
            ("a<b>X</b>y", "X"),
            ("a<span style='font-size: 32px'>X<span>Y</span></span>z", "XY"),
            ("a<span style='font-size:12px'>X</span>", ""),
            ("a<td class='otp-box code'>X</td>", "X"),
            ("a<td class=barcode>X</td>", ""),
            ("a<p style='letter-spacing:4px'>X</p>", "X"),
        ];
        for (html, expected) in table {
            let lines = from_html(html);
            let emphasis = lines.iter().flat_map(|line| line.emphasized.iter().map(|range| &line.text[range.clone()]));
            assert_eq!(
                emphasis.map(|text| text.trim_start_matches(CELL_SEPARATOR)).collect::<String>(),
                expected,
                "{html}"
            );
        }
    }

    #[test]
    fn limits_the_text() {
        let size = |lines: &[TextLine]| lines.iter().map(|line| line.text.len()).sum::<usize>();
        for piece in ["x", "1 ", "<p>1", "<b>1", "<div>x y</div>", "1\n"] {
            let long = piece.repeat(4 * MAX_TEXT_BYTES);
            for lines in [from_html(&long), from_text(&long)] {
                assert!(size(&lines) <= 2 * MAX_TEXT_BYTES + 1 && lines.len() <= MAX_LINES, "{piece}");
            }
        }
    }
}
