//! The tasks that need settings. The arguments of the commands `token`, `user`, `project` and `script` are derived from theirs.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use restante_auth::{Scope, Scopes};
use restante_mail::address::{Address, Alphabet};
use restante_mail::duration;
use restante_mail::naming::Project;
use restante_net::ListenAddr;
use restante_transfer::{ExportRequest, ImportRequest};

use crate::health::MAX_WAIT;

/// The maximum lifetime of a token.
const MAX_TOKEN_LIFETIME: Duration = Duration::from_hours(24 * 36_500);

/// A task that needs settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Run the server.
    Serve {
        /// True to open the web interface in a browser.
        open_page: bool,
    },
    /// Check the health of the running server with this configuration.
    Health {
        /// The maximum time to wait until the server is ready. `None` means that it is checked once.
        wait: Option<Duration>,
    },
    /// Export messages to files.
    Export(ExportRequest),
    /// Import messages from files.
    Import(ImportRequest),
    /// Check or test a script.
    Script(ScriptTask),
    /// Create, list or revoke tokens.
    Token(TokenTask),
    /// Add users, change passwords and rights, or list users.
    User(UserTask),
    /// Test the rules that choose projects.
    Project(ProjectTask),
}

/// `restante token`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum TokenTask {
    /// Creates a token and prints it once, or creates a token with a given text.
    Create {
        /// The name of the token.
        name: String,
        /// The scopes that it grants: read, write, admin, relay.
        #[arg(id = "scope", long, value_name = "SCOPE,...", value_parser = parse_scopes, default_value = "read")]
        scopes: Scopes,
        /// Only mailboxes whose names match; * and ? are wildcards; may be repeated.
        #[arg(id = "mailbox", long, value_name = "PATTERN")]
        mailboxes: Vec<String>,
        /// Only mailboxes of this project; may be repeated. With one project, names in requests are names in it.
        #[arg(id = "project", long, value_name = "NAME")]
        projects: Vec<Project>,
        /// The lifetime, if it is limited.
        #[arg(
            long, value_name = "TIME", value_parser = parse_lifetime,
            help = "The lifetime, such as 30d or 12h [default: unlimited]"
        )]
        expires: Option<Duration>,
        /// Uses the text in this file as the token, such as the key in the configuration of a program; - is standard input.
        #[arg(long, value_name = "FILE")]
        key_file: Option<PathBuf>,
    },
    /// Lists the tokens, without their secrets.
    List {
        /// Prints JSON.
        #[arg(long)]
        json: bool,
    },
    /// Revokes a token; a running server refuses it within a second.
    Revoke {
        /// The id or the name of the token.
        #[arg(value_name = "ID|NAME")]
        name: String,
    },
}

/// `restante user`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum UserTask {
    /// Adds a user to the user file, or changes the password and the rights of a user.
    #[command(
        long_about = "Adds a user to the user file, or changes the password and the rights of a user. The password is read \
            from the terminal without echo, or from standard input if that is not a terminal. The file is created if it does \
            not exist. Without flags for rights, a new user may do everything, and the rights of an existing user do not \
            change."
    )]
    Add {
        /// The user name.
        name: String,
        /// The scopes that are granted: read, write, admin, relay; read if only mailboxes or projects are given.
        #[arg(id = "scope", long, value_name = "SCOPE,...", value_parser = parse_scopes)]
        scopes: Option<Scopes>,
        /// Only mailboxes whose names match; * and ? are wildcards; may be repeated.
        #[arg(id = "mailbox", long, value_name = "PATTERN")]
        mailboxes: Vec<String>,
        /// Only mailboxes of this project; may be repeated. With one project, names in requests are names in it.
        #[arg(id = "project", long, value_name = "NAME")]
        projects: Vec<Project>,
        /// All scopes in all mailboxes: removes the rights of the user from the file.
        #[arg(long, conflicts_with_all = ["scope", "mailbox", "project"])]
        all_rights: bool,
    },
    /// Lists the users of the user file and their rights.
    List {
        /// Prints JSON.
        #[arg(long)]
        json: bool,
    },
}

/// `restante project`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ProjectTask {
    /// Prints the mailbox and the project that each recipient of a message would get, and the rule that decides.
    #[command(
        long_about = "Prints the mailbox and the project that each recipient of a message would get, and the rule of \
            projects.rules that decides. A client whose credentials are for one project delivers into it, and rules are not used."
    )]
    Test {
        /// The name with which the client has logged in.
        #[arg(long, value_name = "NAME")]
        login: Option<String>,
        /// The API key of a request to the API of a provider.
        #[arg(long, value_name = "KEY")]
        key: Option<String>,
        /// The address of the listener as configured, such as localhost:2500.
        #[arg(long, value_name = "ADDRESS")]
        listener: Option<ListenAddr>,
        /// The IP address of the client.
        #[arg(long, value_name = "IP")]
        client: Option<IpAddr>,
        /// The name in EHLO.
        #[arg(long, value_name = "NAME")]
        helo: Option<String>,
        /// The sender of the envelope.
        #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
        from: Option<Address>,
        /// A recipient of the envelope; may be repeated.
        #[arg(id = "to", long, value_name = "ADDRESS", value_parser = parse_address, required = true)]
        recipients: Vec<Address>,
        /// A header field; may be repeated.
        #[arg(id = "header", long, value_name = "NAME: VALUE", value_parser = parse_header)]
        header: Vec<String>,
    },
}

/// `restante script`.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum ScriptTask {
    /// Loads a script like the server, and lists its handlers.
    Check {
        /// The script.
        file: PathBuf,
    },
    /// Runs the test_ functions of a script with simulated sessions and messages.
    Test {
        /// The script, including its tests.
        file: PathBuf,
        /// Only the tests with these function names.
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
}

/// Parses scopes separated by commas.
pub(super) fn parse_scopes(text: &str) -> Result<Scopes, String> {
    let scopes = text.split(',').map(|scope| scope.trim().parse::<Scope>());
    scopes
        .collect::<Result<_, _>>()
        .map_err(|allowed| format!("must be {allowed}, or several of them separated by commas"))
}

/// Parses a sender or a recipient.
fn parse_address(text: &str) -> Result<Address, String> {
    Address::parse(text, Alphabet::Utf8).map_err(|error| format!("must be an address such as ann@example.org: {error}"))
}

/// Parses a header field.
fn parse_header(text: &str) -> Result<String, String> {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    let is_field = text.split_once(':').is_some_and(|(name, _)| is_name(name)) && !text.contains(['\r', '\n']);
    is_field.then(|| text.to_owned()).ok_or_else(|| "must be NAME: VALUE, such as 'X-Application: shop'".to_owned())
}

/// Parses the lifetime of a token.
pub(super) fn parse_lifetime(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        time if time.is_zero() || time > MAX_TOKEN_LIFETIME => Err("must be more than 0 and at most 36500d".to_owned()),
        time => Ok(time),
    }
}

/// Parses the time that a health check waits for the server.
pub(super) fn parse_wait(text: &str) -> Result<Duration, String> {
    match duration::parse_or_seconds(text)? {
        time if time > MAX_WAIT => Err("must be at most 24h".to_owned()),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_times_to_wait() {
        for (text, seconds) in [("30s", 30), ("30", 30), ("5m", 300), ("24h", 86400), ("0s", 0)] {
            assert_eq!(parse_wait(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "soon", "-1s", "25h", "99999999999d"] {
            assert!(parse_wait(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parses_lifetimes() {
        for (text, hours) in [("30d", 720), ("1d", 24), ("12h", 12), ("1h30m0s", 1), ("2w", 336)] {
            assert_eq!(parse_lifetime(text).map(|time| time.as_secs() / 3600), Ok(hours), "{text}");
        }
        for text in ["", "d", "-1d", "0", "0d", "soon", "36501d", "99999999999d"] {
            assert!(parse_lifetime(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parses_scopes_separated_by_commas() {
        assert_eq!(parse_scopes("read, write"), Ok([Scope::Read, Scope::Write].into_iter().collect()));
        for text in ["", "all", "read,", "Read"] {
            assert!(parse_scopes(text).is_err(), "{text}");
        }
    }
}
