//! Compiles a query to SQL. Conditions on words become one expression of the full-text table. This includes negations:
//! the table can only subtract matches from others, so they are subtracted from a token that every document has. Other
//! conditions apply to the table of documents.
//!
//! The table has no positions, and no words of some header fields. So it is not known whether a document matches a
//! phrase or such a field if it has all of the words. The condition is `NULL` then, and SQL combines it with others.

use std::ops::Range;

use rusqlite::types::Value;

use super::partition::Partition;
use super::to_i64;
use super::tokens::{self, TokenPattern};
use crate::document::Column;
use crate::query::{Phrase, Query, Term};

/// A part of a query: the documents that match both `words` and `condition`, as far as they are set.
#[derive(Default)]
pub(super) struct Filter {
    /// An expression of the full-text table.
    pub(super) words: Option<String>,
    /// A condition on the table of documents.
    pub(super) condition: Option<Condition>,
    /// Every matching document has a token of each of these lists.
    pub(super) required: Vec<Vec<TokenPattern>>,
}

/// An SQL condition with the values of its placeholders.
pub(super) struct Condition {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

impl Filter {
    /// Compiles a query of the documents of a partition, in one mailbox or in all.
    pub(super) fn new(query: &Query, mailbox: Option<&str>, partition: &Partition) -> Self {
        let from_term = |term: &Term| Self::from_term(term, partition);
        let not = |filter: Self| filter.not(partition);
        let filter = query.evaluate(from_term, not, Self::and, Self::or).unwrap_or_default();
        match mailbox {
            Some(name) => filter.and(Self::from_token(partition.pattern(&tokens::mailbox(name), false))),
            None => filter,
        }
    }

    fn from_term(term: &Term, partition: &Partition) -> Self {
        match term {
            Term::Words { columns, phrase } => Self::from_phrase(columns, phrase, partition),
            Term::FieldWords { phrase, is_indexed: true, .. } => {
                Self::from_phrase(&[Column::Header], phrase, partition)
            }
            Term::FieldWords { marker, is_indexed: false, .. } => {
                Self::from_term(&Term::Field(marker.clone()), partition).and(Self::from_condition("NULL".to_owned()))
            }
            Term::Field(marker) => Self::from_token(partition.pattern(&tokens::word(Column::Header, marker), false)),
            Term::Mailbox { name, is_prefix } => {
                Self::from_token(partition.pattern(&tokens::mailbox(name), *is_prefix))
            }
            Term::Attachment => Self::from_token(partition.pattern(tokens::ATTACHMENT, false)),
            Term::Tag(tag) => {
                let Range { start, end } = partition.ids;
                let sql =
                    format!("documents.id IN (SELECT id FROM tags WHERE tag = ? AND id >= {start} AND id < {end})");
                let condition = Condition { sql, values: vec![tag.clone().into()] };
                Self { condition: Some(condition), ..Self::default() }
            }
            Term::Seen(seen) => Self::from_condition(format!("documents.seen = {}", u8::from(*seen))),
            Term::Before(time) => {
                Self::from_condition(format!("documents.id - documents.delay < {}", time.as_microsecond()))
            }
            Term::After(time) => {
                Self::from_condition(format!("documents.id - documents.delay >= {}", time.as_microsecond()))
            }
            Term::Larger(bytes) => Self::from_condition(format!("documents.size > {}", to_i64(*bytes))),
            Term::Smaller(bytes) => Self::from_condition(format!("documents.size < {}", to_i64(*bytes))),
        }
    }

    fn from_phrase(columns: &[Column], phrase: &Phrase, partition: &Partition) -> Self {
        let mut required = Vec::new();
        let mut in_columns = vec![String::new(); columns.len()];
        for (word, is_prefix) in phrase.words_with_prefix() {
            let patterns = columns.iter().map(|column| partition.pattern(&tokens::word(*column, word), is_prefix));
            let patterns: Vec<_> = patterns.collect();
            for (expression, pattern) in in_columns.iter_mut().zip(&patterns) {
                let operator = if expression.is_empty() { "" } else { " AND " };
                *expression = format!("{expression}{operator}{pattern}");
            }
            required.push(patterns);
        }
        let filter = Self { words: Some(format!("({})", in_columns.join(" OR "))), condition: None, required };
        if phrase.words.len() == 1 { filter } else { filter.and(Self::from_condition("NULL".to_owned())) }
    }

    fn from_token(pattern: TokenPattern) -> Self {
        Self { words: Some(pattern.to_string()), condition: None, required: vec![vec![pattern]] }
    }

    fn from_condition(sql: String) -> Self {
        Self { condition: Some(Condition { sql, values: Vec::new() }), ..Self::default() }
    }

    fn not(self, partition: &Partition) -> Self {
        match self {
            Self { words: Some(words), condition: None, .. } => {
                let expression = format!("({} NOT {words})", partition.pattern(tokens::ANY, false));
                Self { words: Some(expression), ..Self::default() }
            }
            filter => {
                let Condition { sql, values } = filter.into_condition();
                Self { condition: Some(Condition { sql: format!("NOT ({sql})"), values }), ..Self::default() }
            }
        }
    }

    fn and(mut self, right: Self) -> Self {
        let words = combine(self.words, right.words, |left, right| format!("({left} AND {right})"));
        let condition = combine(self.condition, right.condition, |left, right| left.join("AND", right));
        self.required.extend(right.required);
        Self { words, condition, required: self.required }
    }

    fn or(self, right: Self) -> Self {
        let words = self.words.as_ref().zip(right.words.as_ref()).map(|(left, right)| format!("({left} OR {right})"));
        let is_exact = words.is_some() && self.condition.is_none() && right.condition.is_none();
        let condition = (!is_exact).then(|| self.into_condition().join("OR", right.into_condition()));
        Self { words, condition, required: Vec::new() }
    }

    /// Converts the filter to a condition on the table of documents alone.
    fn into_condition(self) -> Condition {
        let words = self.words.map(|words| Condition {
            sql: "documents.id IN (SELECT rowid FROM words WHERE words MATCH ?)".to_owned(),
            values: vec![words.into()],
        });
        combine(words, self.condition, |left, right| left.join("AND", right)).unwrap_or_default()
    }
}

/// The condition that every document satisfies.
impl Default for Condition {
    fn default() -> Self {
        Self { sql: "TRUE".to_owned(), values: Vec::new() }
    }
}

impl Condition {
    fn join(mut self, operator: &str, right: Self) -> Self {
        self.values.extend(right.values);
        Self { sql: format!("({} {operator} {})", self.sql, right.sql), values: self.values }
    }
}

fn combine<T>(left: Option<T>, right: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    match (left, right) {
        (Some(left), Some(right)) => Some(join(left, right)),
        (left, right) => left.or(right),
    }
}
