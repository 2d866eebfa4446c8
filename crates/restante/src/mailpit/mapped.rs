//! The given values of Mailpit's options, and the settings that follow from them.

use std::collections::BTreeMap;

use restante_settings::{Origin, Preset, SETTINGS};

/// A value of an option, and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    /// The value as text.
    pub(super) value: String,
    /// The source, such as `variable MP_WEBROOT` or `flag --webroot`.
    pub(super) source: String,
}

/// The given values by the name of their option.
pub(super) type GivenValues = BTreeMap<&'static str, Given>;

/// The settings that follow from Mailpit's options.
#[derive(Debug, Default)]
pub(super) struct Mapped {
    /// The values of settings, in ascending order of precedence.
    pub(super) presets: Vec<Preset>,
    /// Warnings for the operator, one sentence each.
    pub(super) warnings: Vec<String>,
    /// Problems that prevent the start, one sentence each.
    pub(super) problems: Vec<String>,
}

impl Mapped {
    /// Adds a value of a setting.
    pub(super) fn add(&mut self, key: &str, value: String, origin: Origin) {
        // A test checks that the table contains every key.
        if let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) {
            self.presets.push(Preset { setting, value, origin });
        }
    }
}

pub(super) fn origin(given: &Given) -> Origin {
    Origin::Foreign(given.source.clone())
}

/// Returns a sentence with the value, unless that is a URL, which can contain a password.
pub(super) fn problem(given: &Given, error: &str) -> String {
    let Given { value, source } = given;
    if value.contains("://") { format!("{source}: {error}") } else { format!("{source} = {value:?}: {error}") }
}
