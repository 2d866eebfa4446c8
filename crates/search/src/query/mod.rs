//! A question about messages: the language it is written in, and whether a message is what was asked for.
//!
//! A text goes through the `lexer` and the parser (`parse`), which has each term read by `term`. What comes out is a list of steps
//! for a small stack machine: there is no tree, and nothing here or elsewhere recurses over a question.

mod lexer;
mod parse;
mod size;
mod term;
#[cfg(test)]
mod tests;
mod time;

use std::fmt;

use jiff::Timestamp;
use restante_mail::message::Summary;
use restante_mail::mime::Mime;

use crate::document::{Contents, Document};

pub(crate) use term::{Phrase, Term};

/// A question, ready to be asked. The default one is answered by every message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// In the order in which a stack machine takes them. An empty list asks for everything.
    steps: Vec<Step>,
}

/// A step of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Puts the answer to a term on the stack.
    Term(Term),
    /// Turns the topmost answer around.
    Not,
    /// Makes one answer of the two topmost ones.
    And,
    /// The same, when one is enough.
    Or,
}

impl Query {
    /// Reads a question that is asked now. An empty text asks for everything.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, QueryError> {
        let query = parse::parse(text, now)?;
        if query.steps.is_empty() && !text.trim().is_empty() {
            return Err(QueryError::new(text, 0, "there is no word in this"));
        }
        Ok(query)
    }

    /// Whether the source of a message is needed to answer; otherwise its summary says everything.
    pub fn needs_source(&self) -> bool {
        self.terms().any(Term::needs_source)
    }

    /// Whether a message is what was asked for. Its source is the whole one, with the lines that were added for the mailbox;
    /// without it, words are found in sender, recipients and subject only.
    pub fn matches(&self, summary: &Summary, source: Option<&Mime>) -> bool {
        self.matches_document(&Document::new(summary, source))
    }

    /// The same for a message that was read before, maybe for others too.
    pub fn matches_contents(&self, summary: &Summary, contents: &Contents) -> bool {
        self.matches_document(&Document::from_contents(summary, contents))
    }

    /// Whether a message can be what was asked for, when all that is known is whether it was marked as read.
    pub(crate) fn may_match(&self, seen: bool) -> bool {
        // What nobody knows decides nothing, unless the other side does not need it.
        let answer = |term: &Term| match term {
            Term::Seen(wanted) => Some(*wanted == seen),
            _ => None,
        };
        let not = |one: Option<bool>| one.map(|one| !one);
        let and = |one: Option<bool>, other: Option<bool>| match (one, other) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (one, other) => one.and(other),
        };
        let or = |one, other| not(and(not(one), not(other)));
        self.evaluate(answer, not, and, or).flatten() != Some(false)
    }

    /// The phrases that a text shows when it is what was asked for: those that are looked for in texts, and not to be missing.
    pub(crate) fn highlight_phrases(&self) -> Vec<&Phrase> {
        let join = |mut one: Vec<bool>, other: Vec<bool>| {
            one.extend(other);
            one
        };
        // Whether each term is asked for, and not its opposite, in the order of the terms.
        let turned = |signs: Vec<bool>| signs.into_iter().map(|sign| !sign).collect();
        let signs = self.evaluate(|_| vec![true], turned, join, join).unwrap_or_default();
        let wanted = self.terms().zip(signs).filter(|(_, is_wanted)| *is_wanted);
        wanted.filter_map(|(term, _)| term.phrase_in_body()).collect()
    }

    /// Lets the machine run with answers of whatever kind. There is none when everything is asked for.
    pub(crate) fn evaluate<T>(
        &self,
        mut term: impl FnMut(&Term) -> T,
        mut not: impl FnMut(T) -> T,
        mut and: impl FnMut(T, T) -> T,
        mut or: impl FnMut(T, T) -> T,
    ) -> Option<T> {
        let mut stack = Vec::new();
        for step in &self.steps {
            let result = match step {
                Step::Term(of) => term(of),
                Step::Not => not(stack.pop()?),
                Step::And | Step::Or => {
                    let (second, first) = (stack.pop()?, stack.pop()?);
                    if *step == Step::And { and(first, second) } else { or(first, second) }
                }
            };
            stack.push(result);
        }
        stack.pop()
    }

    fn matches_document(&self, document: &Document<'_>) -> bool {
        self.evaluate(|term| term.matches(document), |one| !one, |one, other| one && other, |one, other| one || other)
            .unwrap_or(true)
    }

    fn terms(&self) -> impl Iterator<Item = &Term> {
        self.steps.iter().filter_map(|step| match step {
            Step::Term(term) => Some(term),
            _ => None,
        })
    }
}

/// Why a text is no question. Its text is a sentence that names the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    position: usize,
    message: String,
}

impl QueryError {
    /// This problem at this byte of the text.
    fn new(text: &str, at: usize, problem: impl Into<String>) -> Self {
        let before = &text[..text.floor_char_boundary(at)];
        Self { position: before.chars().count(), message: problem.into() }
    }

    /// How many characters stand before the place.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "At character {} of the query: {}.", self.position + 1, self.message)
    }
}

impl std::error::Error for QueryError {}
