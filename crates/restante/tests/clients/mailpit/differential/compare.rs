//! Compares two values field by field.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

/// A field in which two answers differ.
#[derive(Debug)]
pub(crate) struct Difference {
    /// The request: `GET /api/v1/message/{plain}`.
    pub(crate) request: String,
    /// The path of the field in the answer: `body To 0 Name`.
    pub(crate) field: String,
    /// The values as JSON, or [`NOTHING`].
    pub(crate) mailpit: String,
    pub(crate) restante: String,
}

/// The value of a field that is missing.
const NOTHING: &str = "nothing";
/// The longest text of a value in a report.
const MAX_CHARS: usize = 200;

/// Adds the differences between two answers to a list.
pub(crate) fn compare(request: &str, mailpit: &Value, restante: &Value, differences: &mut Vec<Difference>) {
    // Pairs still to compare, in place of recursion.
    let mut pairs = vec![(String::new(), Some(mailpit), Some(restante))];
    while let Some((field, mailpit, restante)) = pairs.pop() {
        let inner = |key: &str| if field.is_empty() { key.to_owned() } else { format!("{field} {key}") };
        match (mailpit, restante) {
            (Some(Value::Object(one)), Some(Value::Object(other))) => {
                let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
                pairs.extend(keys.into_iter().rev().map(|key| (inner(key), one.get(key), other.get(key))));
            }
            (Some(Value::Array(one)), Some(Value::Array(other))) => {
                let length = one.len().max(other.len());
                pairs.extend((0..length).rev().map(|at| (inner(&at.to_string()), one.get(at), other.get(at))));
            }
            (one, other) if one == other => {}
            (one, other) => {
                let [mailpit, restante] =
                    [one, other].map(|value| value.map_or_else(|| NOTHING.to_owned(), ToString::to_string));
                differences.push(Difference { request: request.to_owned(), field, mailpit, restante });
            }
        }
    }
}

/// A pattern of differences: a request, a field of its answer, and the values of Mailpit and of Restante. `*` stands for any text.
pub(crate) type Place = [&'static str; 4];

impl Difference {
    /// Returns whether the difference is at this place.
    pub(crate) fn is_at(&self, place: &Place) -> bool {
        let Self { request, field, mailpit, restante } = self;
        place.iter().zip([request, field, mailpit, restante]).all(|(pattern, text)| matches(pattern, text))
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*') {
        let Some(at) = text.find(piece) else { return false };
        text = &text[at + piece.len()..];
    }
    text.ends_with(end)
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [mailpit, restante] = [&self.mailpit, &self.restante].map(|text| shortened(text));
        write!(f, "{}: {}\n    Mailpit:  {mailpit}\n    Restante: {restante}", self.request, self.field)
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}
