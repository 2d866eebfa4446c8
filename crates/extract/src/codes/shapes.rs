//! Candidates by shape: runs of digits, groups of digits, digits among capital letters. URLs, dates, times, amounts,
//! versions and phone numbers are excluded by their shape. The words around a candidate are considered elsewhere.

use std::ops::Range;

use super::lexicon::starts_with_unit;
use super::lines::CELL_SEPARATOR;

/// The maximum number of candidates of one line.
const MAX_CANDIDATES_PER_LINE: usize = 500;

/// A text that has the shape of a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Its range in the line.
    pub(super) range: Range<usize>,
    /// The code: digits without separators, anything else as written.
    pub(super) code: String,
    pub(super) shape: Shape,
    /// Whether a number sign precedes it.
    pub(super) has_number_sign: bool,
    /// Whether it is one of several adjacent numbers, or is followed by a unit.
    pub(super) is_doubtful: bool,
}

/// The shape of a candidate. Some shapes are more common for codes than others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// This number of digits, in one run or in groups.
    Digits(usize),
    /// Characters with spaces between all of them.
    Spaced,
    /// Four digits that can be a year.
    Year,
    /// Capital letters and digits.
    Mixed,
    /// A word followed by a number, or lower-case letters among digits.
    Wordlike,
    /// Only capital letters.
    Letters,
}

impl Shape {
    /// Returns whether many other texts have this shape, so that a candidate needs a label.
    pub(super) fn needs_label(self) -> bool {
        matches!(self, Self::Letters | Self::Wordlike | Self::Year)
    }
}

/// Returns the candidates of a line, from left to right.
pub(super) fn find_candidates(line: &str) -> Vec<Candidate> {
    let runs = find_runs(line);
    let mut found = Vec::new();
    let mut at = 0;
    while at < runs.len() && found.len() < MAX_CANDIDATES_PER_LINE {
        let cursor = RunCursor { line, runs: &runs[at..] };
        let (run_count, candidates) = cursor
            .match_spaced()
            .or_else(|| cursor.match_dashed())
            .or_else(|| cursor.match_grouped())
            .unwrap_or_else(|| cursor.match_single());
        found.extend(candidates);
        at += run_count.max(1);
    }
    found
}

/// Returns the runs of ASCII letters and digits, except those of URLs and addresses.
fn find_runs(line: &str) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut rest = 0;
    while let Some(start) = line[rest..].find(|c: char| c.is_ascii_graphic()).map(|at| rest + at) {
        let end = line[start..].find(|c: char| !c.is_ascii_graphic()).map_or(line.len(), |len| start + len);
        let word = &line[start..end];
        if !is_url_or_path(word) {
            push_runs(&mut runs, word, start);
        }
        rest = end;
    }
    runs
}

fn push_runs(runs: &mut Vec<Range<usize>>, word: &str, offset: usize) {
    let mut start = None;
    for (at, byte) in word.bytes().chain([b' ']).enumerate() {
        match (byte.is_ascii_alphanumeric(), start) {
            (true, None) => start = Some(at),
            (false, Some(from)) => {
                runs.push(offset + from..offset + at);
                start = None;
            }
            _ => {}
        }
    }
}

/// Returns whether a word is a URL, a mail address or a path.
fn is_url_or_path(word: &str) -> bool {
    let has_host = |mark: &str| word.split_once(mark).is_some_and(|(_, host)| host.contains('.'));
    word.contains("://") || has_host("@") || word.starts_with("www.") || word.contains('/') && word.contains('.')
}

/// The number of runs of a match, and its candidates.
type RunMatch = (usize, Vec<Candidate>);

/// A position in a line: the runs from there on.
#[derive(Clone, Copy)]
struct RunCursor<'a> {
    line: &'a str,
    runs: &'a [Range<usize>],
}

impl RunCursor<'_> {
    fn text(&self, run: usize) -> &str {
        &self.line[self.runs[run].clone()]
    }

    /// Returns the text between a run and the next one.
    fn separator(&self, run: usize) -> Option<&str> {
        let next = self.runs.get(run + 1)?;
        Some(&self.line[self.runs[run].end..next.start])
    }

    /// Returns the number of runs from here on that belong together.
    fn count_matching(&self, max: usize, belongs: impl Fn(&str) -> bool, separates: impl Fn(&str) -> bool) -> usize {
        let continues = |&run: &usize| self.separator(run).is_some_and(&separates) && belongs(self.text(run + 1));
        if !belongs(self.text(0)) {
            return 0;
        }
        1 + (0..max).take_while(continues).count()
    }

    /// Matches `1 2 3 4 5 6`: one character at a time.
    fn match_spaced(&self) -> Option<RunMatch> {
        const MAX_RUNS: usize = 64;
        let is_single = |text: &str| text.len() == 1 && !text.contains(|c: char| c.is_ascii_lowercase());
        let is_blank =
            |text: &str| text.trim_matches([' ', CELL_SEPARATOR, '-', '|', '.']).is_empty() && text.len() <= 8;
        let count = self.count_matching(MAX_RUNS, is_single, is_blank);
        if count < 4 {
            return None;
        }
        let code: String = (0..count).map(|run| self.text(run)).collect();
        let is_code = (4..=10).contains(&count) && code.contains(|c: char| c.is_ascii_digit());
        let candidate = is_code.then(|| self.candidate(count, code, Shape::Spaced)).flatten();
        Some((count, candidate.into_iter().collect()))
    }

    /// Matches `123-456`, `G-482913`, `ABCD-EFGH`. Other texts with dashes, and their parts, are not codes.
    fn match_dashed(&self) -> Option<RunMatch> {
        const MAX_RUNS: usize = 16;
        let count = self.count_matching(MAX_RUNS, |_| true, |separator| separator == "-");
        if count < 2 {
            return None;
        }
        let parts: Vec<&str> = (0..count).map(|run| self.text(run)).collect();
        let candidate = dashed_shape(&parts).and_then(|shape| {
            let code = if matches!(shape, Shape::Digits(_)) { parts.concat() } else { parts.join("-") };
            self.candidate(count, code, shape)
        });
        Some((count, candidate.into_iter().collect()))
    }

    /// Matches `123 456`, `12 34 56`. Groups of different lengths are a phone number or unrelated numbers.
    fn match_grouped(&self) -> Option<RunMatch> {
        const MAX_RUNS: usize = 16;
        let is_blank = |text: &str| text == " " || text == "\t";
        let count = self.count_matching(MAX_RUNS, is_digits, is_blank);
        if count < 2 {
            return None;
        }
        let lengths: Vec<usize> = (0..count).map(|run| self.text(run).len()).collect();
        let (total, first) = (lengths.iter().sum::<usize>(), lengths[0]);
        let code: String = (0..count).map(|run| self.text(run)).collect();
        let same_length = lengths.iter().all(|&len| len == first);
        if same_length
            && (2..=5).contains(&first)
            && total <= 10
            && !(first == 4 && (0..count).all(|run| is_year(self.text(run))))
        {
            return Some((count, self.candidate(count, code, Shape::Digits(total)).into_iter().collect()));
        }
        let is_phone = self.line[..self.runs[0].start].ends_with(['+', '(']) || code.starts_with('0') && total >= 8;
        if is_phone || same_length && first <= 4 {
            return Some((count, Vec::new()));
        }
        let singles = (0..count).flat_map(|run| Self { line: self.line, runs: &self.runs[run..] }.match_single().1);
        Some((count, singles.map(|candidate| Candidate { is_doubtful: true, ..candidate }).collect()))
    }

    fn match_single(&self) -> RunMatch {
        let text = self.text(0);
        let candidate = single_shape(text).and_then(|shape| self.candidate(1, text.to_owned(), shape));
        (1, candidate.into_iter().collect())
    }

    /// Returns the candidate of the next `count` runs, unless adjacent characters show that it is a part of something
    /// else.
    fn candidate(&self, count: usize, code: String, shape: Shape) -> Option<Candidate> {
        let range = self.runs[0].start..self.runs[count - 1].end;
        let (before, after) = (&self.line[..range.start], &self.line[range.end..]);
        let numbered = before.trim_end().ends_with(['#', '№']);
        let is_color = before.ends_with('#') && !is_digits(&code) && code.bytes().all(|b| b.is_ascii_hexdigit());
        if is_color || is_fragment(before, after) || is_amount(before, after) {
            return None;
        }
        let doubtful = matches!(shape, Shape::Digits(_) | Shape::Year) && starts_with_unit(after);
        Some(Candidate { range, code, shape, has_number_sign: numbered, is_doubtful: doubtful })
    }
}

/// Returns whether adjacent characters make a run a part of something else: a word, a date, a time, a fraction, a
/// masked number.
fn is_fragment(before: &str, after: &str) -> bool {
    let mut left = before.chars().rev();
    let mut right = after.chars();
    let (last, last_but_one) = (left.next(), left.next());
    let (next, next_but_one) = (right.next(), right.next());
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphabetic() && c < '\u{530}');
    let is_hidden = |c: Option<char>| c.is_some_and(|c| matches!(c, '*' | '•' | '●' | '…' | '·'));
    is_letter(last)
        || is_letter(next)
        || last.is_some_and(|c| "/\\@_&?+~^".contains(c))
        || next.is_some_and(|c| "/\\@_=+%‰°^".contains(c))
        || last.is_some_and(|c| ".,:'-".contains(c)) && is_digit(last_but_one)
        || next.is_some_and(|c| ".,:'".contains(c)) && is_digit(next_but_one)
        || next == Some('.') && next_but_one.is_some_and(|c| c.is_ascii_lowercase())
        || is_hidden(last) != is_hidden(next)
}

/// Returns whether a currency precedes or follows.
fn is_amount(before: &str, after: &str) -> bool {
    const SIGNS: &str = "$€£¥₹₽₩₪₺₫฿₴₦元円";
    const NAMES: [&str; 22] = [
        "usd", "eur", "gbp", "chf", "jpy", "cny", "inr", "pln", "czk", "huf", "ron", "sek", "nok", "dkk", "try", "rub",
        "uah", "brl", "idr", "vnd", "thb", "rp",
    ];
    let word = |text: &str| text.trim_matches(|c: char| !c.is_alphabetic()).to_ascii_lowercase();
    let is_name = |text: Option<&str>| text.is_some_and(|text| NAMES.contains(&word(text).as_str()));
    let (left, right) = (before.trim_end(), after.trim_start());
    let near = &left[left.ceil_char_boundary(left.len().saturating_sub(12))..];
    left.ends_with(|c| SIGNS.contains(c))
        || right.starts_with(|c| SIGNS.contains(c))
        || is_name(near.rsplit(' ').next())
        || is_name(right[..right.floor_char_boundary(12)].split(' ').next())
}

fn single_shape(text: &str) -> Option<Shape> {
    if is_digits(text) {
        return match text.len() {
            4 if is_year(text) => Some(Shape::Year),
            4..=10 => Some(Shape::Digits(text.len())),
            _ => None,
        };
    }
    let is_uppercase = !text.contains(|c: char| c.is_ascii_lowercase());
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    match (text.len(), digits, is_uppercase) {
        (4..=10, 0, true) => Some(Shape::Letters),
        (4..=12, 1.., true) if !is_word_with_number(text) => Some(Shape::Mixed),
        (5..=12, 1.., false) if !is_word_with_number(text) => Some(Shape::Wordlike),
        (4..=10, 1.., true) => Some(Shape::Wordlike),
        _ => None,
    }
}

fn dashed_shape(parts: &[&str]) -> Option<Shape> {
    let total: usize = parts.iter().map(|part| part.len()).sum();
    let same_length = parts.iter().all(|part| part.len() == parts[0].len());
    if parts.iter().all(|part| is_digits(part)) {
        let is_code = same_length && (2..=4).contains(&parts[0].len()) && total <= 10 && !is_date(parts);
        let are_years = parts.iter().all(|part| is_year(part));
        return (is_code && !are_years).then_some(Shape::Digits(total));
    }
    let is_uppercase = parts.iter().all(|part| !part.contains(|c: char| c.is_ascii_lowercase()));
    let digits = parts.iter().any(|part| part.contains(|c: char| c.is_ascii_digit()));
    let prefixed = parts.len() == 2
        && parts[0].len() <= 3
        && parts[0].bytes().all(|b| b.is_ascii_uppercase())
        && is_digits(parts[1])
        && (4..=8).contains(&parts[1].len());
    match (is_uppercase, digits) {
        _ if !(5..=16).contains(&total) => None,
        (true, true) if prefixed || same_length && parts[0].len() >= 3 => Some(Shape::Mixed),
        (true, true) => Some(Shape::Wordlike),
        (true, false) if same_length && parts[0].len() >= 3 => Some(Shape::Letters),
        (false, true) if same_length && parts.iter().all(|part| is_not_a_word(part)) => Some(Shape::Wordlike),
        _ => None,
    }
}

/// Returns whether a part of a code in lower case is not only a word: it contains a digit.
fn is_not_a_word(part: &str) -> bool {
    part.len() >= 3 && part.contains(|c: char| c.is_ascii_digit())
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_year(text: &str) -> bool {
    text.len() == 4 && is_digits(text) && ("1900".."2100").contains(&text)
}

/// Returns whether this is a date like `31-12-26`.
fn is_date(parts: &[&str]) -> bool {
    let [first, second, third] = parts else { return false };
    let within = |text: &str, max: u32| text.parse::<u32>().is_ok_and(|number| (1..=max).contains(&number));
    first.len() == 2
        && (within(first, 31) && within(second, 12)
            || within(second, 12) && within(third, 31)
            || within(first, 12) && within(second, 31))
}

/// Returns whether this is a word with a number: `SHA256`, `Office365`, `1080p`. Letters precede digits or the reverse,
/// and the letters are a word or a unit.
fn is_word_with_number(text: &str) -> bool {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    letters >= 3 && is_digits(&text[letters..])
        || digits > 0 && text.len() - digits <= 3 && text[digits..].bytes().all(|b| b.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_codes(line: &str) -> Vec<String> {
        find_candidates(line).into_iter().map(|candidate| candidate.code).collect()
    }

    #[test]
    fn finds_candidates() {
        let table: &[(&str, &[&str])] = &[
            ("482913", &["482913"]),
            ("Code:482913.", &["482913"]),
            ("482913.Next", &["482913"]),
            ("验证码482913,请", &["482913"]),
            ("인증번호 482913입니다", &["482913"]),
            ("123 456", &["123456"]),
            ("12 34 56", &["123456"]),
            ("1 2 3 4 5 6", &["123456"]),
            ("4\t8\t2\t9", &["4829"]),
            ("K 7 Q X 2 P", &["K7QX2P"]),
            ("123-456", &["123456"]),
            ("G-482913 FB-12345", &["G-482913", "FB-12345"]),
            ("ABCD-EFGH K7QX-2PLM", &["ABCD-EFGH", "K7QX-2PLM"]),
            ("K7QX2P k7qx2p", &["K7QX2P", "k7qx2p"]),
            ("**482913**", &["482913"]),
        ];
        for (line, expected) in table {
            assert_eq!(find_codes(line), *expected, "{line}");
        }
    }

    #[test]
    fn ignores_other_numbers() {
        let none = [
            "",
            "123 12345678901",
            "15.11.2026 11/15/2026 2026-11-15 15-11-26",
            "10:30:4500 12:3045",
            "1,234,567 12345.67 0.123456",
            "$4829 4829 € EUR 4829 4829 USD 4829元",
            "+4930123456 +49 30 123456 (030) 123456 0800 123 456",
            "4111 1111 1111 1111",
            "https://example.org/482913 a482913@example.org example.org/482913",
            "#ff5733 ****4829 4829% v1.2.4829 192.168.100.1000",
            "well-known 555-0199 1-800-555-0199 2024-2025 2024 2025",
            "é482913 x_482913 482913_x",
            "100GB",
        ];
        for line in none {
            let found: Vec<_> = find_candidates(line)
                .into_iter()
                .filter(|candidate| !candidate.is_doubtful && candidate.shape != Shape::Wordlike)
                .collect();
            assert_eq!(found, [], "{line}");
        }
    }

    #[test]
    fn limits_candidates_per_line() {
        for part in ["482913 x ", "1 ", "12 ", "123-", "A1-", "a1"] {
            assert!(find_candidates(&part.repeat(20_000)).len() <= MAX_CANDIDATES_PER_LINE + 16, "{part}");
        }
    }
}
