//! What is wrong with a question: where, and what would be right there, in a sentence for whoever asked.

use std::error::Error;
use std::fmt;

/// Why a text is no question. Its text is a sentence that names the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    position: usize,
    problem: String,
}

impl QueryError {
    /// This problem at this byte of the text.
    pub(super) fn new(text: &str, at: usize, problem: impl Into<String>) -> Self {
        let before = &text[..text.floor_char_boundary(at)];
        Self { position: before.chars().count(), problem: problem.into() }
    }

    /// How many characters stand before the place.
    pub fn position(&self) -> usize {
        self.position
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "At character {} of the query: {}.", self.position + 1, self.problem)
    }
}

impl Error for QueryError {}
