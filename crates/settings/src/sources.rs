//! What was given for each setting, as text, and by whom. Collected by `load`, looked at by `check`.

use std::collections::BTreeMap;

use super::problem::Origin;
use super::setting::Setting;

/// A value and where it comes from.
#[derive(Clone)]
pub(super) struct Given {
    pub(super) value: String,
    pub(super) origin: Origin,
}

/// All values that were given, those of the weakest source first.
#[derive(Default)]
pub(super) struct Sources(BTreeMap<&'static str, Vec<Given>>);

impl Sources {
    /// Adds a value of a source that is at least as strong as those before it.
    pub(super) fn add(&mut self, setting: &Setting, given: Given) {
        self.0.entry(setting.key).or_default().push(given);
    }

    /// Adds the value of a setting that follows from what another setting says.
    pub(super) fn overrule(&mut self, setting: &Setting, value: &str, by: &Setting) {
        let origin = self.origin(by).clone();
        self.add(setting, Given { value: value.to_owned(), origin });
    }

    /// Every value of a setting: each must be well-formed, whether it counts or not.
    pub(super) fn all(&self, setting: &Setting) -> &[Given] {
        self.0.get(setting.key).map_or(&[], Vec::as_slice)
    }

    /// The value that counts.
    pub(super) fn strongest(&self, setting: &Setting) -> Option<&Given> {
        self.all(setting).last()
    }

    /// Where the value that counts comes from.
    pub(super) fn origin(&self, setting: &Setting) -> &Origin {
        self.strongest(setting).map_or(&Origin::Default, |given| &given.origin)
    }
}
