//! Collects values from flags, environment, file and host name, applies them in order of precedence, and reports all
//! problems. The meaning of a value is in the table, checks of several settings are in `check`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::ReadFile;
use super::check::{self, Purpose};
use super::file;
use super::problem::{COMPAT_PREFIX, Origin, Problem, display_value, suggestion};
use super::setting::Setting;
use super::sources::{GivenValue, Sources};
use super::table::SETTINGS;
use super::types::Config;
use super::values;

/// The prefix of Restante's variables.
const PREFIX: &str = "RESTANTE_";
/// The variable with the path of the configuration file.
const CONFIG_VARIABLE: &str = "RESTANTE_CONFIG";

/// The flags of the command line.
#[derive(Debug, Default)]
pub struct Flags {
    /// The path of the configuration file.
    pub config: Option<PathBuf>,
    /// Settings and their values, in the order of the command line.
    pub given: Vec<(&'static Setting, String)>,
    /// Values that override defaults, because the server replaces another program. All other sources override them.
    pub presets: Vec<Preset>,
}

/// A value from the defaults, variables or flags of a program that the server replaces.
#[derive(Debug, Clone)]
pub struct Preset {
    /// The setting.
    pub setting: &'static Setting,
    /// The value as text.
    pub value: String,
    /// [`Origin::EmulatedProgram`] or [`Origin::Foreign`].
    pub origin: Origin,
}

/// A valid configuration.
#[derive(Debug)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// Warnings for the operator, one sentence each, to be logged at start.
    pub warnings: Vec<String>,
    /// All settings as text, in the order of the table, with secrets masked.
    pub effective: Vec<EffectiveSetting>,
}

/// A setting with its effective value.
#[derive(Debug, Clone)]
pub struct EffectiveSetting {
    /// The setting.
    pub setting: &'static Setting,
    /// The value, quoted; a secret is masked.
    pub display_value: String,
    /// The source of the value.
    pub origin: Origin,
}

/// Loads a configuration, or returns all its problems. `other_variables` are variables with our prefix that are not
/// settings.
pub fn load(
    flags: &Flags,
    env: impl IntoIterator<Item = (OsString, OsString)>,
    other_variables: &'static [&'static str],
    read_file: ReadFile<'_>,
    purpose: Purpose,
) -> Result<Loaded, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut warnings = Vec::new();
    let mut sources = Sources::default();

    let variables = Variables::collect(env, other_variables);
    // In order of precedence: each later source overrides the earlier ones.
    let machine_name = host_name(read_file);
    if let Some(host_name) = &machine_name {
        for setting in SETTINGS.iter().filter(|setting| setting.defaults_to_host_name) {
            let given = GivenValue { value: host_name.clone(), origin: Origin::HostName };
            sources.add(setting, given);
        }
    }
    for Preset { setting, value, origin } in &flags.presets {
        sources.add(setting, GivenValue { value: value.clone(), origin: origin.clone() });
    }
    if let Some(path) = flags.config.as_deref().or(variables.config.as_deref()) {
        load_file(path, read_file, &mut sources, &mut problems);
    }
    variables.add_to(COMPAT_PREFIX, &mut sources, &mut problems);
    variables.add_to(PREFIX, &mut sources, &mut problems);
    problems.extend(variables.unknown_problems());
    warnings.extend(variables.ignored_warning());
    for (setting, value) in &flags.given {
        let given = GivenValue { value: value.clone(), origin: Origin::Flag(setting.flag()) };
        sources.add(setting, given);
    }

    let mut config = Config::default();
    for setting in SETTINGS {
        // Overridden values are checked too: they would take effect as soon as the other value is removed.
        for GivenValue { value, origin } in sources.values(setting) {
            if let Err(message) = (setting.apply)(&mut config, value) {
                problems.push(Problem::with_value(setting, value, origin, &message));
            }
        }
    }
    problems.extend(check::find_problems(&mut config, &sources, &problems, purpose, read_file));
    if !problems.is_empty() {
        return Err(problems);
    }
    check::complete(&mut config, &mut sources);
    if let Some(host_name) = &machine_name {
        config.web.hosts.add(host_name);
    }
    warnings.extend(check::warnings(&config, &sources));
    Ok(Loaded { config, warnings, effective: effective_settings(&sources) })
}

fn effective_settings(sources: &Sources) -> Vec<EffectiveSetting> {
    let effective = |setting: &'static Setting| EffectiveSetting {
        setting,
        display_value: display_value(setting, sources.value(setting), usize::MAX),
        origin: sources.origin(setting).clone(),
    };
    SETTINGS.iter().map(effective).collect()
}

/// Returns the host name of the machine if it is a valid domain.
fn host_name(read_file: ReadFile<'_>) -> Option<String> {
    ["/proc/sys/kernel/hostname", "/etc/hostname"]
        .iter()
        .filter_map(|path| String::from_utf8(read_file(Path::new(path)).ok()?).ok())
        .find_map(|name| values::host_name(name.trim()).ok())
}

fn load_file(path: &Path, read_file: ReadFile<'_>, sources: &mut Sources, problems: &mut Vec<Problem>) {
    let text = match read_file(path).map(String::from_utf8) {
        Ok(Ok(text)) => text,
        Ok(Err(_)) => {
            problems.push(Problem::new(format!("file {}: is not UTF-8", path.display())));
            return;
        }
        Err(error) => {
            let path = path.display();
            problems.push(Problem::new(format!("file {path}: cannot be read: {error}")));
            return;
        }
    };
    let contents = file::parse(path, &text);
    problems.extend(contents.problems);
    for (setting, given) in contents.given {
        sources.add(setting, given);
    }
}

/// The relevant part of the environment.
struct Variables {
    /// The path of the configuration file.
    config: Option<PathBuf>,
    /// The variables with one of the prefixes, by full name.
    by_name: BTreeMap<String, OsString>,
    /// Variables with our prefix that are not settings.
    non_settings: &'static [&'static str],
}

impl Variables {
    fn collect(env: impl IntoIterator<Item = (OsString, OsString)>, non_settings: &'static [&'static str]) -> Self {
        let mut by_name: BTreeMap<String, OsString> = env
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .filter(|(name, _)| name.starts_with(PREFIX) || name.starts_with(COMPAT_PREFIX))
            .collect();
        let config = by_name.remove(CONFIG_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
        Self { config, by_name, non_settings }
    }

    fn add_to(&self, prefix: &str, sources: &mut Sources, problems: &mut Vec<Problem>) {
        // Usually there are none. Then the names of all settings need not be made.
        if !self.by_name.keys().any(|name| name.starts_with(prefix)) {
            return;
        }
        for setting in SETTINGS {
            let name = format!("{prefix}{}", setting.variable());
            let Some(value) = self.by_name.get(&name) else {
                continue;
            };
            let origin = Origin::Variable(name);
            match value.to_str() {
                Some(value) => sources.add(setting, GivenValue { value: value.to_owned(), origin }),
                None => problems.push(Problem::without_value(setting, &origin, "the value is not UTF-8")),
            }
        }
    }

    /// Returns a problem for each variable with our prefix that is not a setting: most likely it is misspelled.
    fn unknown_problems(&self) -> impl Iterator<Item = Problem> {
        let names = || {
            let own = |setting: &Setting| format!("{PREFIX}{}", setting.variable());
            SETTINGS.iter().map(own).chain([CONFIG_VARIABLE.to_owned()])
        };
        self.unknown_names(PREFIX).map(move |name| {
            let hint = suggestion(name, names());
            Problem::new(format!("variable {name}: no such setting{hint}"))
        })
    }

    /// Returns a warning about `INBUCKET_` variables that are not settings. They belong to a program with other
    /// settings, so the server still starts.
    fn ignored_warning(&self) -> Option<String> {
        let names: Vec<_> = self.unknown_names(COMPAT_PREFIX).collect();
        (!names.is_empty()).then(|| format!("unknown variables are ignored: {}", names.join(", ")))
    }

    fn unknown_names(&self, prefix: &'static str) -> impl Iterator<Item = &str> {
        let known = move |name: &str| {
            let is_setting = |setting: &Setting| name.strip_prefix(prefix) == Some(&setting.variable());
            SETTINGS.iter().any(is_setting)
        };
        self.by_name
            .iter()
            .filter(move |(name, _)| name.starts_with(prefix) && !known(name))
            // The variables of the commands may be set in a shell that also starts a server.
            .filter(|(name, _)| !self.non_settings.contains(&name.as_str()))
            .filter(|(name, value)| !is_service_link(name, value))
            .map(|(name, _)| name.as_str())
    }
}

/// Returns true if a variable was set by Kubernetes or Docker for a service with our name. A service `restante` gives
/// every container next to it `RESTANTE_SERVICE_HOST`, `RESTANTE_PORT=tcp://...` and `RESTANTE_PORT_2500_TCP_ADDR`.
fn is_service_link(name: &str, value: &OsStr) -> bool {
    if name.ends_with("_SERVICE_HOST") || name.contains("_SERVICE_PORT") {
        return true;
    }
    match name.rsplit_once("_PORT_") {
        Some((_, rest)) => rest.starts_with(|c: char| c.is_ascii_digit()),
        None => name.ends_with("_PORT") && value.to_string_lossy().contains("://"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_service_links() {
        let cases = [
            ("RESTANTE_SERVICE_HOST", "10.0.0.1", true),
            ("RESTANTE_SERVICE_PORT", "2500", true),
            ("RESTANTE_SERVICE_PORT_SMTP", "2500", true),
            ("RESTANTE_PORT", "tcp://10.0.0.1:2500", true),
            ("RESTANTE_SMTP_PORT_2500_TCP", "tcp://10.0.0.1:2500", true),
            ("RESTANTE_PORT_2500_TCP_PORT", "2500", true),
            ("RESTANTE_SMTP_PORT", "2500", false),
            ("RESTANTE_PORT_TCP", "2500", false),
            ("RESTANTE_SMTP_ADRR", ":2500", false),
        ];
        for (name, value, expected) in cases {
            assert_eq!(is_service_link(name, OsStr::new(value)), expected, "{name}");
        }
    }
}
