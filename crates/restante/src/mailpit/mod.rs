//! The server as a replacement for Mailpit: `restante --as mailpit`, or the program under the name `mailpit`. It accepts
//! Mailpit's flags and variables and has its ports, log lines and commands.
//!
//! `options` is the table of flags and variables, `arguments` parses command lines, and `mapping`, `conversions` and
//! `relay` convert values to settings. `yaml` reads the configuration files of the relay. `readyz` is the health check,
//! and `ready_lines` logs the lines that container tools wait for. The command `sendmail` is in `restante_cli`.

mod arguments;
mod conversions;
mod help;
mod mapped;
mod mapping;
mod options;
mod ready_lines;
mod readyz;
mod relay;
mod yaml;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use restante_platform::program_name;
use restante_settings::{Flags, Loaded, Problem, Purpose, ReadFile};

pub use help::render_options;
pub use options::{Convert, Effect, Kind, MailpitOption, OPTIONS};
pub(crate) use ready_lines::log_ready_lines;

use crate::exit::Exit;
use arguments::FlagSpec;
use mapped::{Given, GivenValues};

/// The name of the program that the server replaces.
const NAME: &str = "mailpit";
/// The flag that selects that program.
const AS_FLAG: &str = "--as";
/// The prefix of Mailpit's variables.
const PREFIX: &str = "MP_";
/// The exit code of Mailpit for every error.
const FAILURE: u8 = 1;

/// What the process has to do as a replacement for Mailpit.
#[derive(Debug)]
pub enum MailpitCommand {
    /// Run the server.
    Serve(Box<Loaded>),
    /// Check the health of a running server.
    Readyz(readyz::Readyz),
    /// Send a message from standard input. The arguments begin with the name of the command.
    Sendmail(Vec<OsString>),
    /// Print a text and exit.
    Exit(Exit),
}

/// Returns the arguments of Mailpit, without the program name, if the program runs as a replacement for Mailpit. An error
/// names the accepted programs.
pub fn arguments(args: &[OsString]) -> Option<Result<Vec<OsString>, Exit>> {
    let program = program_name(args);
    if program == NAME {
        return Some(Ok(args[1..].to_vec()));
    }
    // As in Mailpit, a name such as `mailpit-sendmail` is that of the command.
    let lower_case = program.to_string_lossy().to_ascii_lowercase();
    if lower_case.contains(NAME) && lower_case.contains("send") {
        let command = OsString::from("sendmail");
        return Some(Ok([command].into_iter().chain(args[1..].iter().cloned()).collect()));
    }
    let first = args.get(1)?.to_str()?;
    let (name, rest) = match first.strip_prefix(AS_FLAG)? {
        "" => (args.get(2).and_then(|name| name.to_str()), args.get(3..)),
        joined => (Some(joined.strip_prefix('=')?), args.get(2..)),
    };
    if name == Some(NAME) {
        return Some(Ok(rest.unwrap_or_default().to_vec()));
    }
    let text = format!("restante: {AS_FLAG} needs the name of the program to replace: {NAME}\n");
    Some(Err(Exit { text, code: 2 }))
}

/// Parses the arguments after the program name, the environment, and the configuration file.
pub fn parse(
    args: Vec<OsString>,
    env: impl IntoIterator<Item = (OsString, OsString)>,
    read_file: ReadFile<'_>,
) -> MailpitCommand {
    let env: Vec<(OsString, OsString)> = env.into_iter().collect();
    if args.first().is_some_and(|arg| arg == "sendmail") {
        return MailpitCommand::Sendmail(args);
    }
    let args: Vec<String> = args.into_iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let parsed = match args.first().map(String::as_str) {
        Some("readyz") => readyz::parse(&args[1..], env, read_file).map(MailpitCommand::Readyz),
        Some("version") => Err(Exit { text: help::version(), code: 0 }),
        Some("help") => Err(Exit { text: help::usage(), code: 0 }),
        Some(command @ ("dump" | "ingest" | "reindex")) => Err(failure(&help::replacement(command))),
        Some(word) if !word.starts_with('-') => {
            Err(failure(&format!("unknown command \"{word}\" for \"{NAME}\"\nRun '{NAME} --help' for usage.")))
        }
        _ => parse_server(&args, env, read_file).map(|loaded| MailpitCommand::Serve(Box::new(loaded))),
    };
    parsed.unwrap_or_else(MailpitCommand::Exit)
}

/// Parses the flags and variables of the server.
fn parse_server(args: &[String], env: Vec<(OsString, OsString)>, read_file: ReadFile<'_>) -> Result<Loaded, Exit> {
    let specs: Vec<FlagSpec> = OPTIONS.iter().flat_map(FlagSpec::for_option).collect();
    let parsed = arguments::parse(args, &specs).map_err(|error| failure(&format!("{error}\n{}", help::usage())))?;
    if parsed.help {
        return Err(Exit { text: help::usage(), code: 0 });
    }
    if let Some(word) = parsed.words.first() {
        return Err(failure(&format!("unknown command \"{word}\" for \"{NAME}\"\nRun '{NAME} --help' for usage.")));
    }
    let (mut given, mut warnings) = (GivenValues::new(), Vec::new());
    add_variables(&env, &mut given, &mut warnings);
    for flag in parsed.flags {
        given.insert(flag.name, Given { value: flag.value, source: format!("flag --{}", flag.written) });
    }
    let mapped = mapping::map(&given, read_file);
    warnings.extend(mapped.warnings);
    let mut problems: Vec<Problem> = mapped.problems.into_iter().map(Problem::new).collect();
    let flags = Flags { presets: mapped.presets, ..Flags::default() };
    let loaded = restante_settings::load(&flags, env, restante_cli::ENVIRONMENT_VARIABLES, read_file, Purpose::Serve);
    // The settings of Restante may contain users too.
    if loaded.as_ref().is_ok_and(|loaded| !loaded.config.auth.is_enabled()) {
        problems.extend(mapping::send_api_problem(&given).map(Problem::new));
    }
    match loaded {
        Ok(mut loaded) if problems.is_empty() => {
            warnings.append(&mut loaded.warnings);
            loaded.warnings = warnings;
            Ok(loaded)
        }
        Ok(_) => Err(configuration_errors(&problems)),
        Err(further) => {
            problems.extend(further);
            Err(configuration_errors(&problems))
        }
    }
}

/// Adds the values of variables. Deprecated and unknown variables give a warning. An empty variable is not set, except those
/// with credentials: without an error, a missing secret would open the server.
fn add_variables(env: &[(OsString, OsString)], given: &mut GivenValues, warnings: &mut Vec<String>) {
    let is_credential = |name: &str| OPTIONS.iter().any(|option| option.variable == name && option.is_credential);
    let variables: BTreeMap<&str, &OsStr> = env
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?, value.as_os_str())))
        .filter(|(name, value)| name.starts_with(PREFIX) && (!value.is_empty() || is_credential(name)))
        .collect();
    let mut unknown = Vec::new();
    for (name, value) in variables {
        let by_name = OPTIONS.iter().find(|option| option.variable == name);
        let deprecated = || OPTIONS.iter().find(|option| option.deprecated.contains(&name));
        let Some(option) = by_name.or_else(deprecated) else {
            unknown.push(name);
            continue;
        };
        let value = Given { value: value.to_string_lossy().into_owned(), source: format!("variable {name}") };
        if by_name.is_some() {
            given.insert(option.name(), value);
        } else {
            warnings.push(format!("variable {name} is deprecated: use {}", option.variable));
            given.entry(option.name()).or_insert(value);
        }
    }
    if !unknown.is_empty() {
        warnings.push(format!("unknown variables are ignored: {}", unknown.join(", ")));
    }
}

/// Returns the flag and the variable that set the setting with this key, if there are both.
pub(crate) fn option_for(key: &str) -> Option<String> {
    let has_both_names = |option: &&MailpitOption| !option.flag.is_empty() && !option.variable.is_empty();
    let option = OPTIONS.iter().filter(has_both_names).find(|option| option.sets(key))?;
    Some(format!("--{} or {}", option.flag, option.variable))
}

fn configuration_errors(problems: &[Problem]) -> Exit {
    Exit { text: restante_settings::report(problems), code: FAILURE }
}

fn failure(message: &str) -> Exit {
    Exit { text: format!("Error: {message}\n"), code: FAILURE }
}
