//! Compares two values field by field.

use std::collections::BTreeSet;

use serde_json::Value;

/// A place where two answers differ.
#[derive(Debug)]
pub(crate) struct Difference {
    /// The request, and the path of the field in the answer: `GET /api/v1/message/plain To.0.Name`.
    pub(crate) place: String,
    pub(crate) mailpit: String,
    pub(crate) restante: String,
}

/// The longest text of a value in a report.
const MAX_CHARS: usize = 160;

/// Adds the differences between two values to a list.
pub(crate) fn compare(place: &str, mailpit: &Value, restante: &Value, differences: &mut Vec<Difference>) {
    // Pairs still to compare, in place of recursion.
    let mut pairs = vec![(place.to_owned(), Some(mailpit), Some(restante))];
    while let Some((place, mailpit, restante)) = pairs.pop() {
        match (mailpit, restante) {
            (Some(Value::Object(one)), Some(Value::Object(other))) => {
                let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
                pairs
                    .extend(keys.into_iter().rev().map(|key| (format!("{place} {key}"), one.get(key), other.get(key))));
            }
            (Some(Value::Array(one)), Some(Value::Array(other))) => {
                let length = one.len().max(other.len());
                pairs.extend((0..length).rev().map(|at| (format!("{place} {at}"), one.get(at), other.get(at))));
            }
            (one, other) if one == other => {}
            (one, other) => differences.push(Difference { place, mailpit: text(one), restante: text(other) }),
        }
    }
}

/// Returns a value as it is reported.
fn text(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "nothing".to_owned(), ToString::to_string);
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}
