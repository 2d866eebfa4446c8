//! What was given for each setting, as text, and by whom. Collected by `load`, looked at by `check`.

use std::collections::BTreeMap;

use super::problem::Origin;

/// A value and where it comes from.
#[derive(Clone)]
pub(super) struct Given {
    pub(super) value: String,
    pub(super) origin: Origin,
}

/// The values that were given, by key; the strongest source has won.
pub(super) type Sources = BTreeMap<&'static str, Given>;
