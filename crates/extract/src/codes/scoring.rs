//! Weights of candidates: by shape, emphasis, label, and the topics of the message. `labels` decides which words are
//! near enough to count.

use std::collections::HashSet;

use super::labels::{AnalyzedLine, Label, label_for};
use super::lines::{CELL_SEPARATOR, TextLine};
use super::shapes::{Candidate, Shape};
use super::vocabulary::Sense;

/// The maximum weight of a candidate without a label.
const MAX_UNLABELED_WEIGHT: f64 = 0.36;

/// The senses of the words in a message.
pub(super) struct MessageTopics {
    subject: HashSet<Sense>,
    all: HashSet<Sense>,
}

impl MessageTopics {
    /// Collects the senses of the subject and the texts.
    pub(super) fn from_texts(subject: &AnalyzedText, texts: &[AnalyzedText]) -> Self {
        let senses = |text: &AnalyzedText| {
            text.lines.iter().flat_map(|line| line.senses.iter().copied()).collect::<HashSet<_>>()
        };
        let subject = senses(subject);
        let all = texts.iter().flat_map(senses).chain(subject.iter().copied()).collect();
        Self { subject, all }
    }

    /// Returns the bonus that the subject adds.
    fn subject_bonus(&self) -> f64 {
        if self.subject.contains(&Sense::Code) {
            0.3
        } else if self.subject.contains(&Sense::Action) && self.has(Sense::Code) {
            0.2
        } else {
            0.0
        }
    }

    fn has(&self, sense: Sense) -> bool {
        self.all.contains(&sense)
    }
}

/// The subject, the text or the HTML of a message.
pub(super) struct AnalyzedText {
    pub(super) lines: Vec<AnalyzedLine>,
    is_subject: bool,
    /// The line where the footer starts. The footer contains text that all messages of a sender have.
    footer: usize,
}

impl AnalyzedText {
    /// Analyzes the lines of a text.
    pub(super) fn new(lines: Vec<TextLine>, is_subject: bool) -> Self {
        let lines = AnalyzedLine::analyze_all(lines);
        Self { footer: find_footer(&lines), lines, is_subject }
    }

    /// Returns the weight of a candidate of a line. About 0.45 is doubtful, 1 is almost certain.
    pub(super) fn weight(&self, line_index: usize, candidate_index: usize, topics: &MessageTopics) -> f64 {
        let line = &self.lines[line_index];
        let candidate = &line.candidates[candidate_index];
        let alone = is_alone(&line.line.text, candidate);
        let stands_out = alone || is_emphasized(&line.line, candidate);
        let base = self.base_weight(line_index, candidate, alone, topics);
        let bonus = topics.subject_bonus();
        match label_for(&self.lines, line_index, candidate_index, alone) {
            Label::Other => 0.0,
            Label::Code(strength) => base + 0.6 * strength + 0.3 * bonus,
            // It is reported because the message calls it a code.
            Label::Revoked => base.min(MAX_UNLABELED_WEIGHT / 2.0),
            // A year or a word needs a label: too many other texts have this shape.
            _ if candidate.shape.needs_label() => base.min(MAX_UNLABELED_WEIGHT / 2.0),
            Label::Action(strength) if stands_out || topics.has(Sense::Code) && topics.has(Sense::Expiry) => {
                base + 0.25 * strength + 0.5 * bonus
            }
            _ if self.is_subject && topics.has(Sense::Code) => base + 0.25,
            _ if bonus > 0.0 && stands_out && !self.is_subject && line_index < self.footer => base + 0.7 * bonus,
            _ => base.min(MAX_UNLABELED_WEIGHT),
        }
    }

    /// Returns the weight of a candidate without regard to its label.
    fn base_weight(&self, line_index: usize, candidate: &Candidate, alone: bool, topics: &MessageTopics) -> f64 {
        let near = &self.lines[line_index.saturating_sub(1)..(line_index + 2).min(self.lines.len())];
        let reasons = [
            (alone, 0.12),
            (is_emphasized(&self.lines[line_index].line, candidate), 0.1),
            (topics.has(Sense::Expiry), 0.04),
            (topics.has(Sense::Secret), 0.03),
            (candidate.has_number_sign, -0.25),
            (candidate.is_doubtful, -0.3),
            (near.iter().any(|line| line.has(Sense::Promo)), -0.6),
            (line_index >= self.footer, -0.2),
        ];
        shape_weight(candidate.shape)
            + reasons.iter().filter(|(applies, _)| *applies).map(|(_, weight)| weight).sum::<f64>()
    }
}

/// Returns the weight of a shape: how common it is for codes.
fn shape_weight(shape: Shape) -> f64 {
    match shape {
        Shape::Spaced => 0.3,
        Shape::Digits(6) => 0.27,
        Shape::Digits(4 | 5 | 8) | Shape::Mixed => 0.2,
        Shape::Digits(7) => 0.17,
        Shape::Digits(_) => 0.08,
        Shape::Wordlike | Shape::Letters => 0.02,
        Shape::Year => 0.0,
    }
}

/// Returns the line where the footer starts. It is after all lines that mention a code.
fn find_footer(lines: &[AnalyzedLine]) -> usize {
    let after_codes = lines.iter().rposition(|line| line.has(Sense::Code)).map_or(0, |last| last + 1);
    lines[after_codes..].iter().position(|line| line.has(Sense::Footer)).map_or(lines.len(), |at| after_codes + at)
}

/// Returns whether the candidate is alone on its line, or in its table cell.
fn is_alone(line: &str, candidate: &Candidate) -> bool {
    let in_cell = |c: &char| *c != CELL_SEPARATOR;
    let mut before = line[..candidate.range.start].chars().rev().take_while(in_cell);
    let mut after = line[candidate.range.end..].chars().take_while(in_cell);
    !before.any(char::is_alphanumeric) && !after.any(char::is_alphanumeric)
}

fn is_emphasized(line: &TextLine, candidate: &Candidate) -> bool {
    let next = line.emphasized.partition_point(|range| range.end <= candidate.range.start);
    line.emphasized.get(next).is_some_and(|range| range.start <= candidate.range.start)
}
