//! The example of a configuration file: every setting with its help text, commented out unless a value is given.

use std::fmt::Write;

use super::problem::{Origin, Problem};
use super::setting::{Setting, Status, Value};
use super::table::SETTINGS;
use super::types::Config;

const INTRODUCTION: &str = "\
# Settings of Restante. Lines that begin with # and a name are defaults: remove the # and change the value.
# Durations have the form \"90s\", lists the form [\"a\", \"b\"]. To check this file, run: restante config check --config FILE
";

/// The maximum number of columns of a comment.
const MAX_COLUMNS: usize = 120;

/// Returns a configuration file with all settings that have an effect. Those in `given` are set; the others are comments
/// with the default. Returns the problems if a value is invalid.
pub fn render_example(given: &[(&'static Setting, String)]) -> Result<String, Vec<Problem>> {
    let problems: Vec<_> = given.iter().filter_map(|(setting, value)| find_problem(setting, value)).collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut text = INTRODUCTION.to_owned();
    let mut section = "";
    for setting in SETTINGS.iter().filter(|setting| setting.status == Status::Active) {
        let (prefix, name) = setting.key.split_once('.').unwrap_or(("", setting.key));
        if prefix != section {
            section = prefix;
            let _ = write!(text, "\n[{section}]\n");
        }
        text.push('\n');
        add_comment(&mut text, setting.help);
        if setting.defaults_to_host_name {
            add_comment(&mut text, "The default is the host name of the machine.");
        }
        // A flag that is repeated overrides itself.
        let value = given.iter().rev().find(|(other, _)| other.key == setting.key).map(|(_, value)| value.as_str());
        let mark = if value.is_some() { "" } else { "#" };
        let _ = writeln!(text, "{mark}{name} = {}", toml_value(setting, value.unwrap_or(setting.default)));
    }
    Ok(text)
}

fn find_problem(setting: &Setting, value: &str) -> Option<Problem> {
    let message = (setting.apply)(&mut Config::default(), value).err()?;
    Some(Problem::with_value(setting, value, &Origin::Flag(setting.flag()), &message))
}

/// Adds a text as comment lines.
fn add_comment(page: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split(' ') {
        if line.len() + 1 + word.len() > MAX_COLUMNS {
            let _ = writeln!(page, "{line}");
            line.truncate(1);
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(page, "{line}");
}

/// Returns a value as TOML. Lists and parameters are texts with commas, which the file accepts too.
fn toml_value(setting: &Setting, value: &str) -> String {
    let is_literal = match setting.value {
        Value::Bool => ["true", "false"].contains(&value),
        Value::Number => value == "0" || (value.bytes().all(|byte| byte.is_ascii_digit()) && !value.starts_with('0')),
        _ => false,
    };
    if is_literal && !value.is_empty() { value.to_owned() } else { toml::Value::from(value).to_string() }
}
