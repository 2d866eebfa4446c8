//! AUTH (RFC 4954): the exchanges of PLAIN (RFC 4616) and LOGIN up to a user name and a password. Whether they are
//! right is for the driver to say.

use crate::Secret;
use crate::line::word;
use crate::sasl::{Plain, decode};

use super::fault::Fault;
use super::reply;

/// An exchange that waits for the peer's next line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// PLAIN waits for its only message.
    Plain,
    /// LOGIN waits for the user name.
    LoginUser,
    /// LOGIN waits for the password.
    LoginPassword {
        /// The name that came before.
        user: String,
    },
}

/// Where an exchange has come to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The peer is asked by this reply.
    Ask(Exchange, &'static str),
    /// Everything was said.
    Done {
        /// The user name.
        user: String,
        /// The password.
        password: Secret,
    },
}

/// Parses what follows the verb: a mechanism, and perhaps the first response with it.
pub(crate) fn begin(arguments: &[u8]) -> Result<Progress, Fault> {
    let (mechanism, rest) = word(arguments);
    let (initial, rest) = word(rest);
    if mechanism.is_empty() || !rest.is_empty() {
        return Err(Fault::Bad(reply::SYNTAX_AUTH));
    }
    let (exchange, challenge) = if mechanism.eq_ignore_ascii_case(b"PLAIN") {
        (Exchange::Plain, reply::CHALLENGE_EMPTY)
    } else if mechanism.eq_ignore_ascii_case(b"LOGIN") {
        (Exchange::LoginUser, reply::CHALLENGE_USER)
    } else {
        return Err(Fault::Bad(reply::AUTH_UNKNOWN));
    };
    match initial {
        b"" => Ok(Progress::Ask(exchange, challenge)),
        // RFC 4954 section 4: an empty first response is written as one equals sign.
        b"=" => exchange.respond(b""),
        initial => exchange.respond(initial),
    }
}

impl Exchange {
    /// Takes the peer's next line.
    pub(crate) fn respond(self, line: &[u8]) -> Result<Progress, Fault> {
        if line == b"*" {
            return Err(Fault::Refused(reply::AUTH_CANCELLED));
        }
        let response = decode(line).ok_or(Fault::Bad(reply::AUTH_MALFORMED))?;
        match self {
            Self::Plain => plain(&response).ok_or(Fault::Bad(reply::AUTH_MALFORMED)),
            Self::LoginUser => Ok(Progress::Ask(Self::LoginPassword { user: response }, reply::CHALLENGE_PASSWORD)),
            Self::LoginPassword { user } => Ok(Progress::Done { user, password: Secret::new(response) }),
        }
    }
}

/// Whom the user wants to act as is ignored: there is nothing that only some may do.
fn plain(message: &str) -> Option<Progress> {
    let Plain { user, password, .. } = Plain::parse(message)?;
    Some(Progress::Done { user, password })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(user: &str, password: &str) -> Progress {
        Progress::Done { user: user.to_owned(), password: Secret::new(password) }
    }

    #[test]
    fn first_lines() {
        let malformed = || Err(Fault::Bad(reply::AUTH_MALFORMED));
        let syntax = || Err(Fault::Bad(reply::SYNTAX_AUTH));
        let table: &[(&str, Result<Progress, Fault>)] = &[
            ("PLAIN", Ok(Progress::Ask(Exchange::Plain, reply::CHALLENGE_EMPTY))),
            ("plain AGphbWVzAHNlY3JldA==", Ok(done("james", "secret"))),
            ("PLAIN YWRtaW4AamFtZXMAc2VjcmV0", Ok(done("james", "secret"))),
            ("PLAIN AAA=", Ok(done("", ""))),
            ("PLAIN =", malformed()),
            ("PLAIN amFtZXM=", malformed()),
            ("PLAIN AGEAYgBj", malformed()),
            ("PLAIN AGphbWVzAHNlY3JldA", malformed()),
            ("PLAIN AHUA/A==", Ok(done("u", "\u{fffd}"))),
            ("PLAIN AGH/AGI=", Ok(done("a\u{fffd}", "b"))),
            ("PLAIN ???", malformed()),
            ("PLAIN *", Err(Fault::Refused(reply::AUTH_CANCELLED))),
            ("PLAIN AAA= AAA=", syntax()),
            ("Login", Ok(Progress::Ask(Exchange::LoginUser, reply::CHALLENGE_USER))),
            (
                "LOGIN amFtZXM=",
                Ok(Progress::Ask(Exchange::LoginPassword { user: "james".to_owned() }, reply::CHALLENGE_PASSWORD)),
            ),
            ("LOGIN =", Ok(Progress::Ask(Exchange::LoginPassword { user: String::new() }, reply::CHALLENGE_PASSWORD))),
            ("CRAM-MD5", Err(Fault::Bad(reply::AUTH_UNKNOWN))),
            ("", syntax()),
        ];
        for (arguments, expected) in table {
            assert_eq!(&begin(arguments.as_bytes()), expected, "{arguments:?}");
        }
    }
}
