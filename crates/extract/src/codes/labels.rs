//! What the words near a number call it: on its own line, before it and behind it, and on the lines around.

use std::collections::HashSet;
use std::ops::Range;

use super::lexicon::{Hit, hits, within};
use super::lines::Line;
use super::revoked;
use super::sentences::{LABEL, REACH, ends_sentence};
use super::shapes::{Candidate, candidates};
use super::words::Sense;

/// How many candidates of a text are looked at.
const MAX_CANDIDATES: usize = 5000;

/// How much it says that a number was the code before: less than any word for the one that followed it.
const FORMER: f64 = 0.4;

/// How much the lines before count, the nearest first.
const BEFORE: [f64; 3] = [0.85, 0.65, 0.45];
/// How much the lines behind count.
const BEHIND: [f64; 2] = [0.55, 0.35];

/// What the words near a candidate say, and how strongly, up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Word {
    /// Nothing.
    None,
    /// Somebody signs in, confirms and the like.
    Act(f64),
    /// It is a code.
    Code(f64),
    /// It was a code, and is none any more.
    Revoked,
    /// It is a number of another kind.
    Other,
}

impl Word {
    fn scaled(self, scale: f64) -> Self {
        match self {
            Self::Code(strength) => Self::Code(strength * scale),
            Self::Act(strength) => Self::Act(strength * scale),
            Self::Other | Self::Revoked | Self::None => Self::None,
        }
    }

    /// Of two words the one that says more.
    fn or_stronger(self, other: Self) -> Self {
        match (self, other) {
            (Self::Other, _) | (_, Self::Other) => Self::Other,
            (Self::Revoked, _) | (_, Self::Revoked) => Self::Revoked,
            (Self::Code(one), Self::Code(other)) => Self::Code(one.max(other)),
            (code @ Self::Code(_), _) | (_, code @ Self::Code(_)) => code,
            (Self::Act(one), Self::Act(other)) => Self::Act(one.max(other)),
            (act @ Self::Act(_), _) | (_, act @ Self::Act(_)) => act,
            (Self::None, Self::None) => Self::None,
        }
    }
}

/// A line with what is in it.
pub(super) struct Read {
    pub(super) line: Line,
    pub(super) candidates: Vec<Candidate>,
    /// What any of its words says.
    pub(super) senses: HashSet<Sense>,
    hits: Vec<Hit>,
    /// What the line says to the one behind it.
    leads_to: Word,
}

impl Read {
    /// Reads lines, as far as there are not too many candidates in them.
    pub(super) fn all(lines: Vec<Line>) -> Vec<Self> {
        let mut seen = 0;
        let read = |line: Line| {
            let candidates = if seen < MAX_CANDIDATES { candidates(&line.text) } else { Vec::new() };
            seen += candidates.len();
            Self::new(line, candidates)
        };
        lines.into_iter().map(read).collect()
    }

    pub(super) fn has(&self, sense: Sense) -> bool {
        self.senses.contains(&sense)
    }

    fn new(line: Line, candidates: Vec<Candidate>) -> Self {
        let hits = hits(&line.text);
        let senses = hits.iter().map(|hit| hit.sense).collect();
        let mut read = Self { line, candidates, senses, hits, leads_to: Word::None };
        read.leads_to = read.to_the_next();
        read
    }

    /// What the line says to the one behind it. A number in it takes the word before it for itself, and who warns of
    /// giving codes away names none.
    fn to_the_next(&self) -> Word {
        let taken = self.candidates.last().map_or(0, |candidate| candidate.range.end);
        let last = |sense| self.hits.iter().rfind(|hit| hit.sense == sense);
        let is_label = |hit: &&Hit| self.line.text.len() - hit.end <= LABEL / 2 && hit.end > taken;
        match (last(Sense::Code), last(Sense::Other).filter(is_label)) {
            (Some(code), Some(other)) if other.start > code.end && other.start - code.end < LABEL / 4 => Word::Other,
            (None, Some(_)) => Word::Other,
            (Some(_), _) if self.has(Sense::Secret) => Word::None,
            _ if revoked::is_former(&self.line.text, &self.hits, taken..self.line.text.len()) => Word::Code(FORMER),
            (Some(code), _) if code.end > taken => Word::Code(1.0),
            (Some(_), _) => Word::Code(0.35),
            (None, None) if self.has(Sense::Act) => Word::Act(if taken == 0 { 1.0 } else { 0.35 }),
            (None, None) => Word::None,
        }
    }

    /// What the line says about one of its candidates.
    fn says_of(&self, number: usize) -> Word {
        let label = match self.says_before(number) {
            act @ (Word::None | Word::Act(_)) => self.says_behind(number, act),
            label => label,
        };
        let (Range { start, end }, range) = (self.between(number), &self.candidates[number].range);
        match label {
            Word::Other => Word::Other,
            _ if revoked::is_gone(&self.line.text, &self.hits, range.end..end) => Word::Revoked,
            Word::Code(strength) if revoked::is_former(&self.line.text, &self.hits, start..range.start) => {
                Word::Code(strength.min(FORMER))
            }
            Word::None | Word::Act(_) if self.is_used(number) => Word::Code(0.6),
            label => label,
        }
    }

    /// Where the number before a candidate ends, and where the one behind it starts.
    fn between(&self, number: usize) -> Range<usize> {
        let start = number.checked_sub(1).map_or(0, |last| self.candidates[last].range.end);
        let end = self.candidates.get(number + 1).map_or(self.line.text.len(), |next| next.range.start);
        start..end
    }

    /// `Use 482913 to verify`, and `to verify, use 482913`: a number that is used for such a thing is a code.
    fn is_used(&self, number: usize) -> bool {
        let Candidate { range, shape, .. } = &self.candidates[number];
        let words = within(&self.hits, &self.between(number));
        let gap = |hit: &Hit| if hit.end <= range.start { hit.end..range.start } else { range.end..hit.start };
        let is_within = |gap: Range<usize>, reach| {
            gap.len() <= reach && self.line.text.get(gap).is_some_and(|gap| !ends_sentence(gap))
        };
        let is_near = |sense, reach| words.iter().any(|hit| hit.sense == sense && is_within(gap(hit), reach));
        !shape.is_rare() && is_near(Sense::Use, LABEL / 2) && is_near(Sense::Act, REACH)
    }

    /// The word before a number is its label, and each label is for one number.
    fn says_before(&self, number: usize) -> Word {
        let Candidate { range, shape, .. } = &self.candidates[number];
        let taken = number.checked_sub(1).map_or(0, |last| self.candidates[last].range.end);
        let before = &self.hits[..self.hits.partition_point(|hit| hit.start < range.start)];
        let mut act = Word::None;
        for hit in before.iter().rev() {
            let Some(gap) = range.start.checked_sub(hit.end) else { continue };
            let is_taken = hit.end <= taken;
            if gap > REACH {
                break;
            }
            match hit.sense {
                Sense::Other if gap <= LABEL && !is_taken => return Word::Other,
                Sense::Code => {
                    let ended = ends_sentence(&self.line.text[hit.end..range.start]);
                    let is_far = gap > LABEL || is_taken || ended;
                    if shape.is_rare() && is_far || ended && self.has(Sense::Secret) {
                        continue;
                    }
                    return Word::Code(match gap {
                        _ if is_taken || ended => 0.5,
                        ..=LABEL => 1.0,
                        _ => 0.8,
                    });
                }
                Sense::Act if act == Word::None => act = Word::Act(if is_taken { 0.3 } else { 1.0 }),
                _ => {}
            }
        }
        act
    }

    /// What stands behind a number, up to the next one, counts where there is no label before it, but an act at most.
    fn says_behind(&self, number: usize, mut act: Word) -> Word {
        let Candidate { range, shape, .. } = &self.candidates[number];
        let end = self.candidates.get(number + 1).map_or(self.line.text.len(), |next| next.range.start);
        let behind = &self.hits[self.hits.partition_point(|hit| hit.start < range.end)..];
        for hit in behind.iter().take_while(|hit| hit.start < end) {
            let gap = hit.start - range.end;
            if gap > REACH / 2 {
                break;
            }
            match hit.sense {
                Sense::Other if gap <= LABEL / 2 => return Word::Other,
                Sense::Code if shape.is_rare() && gap > LABEL => {}
                Sense::Code => return Word::Code(0.9),
                Sense::Act if act == Word::None => act = Word::Act(0.9),
                // `Enter 482913 to verify`: whoever puts a number between the two means a code.
                Sense::Act if act == Word::Act(1.0) && !shape.is_rare() => act = Word::Code(0.6),
                _ => {}
            }
        }
        act
    }
}

/// What is said about a candidate of a line; `alone` when there is nothing else on it.
pub(super) fn said(lines: &[Read], at: usize, number: usize, alone: bool) -> Word {
    match lines[at].says_of(number) {
        Word::Code(_) if !alone && is_gone_below(lines, at, number) => Word::Revoked,
        label @ (Word::Code(_) | Word::Other | Word::Revoked) => label,
        act => act.or_stronger(around(lines, at, &lines[at].candidates[number], alone)),
    }
}

/// Whether the sentence of a number goes on in the next line, and takes it back there.
fn is_gone_below(lines: &[Read], at: usize, number: usize) -> bool {
    let Read { line, candidates, .. } = &lines[at];
    let behind = &line.text[candidates[number].range.end..];
    let is_last = number + 1 == candidates.len() && behind.len() <= LABEL;
    let Some(next) = lines.get(at + 1).filter(|_| is_last) else { return false };
    let text = format!("{behind} {}", &next.line.text[..next.line.text.floor_char_boundary(REACH)]);
    revoked::is_gone(&text, &hits(&text), 0..text.len())
}

/// What the lines around say.
fn around(lines: &[Read], at: usize, candidate: &Candidate, alone: bool) -> Word {
    if candidate.shape.is_rare() && !alone {
        return Word::None;
    }
    let mut word = Word::None;
    for (distance, (line, scale)) in lines[..at].iter().rev().zip(BEFORE).enumerate() {
        let is_first = alone || candidate.range.start < LABEL;
        if line.leads_to == Word::Other && distance == 0 && is_first {
            return Word::Other;
        }
        word = word.or_stronger(line.leads_to.scaled(scale));
    }
    if matches!(word, Word::Code(_)) && !alone {
        return word;
    }
    for (line, scale) in lines[at + 1..].iter().zip(BEHIND).filter(|(line, _)| line.candidates.is_empty()) {
        let scale = if alone { scale } else { scale / 2.0 };
        word = word.or_stronger(line.leads_to.scaled(scale));
    }
    word
}

#[cfg(test)]
mod tests {
    use super::super::lines::of_text;
    use super::*;

    /// What is said about a number in a text.
    fn of(text: &str, code: &str) -> Word {
        let lines = Read::all(of_text(text));
        let of_line = |line: &Read| line.candidates.iter().position(|candidate| candidate.code == code);
        let (at, number) =
            lines.iter().enumerate().find_map(|(at, line)| Some((at, of_line(line)?))).expect("a number");
        said(&lines, at, number, lines[at].line.text == code)
    }

    #[test]
    fn what_a_number_is_called() {
        let table = [
            ("Your code is 482913", Word::Code(1.0)),
            ("482913 is your code", Word::Code(0.9)),
            ("Your code for order 12345 is 482913", Word::Code(0.5)),
            ("Enter 482913 to verify", Word::Code(0.6)),
            ("Confirm 482913", Word::Act(1.0)),
            ("Order 482913", Word::Other),
            ("482913 is the order number", Word::Other),
            ("Never share your code. 482913 people did", Word::None),
            ("Your code\n482913", Word::Code(0.85)),
            ("Your code:\n\n482913", Word::Code(0.85)),
            ("Your code\nis here\n482913", Word::Code(0.65)),
            ("482913\nis your code", Word::Code(0.55)),
            ("Order number\n482913", Word::Other),
            ("Never share your code\n482913", Word::None),
            ("Hello\n482913\nGoodbye", Word::None),
            ("Use 482-913 to reset your password", Word::Code(0.6)),
            ("To sign in, use 482913", Word::Code(0.6)),
            ("Use 482913 with care. Then sign in", Word::Act(0.9)),
            ("Your old code is 482913", Word::Code(FORMER)),
            ("Your old code 482913 is no longer valid", Word::Revoked),
            ("Your code 482913 has expired", Word::Revoked),
            ("Your order 482913 has expired", Word::Other),
            ("The code 482913\nis no longer valid", Word::Revoked),
            ("The code 482913 is no\nlonger valid", Word::Revoked),
            ("The code is 482913.\nIf it is no longer valid, ask us", Word::Code(1.0)),
            ("Your old code:\n482913", Word::Code(FORMER * 0.85)),
            ("Your old code has been replaced by:\n482913", Word::Code(0.85)),
        ];
        for (text, expected) in table {
            assert_eq!(of(text, "482913"), expected, "{text}");
        }
        assert_eq!(of("Your code for order 12345 is 482913", "12345"), Word::Other);
        assert_eq!(of("Your code is 2048", "2048"), Word::Code(1.0));
        assert_eq!(of("Your code was sent on 15 November 2026", "2026"), Word::None);
    }
}
