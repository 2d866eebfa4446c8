//! AUTH (RFC 4954): the exchanges of [`crate::sasl`] and of CRAM-MD5 (RFC 2195), up to a user name and a proof. The
//! driver checks the proof.

use crate::line::split_word;
use crate::sasl::{self, Credentials, Exchange, Mechanism, Step, decode_base64, decode_md5_hex};

use super::command_error::CommandError;
use super::{LoginRefusal, Proof, reply};

/// An exchange that waits for the next line of the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AuthExchange {
    /// A mechanism that all protocols have.
    Sasl(Exchange),
    /// CRAM-MD5 waits for the digest of this challenge.
    CramMd5 {
        /// The challenge that was sent.
        challenge: String,
    },
    /// The client was sent the reason why its bearer token is refused, and has to send a line before the reply.
    Refused(LoginRefusal),
}

/// The next step of an exchange.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AuthStep {
    /// Send this challenge, which is in base64, and wait for a response.
    Continue(AuthExchange, &'static str),
    /// The driver has to create a challenge.
    NeedChallenge,
    /// The exchange is complete.
    Complete {
        /// The user name.
        user: String,
        /// The password, token or digest.
        proof: Proof,
        /// The mechanism, except for CRAM-MD5.
        mechanism: Option<Mechanism>,
    },
    /// The login is refused.
    Refused(LoginRefusal),
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
    let mechanism = Mechanism::parse(mechanism).ok_or(CommandError::Bad(reply::AUTH_UNKNOWN))?;
    convert(Exchange::start(mechanism, Some(initial).filter(|initial| !initial.is_empty())))
}

/// Converts the step of an exchange that all protocols have. The authorization identity is ignored: nothing in SMTP
/// depends on it.
fn convert(step: Step) -> Result<AuthStep, CommandError> {
    match step {
        Step::Challenge(exchange, challenge) => Ok(AuthStep::Continue(AuthExchange::Sasl(exchange), challenge)),
        Step::Credentials(Credentials { mechanism, user, proof, .. }) => {
            Ok(AuthStep::Complete { user, proof: proof.into(), mechanism: Some(mechanism) })
        }
        Step::Cancelled => Err(CommandError::AuthCancelled),
        Step::Malformed => Err(CommandError::Bad(reply::AUTH_MALFORMED)),
    }
}

impl From<sasl::Proof> for Proof {
    fn from(proof: sasl::Proof) -> Self {
        match proof {
            sasl::Proof::Password(password) => Self::Password(password),
            sasl::Proof::Bearer(token) => Self::Bearer(token),
        }
    }
}

impl AuthExchange {
    /// Processes the next line of the client.
    pub(crate) fn handle_response(self, line: &[u8]) -> Result<AuthStep, CommandError> {
        match self {
            Self::Sasl(exchange) => convert(exchange.line(line)),
            Self::Refused(refusal) => Ok(AuthStep::Refused(refusal)),
            Self::CramMd5 { .. } if line == b"*" => Err(CommandError::AuthCancelled),
            Self::CramMd5 { challenge } => {
                let step = decode_base64(line).and_then(|response| parse_cram_md5(&response, challenge));
                step.ok_or(CommandError::Bad(reply::AUTH_MALFORMED))
            }
        }
    }
}

/// Parses the response of CRAM-MD5: the user name, a space, and the digest in hexadecimal (RFC 2195 section 2).
fn parse_cram_md5(response: &str, challenge: String) -> Option<AuthStep> {
    let (user, digest) = response.rsplit_once(' ')?;
    let digest = decode_md5_hex(digest.as_bytes())?;
    Some(AuthStep::Complete { user: user.to_owned(), proof: Proof::CramMd5 { challenge, digest }, mechanism: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Secret;

    fn done(user: &str, password: &str) -> AuthStep {
        let proof = Proof::Password(Secret::new(password));
        AuthStep::Complete { user: user.to_owned(), proof, mechanism: Some(Mechanism::Plain) }
    }

    /// Returns the step of an exchange that continues.
    fn challenge(mechanism: Mechanism, initial: Option<&[u8]>) -> AuthStep {
        let Step::Challenge(exchange, challenge) = Exchange::start(mechanism, initial) else { panic!("{mechanism}") };
        AuthStep::Continue(AuthExchange::Sasl(exchange), challenge)
    }

    #[test]
    fn parses_auth_arguments() {
        let malformed = || Err(CommandError::Bad(reply::AUTH_MALFORMED));
        let syntax = || Err(CommandError::Bad(reply::SYNTAX_AUTH));
        let table: &[(&str, Result<AuthStep, CommandError>)] = &[
            ("PLAIN", Ok(challenge(Mechanism::Plain, None))),
            ("xoauth2", Ok(challenge(Mechanism::XOAuth2, None))),
            ("OAuthBearer", Ok(challenge(Mechanism::OAuthBearer, None))),
            ("XOAUTH2 AAA=", malformed()),
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
            ("Login", Ok(challenge(Mechanism::Login, None))),
            ("LOGIN amFtZXM=", Ok(challenge(Mechanism::Login, Some(b"amFtZXM=")))),
            ("LOGIN =", Ok(challenge(Mechanism::Login, Some(b"")))),
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
            Ok(AuthStep::Complete { user: user.to_owned(), proof, mechanism: None })
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
