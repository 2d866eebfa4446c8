//! Compiles a query to SQL. Conditions on words become one expression of the full-text index. This includes negations:
//! the index can only subtract matches from others, so they are subtracted from a marker that every document has. Other
//! conditions apply to the table of documents. A subquery is used only if `or` or a negation combines both kinds.

use restante_mail::naming::MailboxName;
use rusqlite::types::Value;

use crate::document::Column;
use crate::query::{Phrase, Query, Term};

/// The marker that every document has in its facts column.
const ANY_MARKER: &str = "¤";
/// The marker of documents with an attachment.
const ATTACHMENT_MARKER: &str = "¤attachment";
/// The prefix of the mailbox name in the facts column.
const MAILBOX_PREFIX: char = '§';
/// Punctuation in mailbox names is mapped to private-use characters from here on, because the tokenizer would split the
/// name.
const PRIVATE_USE_START: u32 = 0xe000;

/// An SQL statement or condition, with the values of its placeholders.
#[derive(Debug, PartialEq)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

/// Returns the text of the facts column of a document.
pub(super) fn facts_text(mailbox: &MailboxName, has_attachment: bool) -> String {
    let attachment = if has_attachment { ATTACHMENT_MARKER } else { "" };
    format!("{ANY_MARKER} {} {attachment}", mailbox_marker(mailbox.as_str()))
}

/// Builds the statement that finds matching documents with ids below `before`, the highest id first.
pub(super) fn build_statement(query: &Query, mailbox: Option<&MailboxName>, before: i64) -> Statement {
    let mut filter = query.evaluate(Filter::from_term, Filter::not, Filter::and, Filter::or);
    if let Some(mailbox) = mailbox {
        let in_mailbox = Filter::from_words(in_column("facts", &quote(&mailbox_marker(mailbox.as_str()))));
        filter = Some(match filter {
            Some(filter) => filter.and(in_mailbox),
            None => in_mailbox,
        });
    }
    let Filter { words, condition, min_id } = filter.unwrap_or_default();
    let (table, id_column) = match words {
        Some(_) => ("words CROSS JOIN documents ON documents.id = words.rowid", "words.rowid"),
        None => ("documents", "documents.id"),
    };
    let mut sql = format!(
        "SELECT documents.id, documents.mailbox, documents.seen FROM {table} WHERE {id_column} < ? AND {id_column} >= ?"
    );
    let mut values = vec![Value::from(before), Value::from(min_id)];
    if let Some(words) = words {
        sql.push_str(" AND words MATCH ?");
        values.push(words.into());
    }
    if let Some(condition) = condition {
        sql = format!("{sql} AND ({})", condition.sql);
        values.extend(condition.values);
    }
    sql = format!("{sql} ORDER BY {id_column} DESC");
    Statement { sql, values }
}

/// A part of a query: the documents that match both `words` and `condition`, as far as they are set.
#[derive(Default)]
struct Filter {
    /// An expression of the full-text index.
    words: Option<String>,
    /// A condition on the table of documents.
    condition: Option<Statement>,
    /// Only ids from this one on can match. The id of a message is never below the microsecond of its arrival.
    min_id: i64,
}

impl Filter {
    fn from_term(term: &Term) -> Self {
        let condition = |sql: String| Self::from_condition(Statement { sql, values: Vec::new() });
        match term {
            Term::Words { columns, phrase } => {
                let columns: Vec<&str> = columns.iter().map(|&column| column_name(column)).collect();
                Self::from_words(in_column(&format!("{{{}}}", columns.join(" ")), &phrase_expression(phrase)))
            }
            Term::Mailbox { name, is_prefix } => {
                let star = if *is_prefix { "*" } else { "" };
                Self::from_words(in_column("facts", &format!("{}{star}", quote(&mailbox_marker(name)))))
            }
            Term::Attachment => Self::from_words(in_column("facts", &quote(ATTACHMENT_MARKER))),
            Term::Seen(seen) => condition(format!("documents.seen = {}", u8::from(*seen))),
            Term::Before(time) => condition(format!("documents.received < {}", time.as_microsecond())),
            Term::After(time) => {
                let min_id = time.as_microsecond();
                Self { min_id, ..condition(format!("documents.received >= {min_id}")) }
            }
            Term::Larger(bytes) => condition(format!("documents.size > {}", to_i64(*bytes))),
            Term::Smaller(bytes) => condition(format!("documents.size < {}", to_i64(*bytes))),
        }
    }

    fn from_words(expression: String) -> Self {
        Self { words: Some(expression), ..Self::default() }
    }

    fn from_condition(condition: Statement) -> Self {
        Self { condition: Some(condition), ..Self::default() }
    }

    fn not(self) -> Self {
        match self {
            Self { words: Some(words), condition: None, .. } => {
                Self::from_words(format!("({} NOT {words})", in_column("facts", &quote(ANY_MARKER))))
            }
            filter => {
                let Statement { sql, values } = filter.into_condition();
                Self::from_condition(Statement { sql: format!("NOT ({sql})"), values })
            }
        }
    }

    fn and(self, right: Self) -> Self {
        let words = combine(self.words, right.words, |left, right| format!("({left} AND {right})"));
        let condition = combine(self.condition, right.condition, |left, right| left.join("AND", right));
        Self { words, condition, min_id: self.min_id.max(right.min_id) }
    }

    fn or(self, right: Self) -> Self {
        let min_id = self.min_id.min(right.min_id);
        match (self, right) {
            (Self { words: Some(left), condition: None, .. }, Self { words: Some(right), condition: None, .. }) => {
                Self { min_id, ..Self::from_words(format!("({left} OR {right})")) }
            }
            (left, right) => {
                Self { min_id, ..Self::from_condition(left.into_condition().join("OR", right.into_condition())) }
            }
        }
    }

    /// Converts the filter to a condition on the table of documents alone.
    fn into_condition(self) -> Statement {
        let words = self.words.map(|words| Statement {
            sql: "documents.id IN (SELECT rowid FROM words WHERE words MATCH ?)".to_owned(),
            values: vec![words.into()],
        });
        let both = combine(self.condition, words, |left, right| left.join("AND", right));
        both.unwrap_or_else(|| Statement { sql: "TRUE".to_owned(), values: Vec::new() })
    }
}

impl Statement {
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

/// Returns the name of a column in the full-text index.
pub(super) fn column_name(column: Column) -> &'static str {
    match column {
        Column::From => "sender",
        Column::To => "recipients",
        Column::Cc => "cc",
        Column::Subject => "subject",
        Column::Body => "body",
        Column::Filename => "filename",
        Column::Header => "header",
    }
}

fn phrase_expression(phrase: &Phrase) -> String {
    let star = if phrase.is_prefix { "*" } else { "" };
    format!("{}{star}", quote(&phrase.words.join(" ")))
}

fn in_column(column: &str, expression: &str) -> String {
    format!("{column} : {expression}")
}

/// Quotes a text, so that the full-text index treats all of it as words.
fn quote(words: &str) -> String {
    format!("\"{}\"", words.replace('"', "\"\""))
}

/// Returns the name of a mailbox as one word. Punctuation would split it and is mapped to other characters.
fn mailbox_marker(name: &str) -> String {
    let is_punctuation = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric();
    let mapped =
        |c: char| if is_punctuation(c) { char::from_u32(PRIVATE_USE_START + u32::from(c)).unwrap_or(c) } else { c };
    std::iter::once(MAILBOX_PREFIX).chain(name.chars().map(mapped)).collect()
}

/// Converts a number to the integer type of the database.
fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
