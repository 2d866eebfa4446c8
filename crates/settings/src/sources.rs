//! The values given for each setting, as text, with their sources. `load` collects them, and `check` reads them.

use std::collections::BTreeMap;

use super::problem::Origin;
use super::setting::Setting;

/// A value and its source.
#[derive(Clone)]
pub(super) struct GivenValue {
    pub(super) value: String,
    pub(super) origin: Origin,
}

/// All given values, in ascending order of precedence.
#[derive(Default)]
pub(super) struct Sources(BTreeMap<&'static str, Vec<GivenValue>>);

impl Sources {
    /// Adds a value. Its source must not have lower precedence than earlier ones.
    pub(super) fn add(&mut self, setting: &Setting, given: GivenValue) {
        self.0.entry(setting.key).or_default().push(given);
    }

    /// Adds a value that follows from another setting.
    pub(super) fn override_with(&mut self, setting: &Setting, value: &str, by: &Setting) {
        let origin = self.origin(by).clone();
        self.add(setting, GivenValue { value: value.to_owned(), origin });
    }

    /// Returns all values of a setting. Each must be valid, even if it is overridden.
    pub(super) fn values(&self, setting: &Setting) -> &[GivenValue] {
        self.0.get(setting.key).map_or(&[], Vec::as_slice)
    }

    /// Returns the value that takes effect, unless it is the default.
    pub(super) fn effective(&self, setting: &Setting) -> Option<&GivenValue> {
        self.values(setting).last()
    }

    /// Returns the text of the value that takes effect.
    pub(super) fn value<'a>(&'a self, setting: &'a Setting) -> &'a str {
        self.effective(setting).map_or(setting.default, |given| &given.value)
    }

    /// Returns the source of the value that takes effect.
    pub(super) fn origin(&self, setting: &Setting) -> &Origin {
        self.effective(setting).map_or(&Origin::Default, |given| &given.origin)
    }
}
