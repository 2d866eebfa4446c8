//! The options of all commands: the server, the credentials and the output format.

use std::io::IsTerminal as _;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches as _, value_parser};
use restante_http_client::TlsTrust;
use restante_mail::duration;
use restante_platform::read_passwords;

use crate::error::CommandError;
use crate::output::Color;
use crate::server::{Credentials, Server, parse_base_url};

/// The environment variables of the commands. They are not settings of the server.
pub const ENVIRONMENT_VARIABLES: &[&str] = &[
    SERVER_VARIABLE,
    TOKEN_VARIABLE,
    USER_VARIABLE,
    PASSWORD_VARIABLE,
    SMTP_VARIABLE,
    PROJECT_VARIABLE,
    DOMAIN_VARIABLE,
];

pub(crate) const SERVER_VARIABLE: &str = "RESTANTE_SERVER";
pub(crate) const TOKEN_VARIABLE: &str = "RESTANTE_TOKEN";
pub(crate) const USER_VARIABLE: &str = "RESTANTE_USER";
pub(crate) const PASSWORD_VARIABLE: &str = "RESTANTE_PASSWORD";
/// The project and the domain of the leased run that a command is run with.
pub(crate) const PROJECT_VARIABLE: &str = "RESTANTE_PROJECT";
pub(crate) const DOMAIN_VARIABLE: &str = "RESTANTE_DOMAIN";
/// The address of the SMTP server.
pub(crate) const SMTP_VARIABLE: &str = "RESTANTE_SMTP";

const DEFAULT_SERVER: &str = "http://localhost:9000";
/// The default time limit for a response.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum value of options with a duration.
const MAX_DURATION: Duration = Duration::from_hours(24 * 36_500);
const TIMEOUT_FLAG: &str = "timeout";
const HEADING: &str = "Server and output";

// The options for server and output. A doc comment would replace the description of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// The URL of the server, or HOST:PORT; variable RESTANTE_SERVER [default: http://localhost:9000]
    #[arg(long, help_heading = HEADING, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// A token for the server; variable RESTANTE_TOKEN
    #[arg(long, help_heading = HEADING)]
    token: Option<String>,
    /// The user name; variable RESTANTE_USER. The password is read from RESTANTE_PASSWORD or from the terminal
    #[arg(long, help_heading = HEADING, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// A PEM file with additional trusted certificates for HTTPS
    #[arg(long, help_heading = HEADING, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Accepts every certificate of the server; sends SMTP credentials unencrypted, even to other machines
    #[arg(long, help_heading = HEADING, conflicts_with = "cacert")]
    pub(crate) insecure: bool,
    /// Prints the response of the REST API as one JSON document
    #[arg(long, help_heading = HEADING)]
    pub(crate) json: bool,
    /// When to use colors [default: auto, on a terminal unless NO_COLOR is set]
    #[arg(long, help_heading = HEADING, value_name = "WHEN")]
    pub(crate) color: Option<Color>,
    #[arg(skip = DEFAULT_TIMEOUT)]
    pub(crate) timeout: Duration,
}

impl Options {
    /// Adds the options to a command.
    pub(crate) fn add_to(command: Command) -> Command {
        // The time limit of the command itself has priority.
        let has_timeout = command.get_arguments().any(|arg| arg.get_long() == Some(TIMEOUT_FLAG));
        let command = Self::augment_args(command);
        if has_timeout {
            return command;
        }
        let timeout = Arg::new(TIMEOUT_FLAG).long(TIMEOUT_FLAG).value_name("TIME").value_parser(parse_duration);
        command.arg(timeout.help("The time limit for a response [default: 30s]").help_heading(HEADING))
    }

    pub(crate) fn parse(matches: &ArgMatches) -> Self {
        let mut options = Self::from_arg_matches(matches).unwrap_or_else(|error| error.exit());
        options.or_host_and_port(matches);
        if let Ok(Some(timeout)) = matches.try_get_one(TIMEOUT_FLAG) {
            options.timeout = *timeout;
        }
        options
    }

    /// Uses host and port, the flags of Inbucket's client, from the parent command, unless a server was given.
    pub(crate) fn or_host_and_port(&mut self, parent: &ArgMatches) {
        self.server = self.server.take().or_else(|| host_and_port(parent));
    }

    /// Returns the server. Flags have priority over variables.
    pub(crate) fn server(&self) -> Result<Server, CommandError> {
        let named = self.server_url();
        let source = if self.server.is_some() { "" } else { " in RESTANTE_SERVER" };
        let (url, url_credentials) = parse_base_url(named.as_deref().unwrap_or(DEFAULT_SERVER)).map_err(|reason| {
            CommandError::Usage(format!(
                "The address of the server{source} is invalid: {reason}. Use HOST:PORT or a URL, for example localhost:9000 or \
                 https://mail.example.org."
            ))
        })?;
        let credentials = match (&self.token, &self.user) {
            (Some(token), _) => Credentials::Token(token.clone()),
            (None, Some(user)) => user_with_password(user)?,
            (None, None) if url_credentials != Credentials::None => url_credentials,
            (None, None) => match (env_variable(TOKEN_VARIABLE), env_variable(USER_VARIABLE)) {
                (Some(token), _) => Credentials::Token(token),
                (None, Some(user)) => user_with_password(&user)?,
                (None, None) => Credentials::None,
            },
        };
        Ok(Server::new(url, credentials, self.trust()?, self.timeout))
    }

    /// Returns true if a server was given; otherwise it is the default one.
    pub(crate) fn is_server_named(&self) -> bool {
        self.server_url().is_some()
    }

    fn server_url(&self) -> Option<String> {
        self.server.clone().or_else(|| env_variable(SERVER_VARIABLE))
    }

    fn trust(&self) -> Result<TlsTrust, CommandError> {
        if self.insecure {
            return Ok(TlsTrust::accept_any());
        }
        let Some(path) = &self.cacert else { return Ok(TlsTrust::default()) };
        let invalid = |reason: String| {
            CommandError::Usage(format!("The certificate {} cannot be used: {reason}.", path.display()))
        };
        let pem = std::fs::read(path).map_err(|error| invalid(error.to_string()))?;
        TlsTrust::with_extra_roots(&pem).map_err(|error| invalid(error.to_string()))
    }
}

/// Returns an environment variable, unless it is empty.
pub(crate) fn env_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the flags by which Inbucket's client selects the server.
pub(crate) fn inbucket_args() -> [Arg; 2] {
    [
        Arg::new("host").long("host").value_name("HOST").help("The host of the server [default: localhost]"),
        Arg::new("port")
            .long("port")
            .value_name("PORT")
            .value_parser(value_parser!(u16))
            .help("The HTTP port of the server [default: 9000]"),
    ]
}

fn host_and_port(matches: &ArgMatches) -> Option<String> {
    let host = matches.try_get_one::<String>("host").ok().flatten();
    let port = matches.try_get_one::<u16>("port").ok().flatten();
    if host.is_none() && port.is_none() {
        return None;
    }
    let (host, port) = (host.map_or("localhost", String::as_str), port.unwrap_or(&9000));
    let is_ipv6 = host.parse::<Ipv6Addr>().is_ok();
    Some(if is_ipv6 { format!("http://[{host}]:{port}") } else { format!("http://{host}:{port}") })
}

/// Parses a duration, or a number of seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    match duration::parse_or_seconds(text)? {
        time if time > MAX_DURATION => Err("must be at most 36500d".to_owned()),
        time => Ok(time),
    }
}

fn user_with_password(name: &str) -> Result<Credentials, CommandError> {
    let password = match env_variable(PASSWORD_VARIABLE) {
        Some(password) => password,
        None => prompt_password(name)?,
    };
    Ok(Credentials::User { name: name.to_owned(), password })
}

/// Prompts for a password on the terminal, without echo.
fn prompt_password(name: &str) -> Result<String, CommandError> {
    let missing = || {
        CommandError::Usage(format!(
            "There is no password for user {name}: set {PASSWORD_VARIABLE}, or enter it on a terminal."
        ))
    };
    if !std::io::stdin().is_terminal() {
        return Err(missing());
    }
    let [password] = read_passwords([&format!("Password for {name}: ")]).map_err(|_| missing())?;
    Ok(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_durations() {
        let table = [
            ("30", Some(30_000)),
            ("1m30s", Some(90_000)),
            ("1d", Some(86_400_000)),
            ("36500d", Some(36_500 * 86_400_000)),
            ("36501d", None),
            ("soon", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse_duration(text).ok(), expected.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn builds_url_from_host_and_port() {
        let table: &[(&[&str], Option<&str>)] = &[
            (&["x"], None),
            (&["x", "--host", "ci.test"], Some("http://ci.test:9000")),
            (&["x", "--port", "80"], Some("http://localhost:80")),
            (&["x", "--host", "::1"], Some("http://[::1]:9000")),
            (&["x", "--host", "[::1]", "--port", "80"], Some("http://[::1]:80")),
        ];
        for (args, expected) in table {
            let matches = Command::new("x").args(inbucket_args()).get_matches_from(*args);
            assert_eq!(host_and_port(&matches).as_deref(), *expected, "{args:?}");
        }
    }
}
