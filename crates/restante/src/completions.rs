//! What is made from the command line's own description: completions for shells, man pages, and the reference page
//! `docs/cli.md`. All of it comes from the one description that arguments are read by, so it cannot drift. The description of
//! the HTTP API, which `http` makes, is told here too.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, Command};
use restante_cli::EXIT_CODES;
use restante_settings::SETTINGS;

use crate::command_line::{self, GeneratedDocs};

const INTRODUCTION: &str = "\
# Commands

This page is made by `restante docs`; change the commands, not this file.

`restante` alone starts the server; the settings that are its flags are described in [config.md](config.md). Everything else is a
command. Those with the options `--server`, `--token` and so on talk to a server that runs somewhere, and
[shell.md](shell.md) shows what they are good for. `restante COMMAND --help` tells the same as this page.
";

const SERVER_OPTIONS: &str = "
## Server and output

The options of all commands that talk to a server:

";

const OUTPUT: &str = "
On a terminal there are tables, colours, and times such as `2 min ago`. In a pipe or a file each line of a table has its columns
separated by tabs, without a head, and nothing is cut. What a mail says is never written to a terminal as it is: control
characters, and those that turn the direction of writing, appear as their numbers.

## Exit codes

| code | of commands that talk to a server |
|---|---|
| 0 | found, done, or as expected |
| 1 | nothing there, no match, or no mail in time |
| 2 | wrong usage, also where the server says so |
| 3 | no server answers |
| 4 | the server wants other credentials, or does not take a mail |
| 5 | an error of the server, or of a file here |

`restante send` of a ready mail ends as `sendmail` does, see there. An error is one sentence on standard error.
";

/// The heading of the options that all commands with a server have.
const COMMON_HEADING: &str = "Server and output";

/// Does what was asked for.
pub fn run(manual: &GeneratedDocs) -> ExitCode {
    let told = match manual {
        GeneratedDocs::Completions(shell) => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut command_line::command(), "restante", &mut text);
            Ok(text)
        }
        GeneratedDocs::ManPage(path) => man_page(path),
        GeneratedDocs::AllManPages(folder) => write_man_pages(folder).map(|()| Vec::new()),
        GeneratedDocs::Reference => Ok(reference().into_bytes()),
        GeneratedDocs::Openapi => restante_http::openapi().map(String::into_bytes).map_err(|error| error.to_string()),
    };
    // Whoever closed the pipe early has seen enough, and the exit code tells of a failure too.
    match told {
        Ok(text) => {
            let _ = io::stdout().write_all(&text);
            ExitCode::SUCCESS
        }
        Err(why) => {
            let _ = writeln!(io::stderr(), "restante: {why}");
            ExitCode::from(2)
        }
    }
}

/// The reference page of all commands, in Markdown: `docs/cli.md` is this text.
pub fn reference() -> String {
    let root = build_command();
    let mut page = INTRODUCTION.to_owned();
    for command in visible_commands(&root) {
        write_command(&mut page, command);
    }
    page.push_str(SERVER_OPTIONS);
    let common = root.find_subcommand("list").into_iter().flat_map(Command::get_arguments);
    common.filter(|arg| arg.get_help_heading() == Some(COMMON_HEADING)).for_each(|arg| write_option(&mut page, arg));
    page.push_str(OUTPUT);
    page
}

/// The whole command line. What `help` tells is on the page of each command.
fn build_command() -> Command {
    let mut root = command_line::command().disable_help_subcommand(true);
    root.build();
    root
}

/// The man page of the command that these words lead to.
fn man_page(path: &[String]) -> Result<Vec<u8>, String> {
    let root = build_command();
    let mut command = &root;
    for name in path {
        command = command.find_subcommand(name).ok_or_else(|| format!("There is no command {name:?}."))?;
    }
    render_man_page(command).map_err(|error| error.to_string())
}

/// Writes all man pages.
fn write_man_pages(folder: &Path) -> Result<(), String> {
    let root = build_command();
    for command in std::iter::once(&root).chain(visible_commands(&root)) {
        let path = folder.join(format!("{}.1", file_name(command)));
        render_man_page(command)
            .and_then(|page| std::fs::write(&path, page))
            .map_err(|error| format!("The page {} cannot be written: {error}.", path.display()))?;
    }
    Ok(())
}

fn render_man_page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    // A page is named as its file is, with dashes between the words.
    let named = command.clone().name(file_name(command)).version(env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(named).render(&mut page)?;
    Ok(page)
}

fn file_name(command: &Command) -> String {
    full_name(command).replace(' ', "-")
}

fn full_name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

/// Every command that people see, those below others behind these.
fn visible_commands(root: &Command) -> Vec<&Command> {
    let mut found = Vec::new();
    let mut left: Vec<&Command> = visible_subcommands(root);
    while let Some(command) = left.pop() {
        found.push(command);
        left.extend(visible_subcommands(command));
    }
    found
}

/// The commands right below one, the last one first.
fn visible_subcommands(command: &Command) -> Vec<&Command> {
    let mut below: Vec<&Command> = command.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    below.reverse();
    below
}

fn write_command(page: &mut String, command: &Command) {
    let about = command.get_long_about().or_else(|| command.get_about());
    // Writing into a string does not fail, here and below.
    let _ = write!(page, "\n## {}\n\n`{}`\n\n", full_name(command), usage(command));
    let about = escape_markup(&about.map(ToString::to_string).unwrap_or_default());
    let _ = writeln!(page, "{}.", about.trim_end_matches('.'));
    let (mut has_settings, mut has_common, mut is_first) = (false, false, true);
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set() && arg.get_id() != "help") {
        let is_setting = arg.get_id() == "config" || SETTINGS.iter().any(|setting| setting.key == arg.get_id());
        let is_common = arg.get_help_heading() == Some(COMMON_HEADING);
        has_settings |= is_setting;
        has_common |= is_common;
        if is_setting || is_common {
            continue;
        }
        if std::mem::take(&mut is_first) {
            page.push('\n');
        }
        write_option(page, arg);
    }
    if has_settings {
        page.push_str("\nTakes flags for settings too, see [config.md](config.md).\n");
    }
    if let Some(more) = command.get_after_help().map(ToString::to_string).filter(|more| more != EXIT_CODES) {
        let _ = write!(page, "\n{more}\n");
    }
    if has_common {
        page.push_str("\nTakes the options for [server and output](#server-and-output) too.\n");
    }
}

/// `restante get [OPTIONS] <MAILBOX> [ID]`.
fn usage(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    usage.trim_start_matches("Usage: ").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn write_option(page: &mut String, arg: &Arg) {
    let value = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string).unwrap_or_default();
    let takes_value = arg.get_action().takes_values();
    let needs_value = takes_value && arg.get_num_args().is_none_or(|count| count.min_values() > 0);
    let spelt = match (arg.get_short(), arg.get_long()) {
        (_, Some(long)) if needs_value => format!("--{long} {value}"),
        (_, Some(long)) => format!("--{long}"),
        (Some(short), None) if needs_value => format!("-{short} {value}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) => value,
    };
    let help = escape_markup(&arg.get_help().map(ToString::to_string).unwrap_or_default());
    let choices: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|_| takes_value && !arg.is_hide_possible_values_set())
        .map(|choice| format!("`{}`", choice.get_name()))
        .collect();
    let choices = if choices.is_empty() { String::new() } else { format!(": {}", choices.join(", ")) };
    let default = match arg.get_default_values() {
        [default, ..] if takes_value => format!(" [default: {}]", default.to_string_lossy()),
        _ => String::new(),
    };
    let _ = writeln!(page, "- `{spelt}`: {help}{choices}{default}");
}

/// What stands in angle brackets would be markup.
fn escape_markup(help: &str) -> String {
    help.replace('<', "\\<")
}
