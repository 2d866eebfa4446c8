//! The query language: parsing, and matching of single messages.
//!
//! A query is split by `lexer` and parsed by `parse`, which calls `term` for each term. The result is a list of steps
//! for a small stack machine. There is no tree, and nothing recurses over the structure of a query.

mod lexer;
mod parse;
mod size;
mod term;
#[cfg(test)]
mod tests;
mod time;

use jiff::Timestamp;
use restante_mail::message::Summary;
use restante_mail::mime::Mime;
use restante_mail::naming::Project;
use thiserror::Error;

use crate::document::{Contents, Document};

pub(crate) use term::{Phrase, Term};

/// A parsed query. The default query matches every message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The steps in the order of execution. An empty list matches everything.
    steps: Vec<Step>,
}

/// A step of the stack machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Pushes the result of a term.
    Term(Term),
    /// Negates the top of the stack.
    Not,
    /// Replaces the two topmost values with their conjunction.
    And,
    /// Replaces the two topmost values with their disjunction.
    Or,
}

impl Query {
    /// Parses a query. Relative times are relative to `now`. An empty text matches everything.
    pub fn parse(text: &str, now: Timestamp) -> Result<Self, QueryError> {
        let query = parse::parse(text, now)?;
        if query.steps.is_empty() && !text.trim().is_empty() {
            return Err(QueryError::new(text, 0, "this contains no word to search for"));
        }
        Ok(query)
    }

    /// Returns true if the source of a message is needed to evaluate the query. Otherwise the summary is enough.
    pub fn needs_source(&self) -> bool {
        self.terms().any(Term::needs_source)
    }

    /// Returns true if a message matches. The source is the complete one, with the header fields that were added for
    /// the mailbox. Without it, words are found in sender, recipients and subject only.
    pub fn matches(&self, summary: &Summary, source: Option<&Mime>) -> bool {
        self.matches_document(&Document::new(summary, source))
    }

    /// Like [`Query::matches`], for a message whose texts were built before.
    pub fn matches_contents(&self, summary: &Summary, contents: &Contents) -> bool {
        self.matches_document(&Document::from_contents(summary, contents))
    }

    /// Returns a query for the messages that match both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let has_both = !self.steps.is_empty() && !other.steps.is_empty();
        self.steps.extend(other.steps);
        self.steps.extend(has_both.then_some(Step::And));
        self
    }

    /// Returns the query of a client with this home: a mailbox that it names without a project is in the home.
    #[must_use]
    pub fn in_home(mut self, home: Option<&Project>) -> Self {
        let Some(home) = home else { return self };
        for step in &mut self.steps {
            if let Step::Term(Term::Mailbox { name, .. }) = step
                && !name.split(',').next().is_some_and(|owner| owner.contains(':'))
            {
                name.insert_str(0, &home.prefix());
            }
        }
        self
    }

    /// Returns a query for the messages with this tag.
    pub fn for_tag(tag: &str) -> Self {
        Self { steps: vec![Step::Term(Term::Tag(tag.trim().to_lowercase()))] }
    }

    /// Returns false if no message with this read mark and these tags can match. Nothing else about the message is
    /// considered.
    pub(crate) fn may_match(&self, summary: &Summary) -> bool {
        let known_result = |term: &Term| match term {
            Term::Seen(expected) => Some(*expected == summary.seen),
            Term::Tag(tag) => Some(summary.tags.contains(tag)),
            _ => None,
        };
        self.evaluate_known(known_result) != Some(false)
    }

    /// Evaluates the query if only the results of some terms are known. Returns `None` if they are not enough.
    pub(crate) fn evaluate_known(&self, known_result: impl FnMut(&Term) -> Option<bool>) -> Option<bool> {
        let not = |left: Option<bool>| left.map(|left| !left);
        let and = |left: Option<bool>, right: Option<bool>| match (left, right) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (left, right) => left.and(right),
        };
        let or = |left, right| not(and(not(left), not(right)));
        self.evaluate(known_result, not, and, or).unwrap_or(Some(true))
    }

    /// Returns the phrases to highlight in a matching text: those that are searched in the body and not negated.
    pub(crate) fn highlight_phrases(&self) -> Vec<&Phrase> {
        let join = |mut left: Vec<bool>, right: Vec<bool>| {
            left.extend(right);
            left
        };
        // For each term, in order, whether it is not negated.
        let negate = |signs: Vec<bool>| signs.into_iter().map(|sign| !sign).collect();
        let signs = self.evaluate(|_| vec![true], negate, join, join).unwrap_or_default();
        let positive = self.terms().zip(signs).filter(|(_, is_positive)| *is_positive);
        positive.filter_map(|(term, _)| term.phrase_in_body()).collect()
    }

    /// Runs the stack machine with results of any type. Returns `None` if the query matches everything.
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
                Step::Term(condition) => term(condition),
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
        self.evaluate_known(|term| Some(term.matches(document))) == Some(true)
    }

    /// Returns the terms in the order in which [`Query::evaluate`] uses them.
    pub(crate) fn terms(&self) -> impl Iterator<Item = &Term> {
        self.steps.iter().filter_map(|step| match step {
            Step::Term(term) => Some(term),
            _ => None,
        })
    }
}

/// A syntax error in a query. It displays as a sentence with the position.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("At character {} of the query: {message}.", .position + 1)]
pub struct QueryError {
    position: usize,
    message: String,
}

impl QueryError {
    /// Creates an error at this byte of the text.
    fn new(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        Self { position: before.chars().count(), message: message.into() }
    }

    /// Returns the number of characters before the error.
    pub fn position(&self) -> usize {
        self.position
    }
}
