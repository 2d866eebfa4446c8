//! What was given for each setting, as text, and by whom. Collected by `load`, looked at by `check`.

use std::collections::BTreeMap;

use super::problem::Origin;
use super::setting::Setting;

/// A value and where it comes from.
#[derive(Clone)]
pub(super) struct GivenValue {
    pub(super) value: String,
    pub(super) origin: Origin,
}

/// All values that were given, those of the weakest source first.
#[derive(Default)]
pub(super) struct Sources(BTreeMap<&'static str, Vec<GivenValue>>);

impl Sources {
    /// Adds a value of a source that is at least as strong as those before it.
    pub(super) fn add(&mut self, setting: &Setting, given: GivenValue) {
        self.0.entry(setting.key).or_default().push(given);
    }

    /// Adds the value of a setting that follows from what another setting says.
    pub(super) fn override_with(&mut self, setting: &Setting, value: &str, by: &Setting) {
        let origin = self.origin(by).clone();
        self.add(setting, GivenValue { value: value.to_owned(), origin });
    }

    /// Every value of a setting: each must be well-formed, whether it counts or not.
    pub(super) fn values(&self, setting: &Setting) -> &[GivenValue] {
        self.0.get(setting.key).map_or(&[], Vec::as_slice)
    }

    /// The value that counts.
    pub(super) fn effective(&self, setting: &Setting) -> Option<&GivenValue> {
        self.values(setting).last()
    }

    /// Where the value that counts comes from.
    pub(super) fn origin(&self, setting: &Setting) -> &Origin {
        self.effective(setting).map_or(&Origin::Default, |given| &given.origin)
    }
}
