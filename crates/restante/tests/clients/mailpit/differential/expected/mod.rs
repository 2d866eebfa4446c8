//! The differences between Mailpit and Restante that are intended. The table in `docs/from-mailpit.md` documents them.

mod messages;
mod requests;

use super::compare::Place;

/// An intended difference.
pub(crate) struct Expected {
    /// Why it is intended.
    pub(crate) reason: &'static str,
    /// Where it occurs. Every place has to occur.
    pub(crate) places: &'static [Place],
}

/// The value of a field that is missing.
pub(crate) const NOTHING: &str = "nothing";
/// A value that is not compared.
pub(crate) const ANY: &str = "*";

/// Returns all differences.
pub(crate) fn differences() -> impl Iterator<Item = &'static Expected> {
    messages::DIFFERENCES.iter().chain(requests::DIFFERENCES)
}
