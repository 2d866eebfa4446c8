//! Names with values in a request, such as header fields.

use serde::Deserialize;

use crate::values::List;

/// A name with a value. Its members have different names in the APIs of different providers.
#[derive(Clone, Deserialize)]
pub(crate) struct Pair {
    #[serde(alias = "Name", alias = "key")]
    pub(crate) name: String,
    #[serde(default, alias = "Value")]
    pub(crate) value: String,
}

/// Returns the names and values of a list.
pub(crate) fn pairs(List(pairs): List<Pair>) -> Vec<(String, String)> {
    pairs.into_iter().map(|Pair { name, value }| (name, value)).collect()
}

/// Returns tags that have the form `name.value`.
pub(crate) fn tags<'p>(tags: impl IntoIterator<Item = &'p Pair>) -> Vec<String> {
    tags.into_iter().map(|Pair { name, value }| format!("{name}.{value}")).collect()
}

/// Adds pairs. Those that have the same name are removed.
pub(crate) fn override_values(values: &mut Vec<(String, String)>, others: Vec<(String, String)>) {
    values.retain(|(name, _)| !others.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)));
    values.extend(others);
}
