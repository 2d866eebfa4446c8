//! AUTH (RFC 4954): the exchanges of PLAIN (RFC 4616), LOGIN and CRAM-MD5 (RFC 2195), up to a user name and a proof.
//! The driver checks the proof.

use crate::Secret;
use crate::line::split_word;
use crate::sasl::{PlainMessage, decode_base64, decode_md5_hex};

use super::command_error::CommandError;
use super::{Proof, reply};

/// An exchange that waits for the next line of the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AuthExchange {
    /// PLAIN waits for its only message.
    Plain,
    /// LOGIN waits for the user name.
    LoginUser,
    /// LOGIN waits for the password.
    LoginPassword {
        /// The user name from the previous line.
        user: String,
    },
    /// CRAM-MD5 waits for the digest of this challenge.
    CramMd5 {
        /// The challenge that was sent.
        challenge: String,
    },
}

/// The next step of an exchange.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AuthStep {
    /// Send this reply and wait for a response.
    Continue(AuthExchange, &'static str),
    /// The driver has to create a challenge.
    NeedChallenge,
    /// The exchange is complete.
    Complete {
        /// The user name.
        user: String,
        /// The password or digest.
        proof: Proof,
    },
}

/// Parses the arguments of AUTH: a mechanism, and optionally the initial response. `cram_md5` says whether CRAM-MD5 is
/// offered.
pub(crate) fn start(arguments: &[u8], cram_md5: bool) -> Result<AuthStep, CommandError> {
    let (mechanism, rest) = split_word(arguments);
    let (initial, rest) = split_word(rest);
    if mechanism.is_empty() || !rest.is_empty() {
        return Err(CommandError::Bad(reply::SYNTAX_AUTH));
    }
    if cram_md5 && mechanism.eq_ignore_ascii_case(b"CRAM-MD5") {
        // RFC 4954 section 4: the server sends the first message, so there is no initial response.
        return if initial.is_empty() {
            Ok(AuthStep::NeedChallenge)
        } else {
            Err(CommandError::Bad(reply::SYNTAX_AUTH))
        };
    }
    let (exchange, challenge) = if mechanism.eq_ignore_ascii_case(b"PLAIN") {
        (AuthExchange::Plain, reply::CHALLENGE_EMPTY)
    } else if mechanism.eq_ignore_ascii_case(b"LOGIN") {
        (AuthExchange::LoginUser, reply::CHALLENGE_USER)
    } else {
        return Err(CommandError::Bad(reply::AUTH_UNKNOWN));
    };
    match initial {
        b"" => Ok(AuthStep::Continue(exchange, challenge)),
        // RFC 4954 section 4: an empty initial response is written as a single equals sign.
        b"=" => exchange.handle_response(b""),
        initial => exchange.handle_response(initial),
    }
}

impl AuthExchange {
    /// Processes the next line of the client.
    pub(crate) fn handle_response(self, line: &[u8]) -> Result<AuthStep, CommandError> {
        if line == b"*" {
            return Err(CommandError::AuthCancelled);
        }
        let response = decode_base64(line).ok_or(CommandError::Bad(reply::AUTH_MALFORMED))?;
        match self {
            Self::Plain => parse_plain(&response).ok_or(CommandError::Bad(reply::AUTH_MALFORMED)),
            Self::LoginUser => {
                Ok(AuthStep::Continue(Self::LoginPassword { user: response }, reply::CHALLENGE_PASSWORD))
            }
            Self::LoginPassword { user } => {
                Ok(AuthStep::Complete { user, proof: Proof::Password(Secret::new(response)) })
            }
            Self::CramMd5 { challenge } => {
                parse_cram_md5(&response, challenge).ok_or(CommandError::Bad(reply::AUTH_MALFORMED))
            }
        }
    }
}

/// Parses the response of CRAM-MD5: the user name, a space, and the digest in hexadecimal (RFC 2195 section 2).
fn parse_cram_md5(response: &str, challenge: String) -> Option<AuthStep> {
    let (user, digest) = response.rsplit_once(' ')?;
    let digest = decode_md5_hex(digest.as_bytes())?;
    Some(AuthStep::Complete { user: user.to_owned(), proof: Proof::CramMd5 { challenge, digest } })
}

/// Parses the message of PLAIN. The authorization identity is ignored: nothing in SMTP depends on it.
fn parse_plain(message: &str) -> Option<AuthStep> {
    let PlainMessage { user, password, .. } = PlainMessage::parse(message)?;
    Some(AuthStep::Complete { user, proof: Proof::Password(password) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(user: &str, password: &str) -> AuthStep {
        AuthStep::Complete { user: user.to_owned(), proof: Proof::Password(Secret::new(password)) }
    }

    #[test]
    fn parses_auth_arguments() {
        let malformed = || Err(CommandError::Bad(reply::AUTH_MALFORMED));
        let syntax = || Err(CommandError::Bad(reply::SYNTAX_AUTH));
        let table: &[(&str, Result<AuthStep, CommandError>)] = &[
            ("PLAIN", Ok(AuthStep::Continue(AuthExchange::Plain, reply::CHALLENGE_EMPTY))),
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
            ("PLAIN *", Err(CommandError::AuthCancelled)),
            ("PLAIN AAA= AAA=", syntax()),
            ("Login", Ok(AuthStep::Continue(AuthExchange::LoginUser, reply::CHALLENGE_USER))),
            (
                "LOGIN amFtZXM=",
                Ok(AuthStep::Continue(
                    AuthExchange::LoginPassword { user: "james".to_owned() },
                    reply::CHALLENGE_PASSWORD,
                )),
            ),
            (
                "LOGIN =",
                Ok(AuthStep::Continue(AuthExchange::LoginPassword { user: String::new() }, reply::CHALLENGE_PASSWORD)),
            ),
            ("cram-md5", Ok(AuthStep::NeedChallenge)),
            ("CRAM-MD5 dGlt", syntax()),
            ("CRAM-SHA1", Err(CommandError::Bad(reply::AUTH_UNKNOWN))),
            ("", syntax()),
        ];
        for (arguments, expected) in table {
            assert_eq!(&start(arguments.as_bytes(), true), expected, "{arguments:?}");
        }
        assert_eq!(start(b"CRAM-MD5", false), Err(CommandError::Bad(reply::AUTH_UNKNOWN)));
    }

    #[test]
    fn parses_cram_md5_responses() {
        let challenge = "<1896.697170952@postoffice.reston.mci.net>";
        let respond =
            |line: &str| AuthExchange::CramMd5 { challenge: challenge.to_owned() }.handle_response(line.as_bytes());
        let digest = *b"\xb9\x13\xa6\x02\xc7\xed\xa7\xa4\x95\xb4\xe6\xe7\x33\x4d\x38\x90";
        let done = |user: &str| {
            let proof = Proof::CramMd5 { challenge: challenge.to_owned(), digest };
            Ok(AuthStep::Complete { user: user.to_owned(), proof })
        };
        let malformed = || Err(CommandError::Bad(reply::AUTH_MALFORMED));
        // The first one is from RFC 2195 section 2.
        let table = [
            ("dGltIGI5MTNhNjAyYzdlZGE3YTQ5NWI0ZTZlNzMzNGQzODkw", done("tim")),
            ("dGltIHRheWxvciBiOTEzYTYwMmM3ZWRhN2E0OTViNGU2ZTczMzRkMzg5MA==", done("tim taylor")),
            ("dGlt", malformed()),
            ("dGltIGI5MTM=", malformed()),
            ("", malformed()),
            ("*", Err(CommandError::AuthCancelled)),
        ];
        for (line, expected) in table {
            assert_eq!(respond(line), expected, "{line}");
        }
    }
}
