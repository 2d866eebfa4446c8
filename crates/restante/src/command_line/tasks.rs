//! The tasks of the commands `token`, `user` and `script`, and the values of flags. The flags are in `arguments`.

use std::path::PathBuf;
use std::time::Duration;

use restante_auth::{Scope, Scopes};
use restante_mail::duration;

use crate::health::MAX_WAIT;

/// The maximum lifetime of a token.
const MAX_TOKEN_LIFETIME: Duration = Duration::from_hours(24 * 36_500);

/// `restante token`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenTask {
    /// Create a token and print it.
    Create {
        /// The name of the token.
        name: String,
        /// The scopes that it grants.
        scopes: Scopes,
        /// The mailboxes that it grants, as patterns; empty means all.
        mailboxes: Vec<String>,
        /// The lifetime, if it is limited.
        expires: Option<Duration>,
    },
    /// List the tokens.
    List {
        /// True to print JSON.
        json: bool,
    },
    /// Revoke the token with this id or name.
    Revoke(String),
}

/// `restante user`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserTask {
    /// Add a user, or change the password of an existing one.
    Add(String),
}

/// `restante script`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptRequest {
    /// The path of the script.
    pub file: PathBuf,
    /// What to do with it.
    pub task: ScriptTask,
}

/// What to do with a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptTask {
    /// Load it and list its handlers.
    Check,
    /// Run the tests of these names, or all tests if there are none.
    Test(Vec<String>),
}

/// Parses scopes separated by commas.
pub(super) fn parse_scopes(text: &str) -> Result<Scopes, String> {
    let scopes = text.split(',').map(|scope| scope.trim().parse::<Scope>());
    scopes
        .collect::<Result<_, _>>()
        .map_err(|allowed| format!("must be {allowed}, or several of them separated by commas"))
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
