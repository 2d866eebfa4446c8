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

/// The maximum depth of parentheses in an expression of the full-text table, whose parser has a small stack. A query that
/// is nested more deeply becomes a condition on the table of documents.
const MAX_EXPRESSION_DEPTH: usize = 8;
/// The maximum number of words of a phrase that are looked up. The messages that contain them are compared with the whole
/// phrase, and the full-text table takes time for each word and document.
const MAX_PHRASE_WORDS: usize = 8;

/// A part of a query: the documents that match both `words` and `condition`, as far as they are set.
#[derive(Default)]
pub(super) struct Filter {
    pub(super) words: Option<Words>,
    /// A condition on the table of documents.
    pub(super) condition: Option<Condition>,
    /// Every matching document has a token of each of these lists.
    pub(super) required: Vec<Vec<TokenPattern>>,
}

/// An expression of the full-text table.
#[derive(Clone)]
pub(super) struct Words {
    pub(super) text: String,
    binding: Binding,
}

/// How tightly the outermost operator of an expression binds.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Binding {
    Or,
    And,
    Not,
    Token,
}

impl Words {
    fn join(self, binding: Binding, operator: &str, right: Self) -> Self {
        Self { text: format!("{} {operator} {}", self.within(binding), right.within(binding)), binding }
    }

    /// Returns the expression as an operand of an operator that binds like this.
    fn within(self, binding: Binding) -> String {
        if self.binding < binding { format!("({})", self.text) } else { self.text }
    }

    /// Returns how deeply parentheses are nested. Tokens contain none.
    fn depth(text: &str) -> usize {
        let (mut depth, mut max) = (0_usize, 0);
        for c in text.chars() {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            max = max.max(depth);
        }
        max
    }
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
        let mut filter = query.evaluate(from_term, not, Self::and, Self::or).unwrap_or_default();
        if filter.depth() > MAX_EXPRESSION_DEPTH {
            let as_condition = |term: &Term| {
                let condition = Some(Self::from_term(term, partition).into_condition());
                Self { condition, ..Self::default() }
            };
            filter = query.evaluate(as_condition, not, Self::and, Self::or).unwrap_or_default();
        }
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
        let mut words: Vec<(&str, bool)> = Vec::new();
        for (word, is_prefix) in phrase.words_with_prefix() {
            // Only the last word may be a prefix, so an equal word before it implies it.
            if words.len() < MAX_PHRASE_WORDS && words.iter().all(|(other, _)| *other != word) {
                words.push((word, is_prefix));
            }
        }
        let mut required = Vec::new();
        let mut in_columns = vec![String::new(); columns.len()];
        for (word, is_prefix) in words {
            let patterns = columns.iter().map(|column| partition.pattern(&tokens::word(*column, word), is_prefix));
            let patterns: Vec<_> = patterns.collect();
            for (expression, pattern) in in_columns.iter_mut().zip(&patterns) {
                let operator = if expression.is_empty() { "" } else { " AND " };
                *expression = format!("{expression}{operator}{pattern}");
            }
            required.push(patterns);
        }
        let words = Words { text: in_columns.join(" OR "), binding: Binding::Or };
        let filter = Self { words: Some(words), condition: None, required };
        if phrase.words.len() == 1 { filter } else { filter.and(Self::from_condition("NULL".to_owned())) }
    }

    fn from_token(pattern: TokenPattern) -> Self {
        let words = Words { text: pattern.to_string(), binding: Binding::Token };
        Self { words: Some(words), condition: None, required: vec![vec![pattern]] }
    }

    fn from_condition(sql: String) -> Self {
        Self { condition: Some(Condition { sql, values: Vec::new() }), ..Self::default() }
    }

    fn not(self, partition: &Partition) -> Self {
        match self {
            Self { words: Some(words), condition: None, .. } => {
                let text = format!("{} NOT {}", partition.pattern(tokens::ANY, false), words.within(Binding::Token));
                Self { words: Some(Words { text, binding: Binding::Not }), ..Self::default() }
            }
            filter => {
                let Condition { sql, values } = filter.into_condition();
                Self { condition: Some(Condition { sql: format!("NOT ({sql})"), values }), ..Self::default() }
            }
        }
    }

    fn and(mut self, right: Self) -> Self {
        let words = combine(self.words, right.words, |left, right| left.join(Binding::And, "AND", right));
        let condition = combine(self.condition, right.condition, |left, right| left.join("AND", right));
        self.required.extend(right.required);
        Self { words, condition, required: self.required }
    }

    fn or(self, right: Self) -> Self {
        match (self, right) {
            (Self { words: Some(left), condition: None, .. }, Self { words: Some(right), condition: None, .. }) => {
                Self { words: Some(left.join(Binding::Or, "OR", right)), ..Self::default() }
            }
            (left, right) => {
                let words = left.words.clone().zip(right.words.clone());
                let words = words.map(|(left, right)| left.join(Binding::Or, "OR", right));
                let condition = Some(left.into_condition().join("OR", right.into_condition()));
                Self { words, condition, required: Vec::new() }
            }
        }
    }

    /// Returns how deeply parentheses are nested in the expressions of the full-text table.
    fn depth(&self) -> usize {
        let in_condition =
            self.condition.iter().flat_map(|condition| &condition.values).filter_map(|value| match value {
                Value::Text(text) => Some(text),
                _ => None,
            });
        self.words.iter().map(|words| &words.text).chain(in_condition).map(|text| Words::depth(text)).max().unwrap_or(0)
    }

    /// Converts the filter to a condition on the table of documents alone.
    fn into_condition(self) -> Condition {
        let words = self.words.map(|words| Condition {
            sql: "documents.id IN (SELECT rowid FROM words WHERE words MATCH ?)".to_owned(),
            values: vec![words.text.into()],
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
