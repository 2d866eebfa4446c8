//! The texts of Mailpit's commands: help, version, and the commands that have another name here. Also the table of
//! options for the documentation.

use std::fmt::Write as _;

use super::options::{Effect, Kind, MailpitOption, OPTIONS};

/// The version of Mailpit whose interface the server has.
const MAILPIT_VERSION: &str = "1.30";

/// Returns the help of the server.
pub(super) fn usage() -> String {
    let mut text = format!(
        "Restante {} as a replacement for Mailpit {MAILPIT_VERSION}\n\n\
         Usage:\n  mailpit [flags]\n  mailpit [command]\n\n\
         Available Commands:\n  \
         readyz      Checks whether the server is ready\n  \
         sendmail    Sends a message from standard input\n  \
         version     Prints the version\n\n\
         Flags:\n",
        env!("CARGO_PKG_VERSION")
    );
    for option in OPTIONS.iter().filter(|option| !option.flag.is_empty()) {
        let short = option.short.map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
        let flag = match option.kind {
            Kind::Bool => option.flag.to_owned(),
            Kind::Int => format!("{} int", option.flag),
            Kind::Text => format!("{} string", option.flag),
        };
        let note = if matches!(option.effect, Effect::Ignored(_)) { " (no effect)" } else { "" };
        let _ = writeln!(text, "  {short}--{flag:<38} {}{note}", option.help);
    }
    text.push_str("\nVariables MP_* work too. Settings of Restante (variables RESTANTE_*) override both.\n");
    text
}

/// Returns the version.
pub(super) fn version() -> String {
    format!("mailpit: Restante {} as a replacement for Mailpit {MAILPIT_VERSION}\n", env!("CARGO_PKG_VERSION"))
}

/// Returns the help of the health check.
pub(super) fn readyz() -> String {
    "Checks whether the server is ready: the exit code is 0 if it is, otherwise 1\n\n\
     Usage:\n  mailpit readyz [flags]\n\n\
     Flags:\n  \
     -l, --listen string      Address of the web interface\n      \
     --webroot string     Prefix of all paths\n      \
     --https              Uses HTTPS, without checking the certificate\n      \
     --wait               Waits until the server is ready\n      \
     --timeout duration   How long --wait waits (default 30s)\n"
        .to_owned()
}

/// Returns an error for a command that has another name.
pub(super) fn replacement(command: &str) -> String {
    let instead = match command {
        "dump" => "use restante export",
        "ingest" => "use restante import",
        _ => "the index is rebuilt when it is needed",
    };
    format!("the command {command} does not exist here: {instead}")
}

/// Returns the table of all options in Markdown.
pub fn render_options() -> String {
    let mut text = String::from("| flag | variable | effect |\n|---|---|---|\n");
    for option in OPTIONS {
        let _ = writeln!(text, "| {} | {} | {} |", flags(option), variables(option), effect(option.effect));
    }
    text
}

fn flags(option: &MailpitOption) -> String {
    if option.flag.is_empty() {
        return String::new();
    }
    let short = option.short.map(|short| format!("`-{short}`, ")).unwrap_or_default();
    format!("{short}`--{}`", option.flag)
}

fn variables(option: &MailpitOption) -> String {
    let old = option.deprecated.iter().filter(|name| name.starts_with("MP_"));
    let names: Vec<String> = [option.variable].iter().chain(old).map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn effect(effect: Effect) -> String {
    match effect {
        Effect::Setting(key) => format!("`{key}`"),
        Effect::Converted(keys, _) => keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", "),
        Effect::Used(text) => text.to_owned(),
        Effect::Always(text) => format!("always: {text}"),
        Effect::Ignored(reason) => format!("none, with a warning: {reason}"),
    }
}
