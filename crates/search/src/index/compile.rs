//! From a question to SQL. What can be answered by words becomes one expression of the full text index, also negations, for which
//! every document has a mark; the rest are conditions on the table of documents. Only where `or` or a negation mixes the two, a
//! set of numbers is made from an expression.

use restante_mail::naming::MailboxName;
use rusqlite::types::Value;

use crate::document::Column;
use crate::query::{Phrase, Query, Term};

/// What every document has among its facts.
const ANY_MARKER: &str = "¤";
/// What a document has there when something is attached to it.
const ATTACHMENT_MARKER: &str = "¤attachment";
/// What the name of the mailbox begins with there.
const MAILBOX_PREFIX: char = '§';
/// Where signs in the name of a mailbox are moved to, out of the way: characters for private use.
const PRIVATE_USE_START: u32 = 0xe000;

/// A question as SQL, with the values that belong to its marks.
#[derive(Debug, PartialEq)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

/// What is written into the column of facts for a document.
pub(super) fn facts_text(mailbox: &MailboxName, has_attachment: bool) -> String {
    let attachment = if has_attachment { ATTACHMENT_MARKER } else { "" };
    format!("{ANY_MARKER} {} {attachment}", mailbox_marker(mailbox.as_str()))
}

/// The statement that finds what is asked for below a number, the highest first.
pub(super) fn build_statement(query: &Query, mailbox: Option<&MailboxName>, before: i64) -> Statement {
    let mut answer = query.evaluate(Filter::from_term, Filter::not, Filter::and, Filter::or);
    if let Some(mailbox) = mailbox {
        let there = Filter::from_words(in_column("facts", &quote(&mailbox_marker(mailbox.as_str()))));
        answer = Some(match answer {
            Some(answer) => answer.and(there),
            None => there,
        });
    }
    let Filter { words, condition: facts, min_id: floor } = answer.unwrap_or_default();
    let (table, number) = match words {
        Some(_) => ("words CROSS JOIN documents ON documents.id = words.rowid", "words.rowid"),
        None => ("documents", "documents.id"),
    };
    let mut sql = format!(
        "SELECT documents.id, documents.mailbox, documents.seen FROM {table} WHERE {number} < ? AND {number} >= ?"
    );
    let mut values = vec![Value::from(before), Value::from(floor)];
    if let Some(words) = words {
        sql.push_str(" AND words MATCH ?");
        values.push(words.into());
    }
    if let Some(facts) = facts {
        sql = format!("{sql} AND ({})", facts.sql);
        values.extend(facts.values);
    }
    sql = format!("{sql} ORDER BY {number} DESC");
    Statement { sql, values }
}

/// A part of a question: what is found by both of these, or by the one that is there.
#[derive(Default)]
struct Filter {
    /// An expression of the full text index.
    words: Option<String>,
    /// A condition on the table of documents.
    condition: Option<Statement>,
    /// Numbers below this one are not found. A message's id is never below the microsecond of its arrival.
    min_id: i64,
}

impl Filter {
    fn from_term(term: &Term) -> Self {
        let fact = |sql: String| Self::from_condition(Statement { sql, values: Vec::new() });
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
            Term::Seen(seen) => fact(format!("documents.seen = {}", u8::from(*seen))),
            Term::Before(time) => fact(format!("documents.received < {}", time.as_microsecond())),
            Term::After(time) => {
                let floor = time.as_microsecond();
                Self { min_id: floor, ..fact(format!("documents.received >= {floor}")) }
            }
            Term::Larger(bytes) => fact(format!("documents.size > {}", to_i64(*bytes))),
            Term::Smaller(bytes) => fact(format!("documents.size < {}", to_i64(*bytes))),
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
            other => {
                let Statement { sql, values } = other.into_condition();
                Self::from_condition(Statement { sql: format!("NOT ({sql})"), values })
            }
        }
    }

    fn and(self, other: Self) -> Self {
        let words = combine(self.words, other.words, |one, other| format!("({one} AND {other})"));
        let facts = combine(self.condition, other.condition, |one, other| one.join("AND", other));
        Self { words, condition: facts, min_id: self.min_id.max(other.min_id) }
    }

    fn or(self, other: Self) -> Self {
        let floor = self.min_id.min(other.min_id);
        match (self, other) {
            (Self { words: Some(one), condition: None, .. }, Self { words: Some(other), condition: None, .. }) => {
                Self { min_id: floor, ..Self::from_words(format!("({one} OR {other})")) }
            }
            (one, other) => {
                Self { min_id: floor, ..Self::from_condition(one.into_condition().join("OR", other.into_condition())) }
            }
        }
    }

    /// The same as a condition on the table of documents alone.
    fn into_condition(self) -> Statement {
        let words = self.words.map(|words| Statement {
            sql: "documents.id IN (SELECT rowid FROM words WHERE words MATCH ?)".to_owned(),
            values: vec![words.into()],
        });
        let both = combine(self.condition, words, |one, other| one.join("AND", other));
        both.unwrap_or_else(|| Statement { sql: "TRUE".to_owned(), values: Vec::new() })
    }
}

impl Statement {
    fn join(mut self, how: &str, other: Self) -> Self {
        self.values.extend(other.values);
        Self { sql: format!("({} {how} {})", self.sql, other.sql), values: self.values }
    }
}

fn combine<T>(one: Option<T>, other: Option<T>, join: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(join(one, other)),
        (one, other) => one.or(other),
    }
}

/// The name of a column in the full text index.
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

/// A text that the index takes for words, whatever is in it.
fn quote(words: &str) -> String {
    format!("\"{}\"", words.replace('"', "\"\""))
}

/// The name of a mailbox as one word. Signs would be taken for the end of it.
fn mailbox_marker(name: &str) -> String {
    let is_sign = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric();
    let moved = |c: char| if is_sign(c) { char::from_u32(PRIVATE_USE_START + u32::from(c)).unwrap_or(c) } else { c };
    std::iter::once(MAILBOX_PREFIX).chain(name.chars().map(moved)).collect()
}

/// A number as the database has it.
fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
