//! The arguments: the flags generated from the table of settings, and the commands. The commands that use a server,
//! with their flags, are defined in `restante_cli`. Values of settings are not parsed here, but together with those of
//! the other sources, so that all errors are reported at once.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory as _, FromArgMatches, Subcommand, value_parser};
use restante_cli::ClientCommand;
use restante_settings::{Flags, Origin, Preset, SETTINGS, Setting, Status, Value};
use restante_transfer::{ExportRequest, ImportRequest};

use super::completions::{self, GeneratedDocs};
use super::hints::hints;
use super::server_flags;
use super::tasks::{ProjectTask, ScriptTask, Task, TokenTask, UserTask, parse_wait};
use crate::ca::CaRequest;
use crate::exit::Exit;

/// The parsed command line.
pub(super) enum ParsedArguments {
    /// A task that needs settings. `None` means that the settings are only checked.
    Configured(Option<Task>, Flags),
    Client(ClientCommand),
    Ca(CaRequest),
    Docs(GeneratedDocs),
}

/// Flags that Inbucket accepts with a single dash, as Go programs do.
const SINGLE_DASH: &[&str] = &["help", "logfile", "logjson", "netdebug", "pidfile", "version"];
/// The settings that are flags of `export`. Others can be set by the environment and the file.
const EXPORT_SETTINGS: &[&str] = &["mailboxnaming", DATA, DATABASE];
/// The settings that are flags of `import`.
const IMPORT_SETTINGS: &[&str] = &["mailboxnaming", DATA, DATABASE, "storage.retentionperiod", "storage.mailboxmsgcap"];
/// The settings that are flags of `script`.
const SCRIPT_SETTINGS: &[&str] = &["mailboxnaming", "lua.sandbox", "lua.timeout", "lua.memorykb"];
/// The settings that are flags of `token`.
const TOKEN_SETTINGS: &[&str] = &[DATA, "auth.tokens"];
/// The settings that are flags of `user`.
const USER_SETTINGS: &[&str] = &["auth.users"];
/// The settings that are flags of `project`.
const PROJECT_SETTINGS: &[&str] = &["mailboxnaming", "projects.rules"];
/// The settings in the short help of the server.
const COMMON_SETTINGS: &[&str] = &[
    "loglevel",
    "smtp.addr",
    "pop3.addr",
    "imap.addr",
    "web.addr",
    "auth.users",
    DATA,
    DATABASE,
    "storage.retentionperiod",
    "lua.path",
    "webhook.urls",
    "relay.targets",
];
/// The end of the help of commands with flags for some settings.
pub(crate) const SETTINGS_NOTE: &str =
    "Other settings are read from environment variables and the configuration file, see restante --help.";
/// The end of the help of commands with flags for all settings.
pub(crate) const ALL_SETTINGS_NOTE: &str = "All settings can be given as flags, see restante --help.";
/// How settings can be given.
const SOURCES_NOTE: &str = "Every setting can also be given as an environment variable, such as RESTANTE_SMTP_ADDR for \
     --smtp-addr (INBUCKET_SMTP_ADDR works too), or in the configuration file. Flags override variables, and variables \
     override the file.";
/// The name of the flag with the path of the configuration file.
pub(super) const CONFIG_FLAG: &str = "config";
/// The key of the data directory.
const DATA: &str = "storage.path";
/// The key of the database URL.
const DATABASE: &str = "storage.url";

/// Parses the command line, including the program name. Help, version, other texts and errors are returned as `Err`.
pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<ParsedArguments, Exit> {
    let args: Vec<OsString> = args.into_iter().map(with_two_dashes).collect();
    let args = restante_cli::with_two_dashes(args);
    match server_flags::parse(&args) {
        Some(flags) => Ok(ParsedArguments::Configured(Some(Task::Serve { open_page: false }), flags)),
        None => parse_with_clap(&args),
    }
}

/// Parses the command line with the definition of all commands.
pub(super) fn parse_with_clap(args: &[OsString]) -> Result<ParsedArguments, Exit> {
    let root_matches = command().try_get_matches_from(args).map_err(|error| {
        let code = u8::try_from(error.exit_code()).unwrap_or(2);
        let hints = if code == 0 { String::new() } else { hints(args) };
        Exit { text: format!("{}{hints}", error.render()), code }
    })?;
    let mut flags = Flags::default();
    add_flags(&mut flags, &root_matches);
    let open_page = root_matches.get_flag("open");
    let Some((name, matches)) = root_matches.subcommand() else {
        return Ok(ParsedArguments::Configured(Some(Task::Serve { open_page }), flags));
    };
    if open_page {
        return Err(Exit { text: format!("error: --open cannot be used with the command {name}\n"), code: 2 });
    }
    if let Some(command) = ClientCommand::parse(name, matches) {
        return Ok(ParsedArguments::Client(command));
    }
    if GeneratedDocs::has_subcommand(name) {
        return Ok(ParsedArguments::Docs(parse_arguments(&root_matches)));
    }
    if name == "ca" {
        return Ok(ParsedArguments::Ca(parse_arguments(matches)));
    }
    add_flags(&mut flags, matches);
    let subcommand = matches.subcommand();
    if let Some((_, matches)) = subcommand {
        add_flags(&mut flags, matches);
    }
    let task = match (name, subcommand) {
        ("health", _) => Task::Health { wait: matches.get_one("wait").copied() },
        ("export", _) => Task::Export(parse_arguments(matches)),
        ("import", _) => {
            let request: ImportRequest = parse_arguments(matches);
            if request.has_mailpit_database() {
                flags.presets = mailpit_import_presets();
            }
            Task::Import(request)
        }
        ("script", _) => Task::Script(parse_arguments(matches)),
        ("token", _) => Task::Token(parse_arguments(matches)),
        ("user", _) => Task::User(parse_arguments(matches)),
        ("project", _) => Task::Project(parse_arguments(matches)),
        (_, Some(("check", _))) => return Ok(ParsedArguments::Configured(None, flags)),
        (_, Some(("example", _))) => {
            return Err(match restante_settings::render_example(&flags.given) {
                Ok(text) => Exit { text, code: 0 },
                Err(problems) => Exit { text: restante_settings::report(&problems), code: 2 },
            });
        }
        _ => return Err(Exit { text: restante_settings::render_docs(), code: 0 }),
    };
    Ok(ParsedArguments::Configured(Some(task), flags))
}

/// Adds the flags that were given at one level of the command line. Later values override earlier ones.
fn add_flags(flags: &mut Flags, matches: &ArgMatches) {
    // A subcommand defines only its own flags.
    if let Ok(Some(path)) = matches.try_get_one::<PathBuf>(CONFIG_FLAG) {
        flags.config = Some(path.clone());
    }
    for setting in SETTINGS {
        let values = matches.try_get_many::<String>(setting.key).ok().flatten().into_iter().flatten();
        flags.given.extend(values.map(|value| (setting, value.clone())));
    }
}

/// Returns the limits of an import from Mailpit, which has no maximum age and no cap per mailbox: with the defaults of the
/// server, most messages of a large database would be lost.
fn mailpit_import_presets() -> Vec<Preset> {
    let unlimited = |setting: &&Setting| ["storage.retentionperiod", "storage.mailboxmsgcap"].contains(&setting.key);
    let origin = Origin::EmulatedProgram("mailpit");
    let preset = |setting| Preset { setting, value: "0".to_owned(), origin: origin.clone() };
    SETTINGS.iter().filter(unlimited).map(preset).collect()
}

/// Returns the arguments of a command. They were checked when the command line was parsed.
fn parse_arguments<T: FromArgMatches>(matches: &ArgMatches) -> T {
    T::from_arg_matches(matches).unwrap_or_else(|error| error.exit())
}

/// Returns the definition of the command line. Help, completions, man pages and the reference page are generated from
/// it.
pub(crate) fn command() -> Command {
    let check = Command::new("check")
        .about("Checks the configuration and prints the effective settings with their sources")
        .after_help(ALL_SETTINGS_NOTE)
        .args_override_self(true)
        .args(flags_with_help(|_| false));
    let health = Command::new("health")
        .about("Checks the health of the running server with this configuration")
        .after_help(ALL_SETTINGS_NOTE)
        .args_override_self(true)
        .arg(wait_flag())
        .args(flags_with_help(is_address));
    let docs = Command::new("docs").about("Prints the reference page of all settings in Markdown");
    let example = Command::new("example")
        .about("Prints a configuration file with all settings as comments, except for those given as flags")
        .args(flags());
    let config = Command::new("config")
        .about("Checks or documents the configuration without starting the server")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(check)
        .subcommand(docs)
        .subcommand(example);
    Command::new("restante")
        .version(env!("CARGO_PKG_VERSION"))
        .about("A mail server for development and tests that stores mail instead of sending it")
        .long_about(
            "A mail server for development and tests that stores mail instead of sending it. Without a command, the server \
             starts.",
        )
        .after_help(format!("These are the most common settings; restante --help shows all of them. {SOURCES_NOTE}"))
        .after_long_help(SOURCES_NOTE)
        .args_override_self(true)
        .arg(open_flag())
        .arg(as_flag())
        .args(flags())
        .subcommand(health)
        .subcommand(with_settings(ExportRequest::command(), EXPORT_SETTINGS))
        .subcommand(with_settings(ImportRequest::command(), IMPORT_SETTINGS))
        .subcommand(group::<ScriptTask>(
            "script",
            "Checks or tests a Lua script without starting the server",
            SCRIPT_SETTINGS,
        ))
        .subcommand(group::<TokenTask>("token", "Creates, lists and revokes tokens for programs", TOKEN_SETTINGS))
        .subcommand(group::<UserTask>("user", "Manages users", USER_SETTINGS))
        .subcommand(group::<ProjectTask>("project", "Tests the rules that choose projects", PROJECT_SETTINGS))
        .subcommand(CaRequest::command())
        .subcommand(config)
        .subcommands(restante_cli::commands())
        .subcommands(completions::commands())
}

/// Returns a command whose subcommands are derived from a type, and have flags for some settings.
fn group<T: Subcommand>(name: &'static str, about: &'static str, settings: &'static [&str]) -> Command {
    T::augment_subcommands(Command::new(name))
        .about(about)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .mut_subcommands(|command| with_settings(command, settings))
}

/// Adds the flags for some settings to a command.
fn with_settings(command: Command, settings: &'static [&str]) -> Command {
    command.args_override_self(true).args(selected_flags(settings)).after_help(SETTINGS_NOTE)
}

/// Returns the flags for all settings. The short help shows the most common ones.
fn flags() -> impl Iterator<Item = Arg> {
    let flags = SETTINGS.iter().map(|setting| flag(setting).hide_short_help(!COMMON_SETTINGS.contains(&setting.key)));
    std::iter::once(config_flag()).chain(flags)
}

/// Returns the flags for all settings. The help shows only some of them.
fn flags_with_help(is_shown: fn(&str) -> bool) -> impl Iterator<Item = Arg> {
    let flags = SETTINGS.iter().map(move |setting| flag(setting).hide(!is_shown(setting.key)));
    std::iter::once(config_flag()).chain(flags)
}

/// Returns true if a setting determines where the server is reached.
fn is_address(key: &str) -> bool {
    matches!(key.split_once('.'), Some((_, "addr" | "tlsaddr") | ("web", "basepath")))
}

/// Returns the flags for some of the settings. The data directory has its short name here.
fn selected_flags(keys: &[&str]) -> impl Iterator<Item = Arg> {
    let settings = SETTINGS.iter().filter(move |setting| keys.contains(&setting.key));
    let flags = settings.map(|setting| match (setting.key, setting.alias) {
        (DATA, Some(alias)) => {
            let arg = Arg::new(setting.key).long(alias).alias(setting.flag()).action(ArgAction::Append);
            let arg = arg.value_name(setting.value.placeholder()).display_order(0).help("The data directory.");
            arg.long_help(format!("The data directory.\nVariable RESTANTE_{}.", setting.variable()))
        }
        _ => flag(setting),
    });
    std::iter::once(config_flag()).chain(flags)
}

fn open_flag() -> Arg {
    Arg::new("open")
        .long("open")
        .action(ArgAction::SetTrue)
        .help_heading("General")
        .help("Opens the web interface in the default browser after the start.")
}

/// The time that `health` waits for the server.
fn wait_flag() -> Arg {
    Arg::new("wait")
        .long("wait")
        .value_name("DURATION")
        .value_parser(parse_wait)
        .help("Checks again until the server is ready, at most for this time, as in --wait 30s. The maximum is 24h.")
}

/// The flag is handled before the command line is parsed, because all further arguments are those of another program.
fn as_flag() -> Arg {
    Arg::new("as")
        .long("as")
        .value_name("PROGRAM")
        .value_parser(|_: &str| Err::<String, _>("must be the first argument"))
        .help_heading("General")
        .help("Runs as a replacement for another program: mailpit. Must be the first argument.")
        .long_help(
            "Runs as a replacement for another program: mailpit. Must be the first argument. All other arguments are then \
             those of that program. A program with the name mailpit does the same.",
        )
}

fn config_flag() -> Arg {
    Arg::new(CONFIG_FLAG)
        .long(CONFIG_FLAG)
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help_heading("General")
        .help("Reads settings from a TOML file.")
        .long_help("Reads settings from a TOML file.\nVariable RESTANTE_CONFIG.")
}

fn flag(setting: &'static Setting) -> Arg {
    let mut arg = Arg::new(setting.key)
        .long(setting.flag())
        .value_name(setting.value.placeholder())
        .action(ArgAction::Append)
        .help_heading(setting.section())
        .help(short_help(setting))
        .long_help(long_help(setting));
    if setting.value == Value::Bool {
        // The flag alone means true; `=false` is needed because many settings are true by default.
        arg = arg.num_args(0..=1).require_equals(true).default_missing_value("true");
    }
    if let Some(alias) = setting.alias {
        arg = arg.visible_alias(alias);
    }
    arg
}

fn short_help(setting: &Setting) -> String {
    let first = setting.help.split_inclusive(". ").next().unwrap_or_default().trim_end();
    match setting.status {
        Status::Active => first.to_owned(),
        Status::Ignored => format!("{first} (no effect)"),
    }
}

fn long_help(setting: &Setting) -> String {
    let note = match setting.status.note() {
        "" => String::new(),
        note => format!(" {note}"),
    };
    format!("{}{note}\nDefault {}. Variable RESTANTE_{}.", setting.help, setting.default_text(), setting.variable())
}

/// Converts `-logjson` to `--logjson`, so that command lines written for Inbucket work unchanged.
fn with_two_dashes(arg: OsString) -> OsString {
    let known = arg
        .to_str()
        .and_then(|text| text.strip_prefix('-'))
        .and_then(|text| text.split('=').next())
        .is_some_and(|name| SINGLE_DASH.contains(&name));
    if !known {
        return arg;
    }
    let mut doubled = OsString::from("-");
    doubled.push(AsRef::<OsStr>::as_ref(&arg));
    doubled
}

#[cfg(test)]
mod tests {
    use restante_settings::Purpose;

    use super::*;

    #[test]
    fn an_import_from_mailpit_has_no_limits_unless_they_are_set() {
        let limits = |args: &str, variable: Option<(&str, &str)>| {
            let args = args.split(' ').map(OsString::from);
            let Ok(ParsedArguments::Configured(_, flags)) = parse(args) else { panic!("the arguments are valid") };
            let env = variable.map(|(name, value)| (name.into(), value.into()));
            let no_file = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
            let storage = restante_settings::load(&flags, env, &[], &no_file, Purpose::Read).unwrap().config.storage;
            (storage.mailbox_msg_cap, storage.retention_period.map(|period| period.as_secs() / 3600))
        };
        assert_eq!(limits("restante import --data d in", None), (Some(500), Some(24)));
        let dir = restante_testdir::TestDir::new();
        let [database, mbox] = ["m.db", "m.mbox"].map(|name| dir.path().join(name));
        std::fs::write(&database, b"SQLite format 3\0 and more").unwrap();
        std::fs::write(&mbox, "From ann\n").unwrap();
        let (database, mbox) = (database.display(), mbox.display());
        assert_eq!(limits(&format!("restante import --data d {mbox}"), None), (Some(500), Some(24)));
        for args in [
            "restante import --data d --from m.db",
            "restante import --data d --format mailpit m.db",
            &format!("restante import --data d {database}"),
            &format!("restante import --data d {mbox} {database}"),
        ] {
            assert_eq!(limits(args, None), (None, None), "{args}");
            assert_eq!(limits(&format!("{args} --storage-mailboxmsgcap=9"), None), (Some(9), None), "{args}");
            assert_eq!(limits(args, Some(("RESTANTE_STORAGE_RETENTIONPERIOD", "2h"))), (None, Some(2)), "{args}");
        }
    }

    #[test]
    fn an_import_can_select_a_tenant() {
        let parse = |args: &str| parse(args.split(' ').map(OsString::from));
        let Ok(ParsedArguments::Configured(Some(Task::Import(request)), _)) =
            parse("restante import --data d --from m.db --tenant acme")
        else {
            panic!("the arguments are valid")
        };
        assert_eq!(request.tenant.as_deref(), Some("acme"));
        assert!(parse("restante import --data d --tenant acme m.mbox").is_err());
    }
}
