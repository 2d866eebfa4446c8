//! Labels of numbers: decides what the words on the same line and on adjacent lines say about a number.

use std::collections::HashSet;
use std::ops::Range;

use super::lexicon::{WordMatch, find_words, words_within};
use super::lines::TextLine;
use super::revoked;
use super::sentences::{MAX_LABEL_DISTANCE, MAX_WORD_DISTANCE, contains_sentence_end};
use super::shapes::{Candidate, find_candidates};
use super::vocabulary::Sense;

/// The maximum number of candidates of a text.
const MAX_CANDIDATES: usize = 5000;

/// The strength of the label of a former code. It is lower than that of any label of a current code.
const FORMER_CODE_STRENGTH: f64 = 0.4;

/// The factors for the strength of labels on the lines before a number, the nearest first.
const LINES_BEFORE_SCALE: [f64; 3] = [0.85, 0.65, 0.45];
/// The factors for the strength of labels on the lines after a number, the nearest first.
const LINES_AFTER_SCALE: [f64; 2] = [0.55, 0.35];

/// The label of a candidate, and its strength up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Label {
    /// No label.
    None,
    /// The words describe an action, such as signing in.
    Action(f64),
    /// It is a code.
    Code(f64),
    /// It was a code, but is no longer valid.
    Revoked,
    /// It is a number of another kind.
    Other,
}

impl Label {
    fn scaled(self, scale: f64) -> Self {
        match self {
            Self::Code(strength) => Self::Code(strength * scale),
            Self::Action(strength) => Self::Action(strength * scale),
            Self::Other | Self::Revoked | Self::None => Self::None,
        }
    }

    /// Returns the stronger one of two labels.
    fn or_stronger(self, other: Self) -> Self {
        match (self, other) {
            (Self::Other, _) | (_, Self::Other) => Self::Other,
            (Self::Revoked, _) | (_, Self::Revoked) => Self::Revoked,
            (Self::Code(left), Self::Code(right)) => Self::Code(left.max(right)),
            (code @ Self::Code(_), _) | (_, code @ Self::Code(_)) => code,
            (Self::Action(left), Self::Action(right)) => Self::Action(left.max(right)),
            (action @ Self::Action(_), _) | (_, action @ Self::Action(_)) => action,
            (Self::None, Self::None) => Self::None,
        }
    }
}

/// A line with its words and candidates.
pub(super) struct AnalyzedLine {
    pub(super) line: TextLine,
    pub(super) candidates: Vec<Candidate>,
    /// The senses of all its words.
    pub(super) senses: HashSet<Sense>,
    words: Vec<WordMatch>,
    /// The label that the line gives to numbers on the next line.
    label_for_next: Label,
}

impl AnalyzedLine {
    /// Analyzes lines. Stops finding candidates after the maximum number.
    pub(super) fn analyze_all(lines: Vec<TextLine>) -> Vec<Self> {
        let mut seen = 0;
        let analyze = |line: TextLine| {
            let candidates = if seen < MAX_CANDIDATES { find_candidates(&line.text) } else { Vec::new() };
            seen += candidates.len();
            Self::new(line, candidates)
        };
        lines.into_iter().map(analyze).collect()
    }

    pub(super) fn has(&self, sense: Sense) -> bool {
        self.senses.contains(&sense)
    }

    fn new(line: TextLine, candidates: Vec<Candidate>) -> Self {
        let words = find_words(&line.text);
        let senses = words.iter().map(|word| word.sense).collect();
        let mut analyzed = Self { line, candidates, senses, words, label_for_next: Label::None };
        analyzed.label_for_next = analyzed.find_label_for_next();
        analyzed
    }

    /// Returns the label that the line gives to the next line. A label before a number of this line belongs to that
    /// number. A warning not to share codes is not a label.
    fn find_label_for_next(&self) -> Label {
        let previous_number_end = self.candidates.last().map_or(0, |candidate| candidate.range.end);
        let last = |sense| self.words.iter().rfind(|word| word.sense == sense);
        let is_label = |word: &&WordMatch| {
            self.line.text.len() - word.end <= MAX_LABEL_DISTANCE / 2 && word.end > previous_number_end
        };
        match (last(Sense::Code), last(Sense::Other).filter(is_label)) {
            (Some(code), Some(other)) if other.start > code.end && other.start - code.end < MAX_LABEL_DISTANCE / 4 => {
                Label::Other
            }
            (None, Some(_)) => Label::Other,
            (Some(_), _) if self.has(Sense::Secret) => Label::None,
            _ if revoked::is_labeled_former(
                &self.line.text,
                &self.words,
                previous_number_end..self.line.text.len(),
            ) =>
            {
                Label::Code(FORMER_CODE_STRENGTH)
            }
            (Some(code), _) if code.end > previous_number_end => Label::Code(1.0),
            (Some(_), _) => Label::Code(0.35),
            (None, None) if self.has(Sense::Action) => Label::Action(if previous_number_end == 0 { 1.0 } else { 0.35 }),
            (None, None) => Label::None,
        }
    }

    /// Returns the label of a candidate by the words of its own line.
    fn label_of(&self, candidate_index: usize) -> Label {
        let label = match self.label_before(candidate_index) {
            action @ (Label::None | Label::Action(_)) => self.label_after(candidate_index, action),
            label => label,
        };
        let (Range { start, end }, range) =
            (self.range_between_neighbors(candidate_index), &self.candidates[candidate_index].range);
        match label {
            Label::Other => Label::Other,
            _ if revoked::is_declared_invalid(&self.line.text, &self.words, range.end..end) => Label::Revoked,
            Label::Code(strength) if revoked::is_labeled_former(&self.line.text, &self.words, start..range.start) => {
                Label::Code(strength.min(FORMER_CODE_STRENGTH))
            }
            Label::None | Label::Action(_) if self.is_used_for_action(candidate_index) => Label::Code(0.6),
            label => label,
        }
    }

    /// Returns the range between the previous candidate and the next one.
    fn range_between_neighbors(&self, candidate_index: usize) -> Range<usize> {
        let start = candidate_index.checked_sub(1).map_or(0, |last| self.candidates[last].range.end);
        let end = self.candidates.get(candidate_index + 1).map_or(self.line.text.len(), |next| next.range.start);
        start..end
    }

    /// Returns whether the number is used for an action, as in `Use 482913 to verify` and `to verify, use 482913`. Such
    /// a number is a code.
    fn is_used_for_action(&self, candidate_index: usize) -> bool {
        let Candidate { range, shape, .. } = &self.candidates[candidate_index];
        let words = words_within(&self.words, &self.range_between_neighbors(candidate_index));
        let gap =
            |word: &WordMatch| if word.end <= range.start { word.end..range.start } else { range.end..word.start };
        let is_within = |gap: Range<usize>, reach| {
            gap.len() <= reach && self.line.text.get(gap).is_some_and(|gap| !contains_sentence_end(gap))
        };
        let is_near = |sense, reach| words.iter().any(|word| word.sense == sense && is_within(gap(word), reach));
        !shape.needs_label() && is_near(Sense::Use, MAX_LABEL_DISTANCE / 2) && is_near(Sense::Action, MAX_WORD_DISTANCE)
    }

    /// Returns the label before a number. Each label belongs to one number only.
    fn label_before(&self, candidate_index: usize) -> Label {
        let Candidate { range, shape, .. } = &self.candidates[candidate_index];
        let previous_number_end = candidate_index.checked_sub(1).map_or(0, |last| self.candidates[last].range.end);
        let before = &self.words[..self.words.partition_point(|word| word.start < range.start)];
        let mut action = Label::None;
        for word in before.iter().rev() {
            let Some(gap) = range.start.checked_sub(word.end) else { continue };
            let is_taken = word.end <= previous_number_end;
            if gap > MAX_WORD_DISTANCE {
                break;
            }
            match word.sense {
                Sense::Other if gap <= MAX_LABEL_DISTANCE && !is_taken => return Label::Other,
                Sense::Code => {
                    let has_sentence_end = contains_sentence_end(&self.line.text[word.end..range.start]);
                    let is_far = gap > MAX_LABEL_DISTANCE || is_taken || has_sentence_end;
                    if shape.needs_label() && is_far || has_sentence_end && self.has(Sense::Secret) {
                        continue;
                    }
                    return Label::Code(match gap {
                        _ if is_taken || has_sentence_end => 0.5,
                        ..=MAX_LABEL_DISTANCE => 1.0,
                        _ => 0.8,
                    });
                }
                Sense::Action if action == Label::None => action = Label::Action(if is_taken { 0.3 } else { 1.0 }),
                _ => {}
            }
        }
        action
    }

    /// Returns the label after a number, up to the next number. It counts only if the label before is at most an
    /// action.
    fn label_after(&self, candidate_index: usize, mut action: Label) -> Label {
        let Candidate { range, shape, .. } = &self.candidates[candidate_index];
        let end = self.candidates.get(candidate_index + 1).map_or(self.line.text.len(), |next| next.range.start);
        let following = &self.words[self.words.partition_point(|word| word.start < range.end)..];
        for word in following.iter().take_while(|word| word.start < end) {
            let gap = word.start - range.end;
            if gap > MAX_WORD_DISTANCE / 2 {
                break;
            }
            match word.sense {
                Sense::Other if gap <= MAX_LABEL_DISTANCE / 2 => return Label::Other,
                Sense::Code if shape.needs_label() && gap > MAX_LABEL_DISTANCE => {}
                Sense::Code => return Label::Code(0.9),
                Sense::Action if action == Label::None => action = Label::Action(0.9),
                // `Enter 482913 to verify`: a number between the two words is a code.
                Sense::Action if action == Label::Action(1.0) && !shape.needs_label() => action = Label::Code(0.6),
                _ => {}
            }
        }
        action
    }
}

/// Returns the label of a candidate. `alone` is true if its line contains nothing else.
pub(super) fn label_for(lines: &[AnalyzedLine], line_index: usize, candidate_index: usize, alone: bool) -> Label {
    match lines[line_index].label_of(candidate_index) {
        Label::Code(_) if !alone && is_invalidated_on_next_line(lines, line_index, candidate_index) => Label::Revoked,
        label @ (Label::Code(_) | Label::Other | Label::Revoked) => label,
        action => action.or_stronger(label_from_other_lines(
            lines,
            line_index,
            &lines[line_index].candidates[candidate_index],
            alone,
        )),
    }
}

/// Returns whether the sentence of a number continues on the next line and declares it invalid there.
fn is_invalidated_on_next_line(lines: &[AnalyzedLine], line_index: usize, candidate_index: usize) -> bool {
    let AnalyzedLine { line, candidates, .. } = &lines[line_index];
    let following = &line.text[candidates[candidate_index].range.end..];
    let is_last = candidate_index + 1 == candidates.len() && following.len() <= MAX_LABEL_DISTANCE;
    let Some(next) = lines.get(line_index + 1).filter(|_| is_last) else { return false };
    let text = format!("{following} {}", &next.line.text[..next.line.text.floor_char_boundary(MAX_WORD_DISTANCE)]);
    revoked::is_declared_invalid(&text, &find_words(&text), 0..text.len())
}

/// Returns the label of a candidate by the lines around it.
fn label_from_other_lines(lines: &[AnalyzedLine], line_index: usize, candidate: &Candidate, alone: bool) -> Label {
    if candidate.shape.needs_label() && !alone {
        return Label::None;
    }
    let mut label = Label::None;
    for (distance, (line, scale)) in lines[..line_index].iter().rev().zip(LINES_BEFORE_SCALE).enumerate() {
        let is_first = alone || candidate.range.start < MAX_LABEL_DISTANCE;
        if line.label_for_next == Label::Other && distance == 0 && is_first {
            return Label::Other;
        }
        label = label.or_stronger(line.label_for_next.scaled(scale));
    }
    if matches!(label, Label::Code(_)) && !alone {
        return label;
    }
    for (line, scale) in
        lines[line_index + 1..].iter().zip(LINES_AFTER_SCALE).filter(|(line, _)| line.candidates.is_empty())
    {
        let scale = if alone { scale } else { scale / 2.0 };
        label = label.or_stronger(line.label_for_next.scaled(scale));
    }
    label
}

#[cfg(test)]
mod tests {
    use super::super::lines::from_text;
    use super::*;

    /// Returns the label of a number in a text.
    fn label_in_text(text: &str, code: &str) -> Label {
        let lines = AnalyzedLine::analyze_all(from_text(text));
        let position_in = |line: &AnalyzedLine| line.candidates.iter().position(|candidate| candidate.code == code);
        let (line_index, candidate_index) =
            lines.iter().enumerate().find_map(|(index, line)| Some((index, position_in(line)?))).expect("a number");
        label_for(&lines, line_index, candidate_index, lines[line_index].line.text == code)
    }

    #[test]
    fn labels_numbers() {
        let table = [
            ("Your code is 482913", Label::Code(1.0)),
            ("482913 is your code", Label::Code(0.9)),
            ("Your code for order 12345 is 482913", Label::Code(0.5)),
            ("Enter 482913 to verify", Label::Code(0.6)),
            ("Confirm 482913", Label::Action(1.0)),
            ("Order 482913", Label::Other),
            ("482913 is the order number", Label::Other),
            ("Never share your code. 482913 people did", Label::None),
            ("Your code\n482913", Label::Code(0.85)),
            ("Your code:\n\n482913", Label::Code(0.85)),
            ("Your code\nis here\n482913", Label::Code(0.65)),
            ("482913\nis your code", Label::Code(0.55)),
            ("Order number\n482913", Label::Other),
            ("Never share your code\n482913", Label::None),
            ("Hello\n482913\nGoodbye", Label::None),
            ("Use 482-913 to reset your password", Label::Code(0.6)),
            ("To sign in, use 482913", Label::Code(0.6)),
            ("Use 482913 with care. Then sign in", Label::Action(0.9)),
            ("Your old code is 482913", Label::Code(FORMER_CODE_STRENGTH)),
            ("Your old code 482913 is no longer valid", Label::Revoked),
            ("Your code 482913 has expired", Label::Revoked),
            ("Your order 482913 has expired", Label::Other),
            ("The code 482913\nis no longer valid", Label::Revoked),
            ("The code 482913 is no\nlonger valid", Label::Revoked),
            ("The code is 482913.\nIf it is no longer valid, ask us", Label::Code(1.0)),
            ("Your old code:\n482913", Label::Code(FORMER_CODE_STRENGTH * 0.85)),
            ("Your old code has been replaced by:\n482913", Label::Code(0.85)),
        ];
        for (text, expected) in table {
            assert_eq!(label_in_text(text, "482913"), expected, "{text}");
        }
        assert_eq!(label_in_text("Your code for order 12345 is 482913", "12345"), Label::Other);
        assert_eq!(label_in_text("Your code is 2048", "2048"), Label::Code(1.0));
        assert_eq!(label_in_text("Your code was sent on 15 November 2026", "2026"), Label::None);
    }
}
