//! AUTH (RFC 4954): the exchanges of PLAIN (RFC 4616), LOGIN and CRAM-MD5 (RFC 2195) up to a user name and a proof. Whether it
//! is right is decided by the driver.

use crate::Secret;
use crate::line::word;
use crate::sasl::{Plain, decode, hexadecimal};

use super::fault::Fault;
use super::{Proof, reply};

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
    /// CRAM-MD5 waits for the digest of this challenge.
    CramMd5 {
        /// The challenge that was sent.
        challenge: String,
    },
}

/// Where an exchange has come to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The peer is asked by this reply.
    Ask(Exchange, &'static str),
    /// The driver is asked for a challenge.
    Challenge,
    /// Everything was said.
    Done {
        /// The user name.
        user: String,
        /// The password or digest.
        proof: Proof,
    },
}

/// Parses what follows the verb: a mechanism, and perhaps the first response with it. `cram_md5` says whether CRAM-MD5 is
/// offered.
pub(crate) fn begin(arguments: &[u8], cram_md5: bool) -> Result<Progress, Fault> {
    let (mechanism, rest) = word(arguments);
    let (initial, rest) = word(rest);
    if mechanism.is_empty() || !rest.is_empty() {
        return Err(Fault::Bad(reply::SYNTAX_AUTH));
    }
    if cram_md5 && mechanism.eq_ignore_ascii_case(b"CRAM-MD5") {
        // RFC 4954 section 4: the server speaks first, so there is no initial response.
        return if initial.is_empty() { Ok(Progress::Challenge) } else { Err(Fault::Bad(reply::SYNTAX_AUTH)) };
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
            return Err(Fault::Cancelled);
        }
        let response = decode(line).ok_or(Fault::Bad(reply::AUTH_MALFORMED))?;
        match self {
            Self::Plain => plain(&response).ok_or(Fault::Bad(reply::AUTH_MALFORMED)),
            Self::LoginUser => Ok(Progress::Ask(Self::LoginPassword { user: response }, reply::CHALLENGE_PASSWORD)),
            Self::LoginPassword { user } => Ok(Progress::Done { user, proof: Proof::Password(Secret::new(response)) }),
            Self::CramMd5 { challenge } => cram_md5(&response, challenge).ok_or(Fault::Bad(reply::AUTH_MALFORMED)),
        }
    }
}

/// RFC 2195 section 2: the user name, a blank, and the digest in hexadecimal.
fn cram_md5(response: &str, challenge: String) -> Option<Progress> {
    let (user, digest) = response.rsplit_once(' ')?;
    let digest = hexadecimal(digest.as_bytes())?;
    Some(Progress::Done { user: user.to_owned(), proof: Proof::CramMd5 { challenge, digest } })
}

/// Whom the user wants to act as is ignored: there is nothing that only some may do.
fn plain(message: &str) -> Option<Progress> {
    let Plain { user, password, .. } = Plain::parse(message)?;
    Some(Progress::Done { user, proof: Proof::Password(password) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(user: &str, password: &str) -> Progress {
        Progress::Done { user: user.to_owned(), proof: Proof::Password(Secret::new(password)) }
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
            ("PLAIN *", Err(Fault::Cancelled)),
            ("PLAIN AAA= AAA=", syntax()),
            ("Login", Ok(Progress::Ask(Exchange::LoginUser, reply::CHALLENGE_USER))),
            (
                "LOGIN amFtZXM=",
                Ok(Progress::Ask(Exchange::LoginPassword { user: "james".to_owned() }, reply::CHALLENGE_PASSWORD)),
            ),
            ("LOGIN =", Ok(Progress::Ask(Exchange::LoginPassword { user: String::new() }, reply::CHALLENGE_PASSWORD))),
            ("cram-md5", Ok(Progress::Challenge)),
            ("CRAM-MD5 dGlt", syntax()),
            ("CRAM-SHA1", Err(Fault::Bad(reply::AUTH_UNKNOWN))),
            ("", syntax()),
        ];
        for (arguments, expected) in table {
            assert_eq!(&begin(arguments.as_bytes(), true), expected, "{arguments:?}");
        }
        assert_eq!(begin(b"CRAM-MD5", false), Err(Fault::Bad(reply::AUTH_UNKNOWN)));
    }

    #[test]
    fn digests() {
        let challenge = "<1896.697170952@postoffice.reston.mci.net>";
        let respond = |line: &str| Exchange::CramMd5 { challenge: challenge.to_owned() }.respond(line.as_bytes());
        let digest = *b"\xb9\x13\xa6\x02\xc7\xed\xa7\xa4\x95\xb4\xe6\xe7\x33\x4d\x38\x90";
        let done = |user: &str| {
            let proof = Proof::CramMd5 { challenge: challenge.to_owned(), digest };
            Ok(Progress::Done { user: user.to_owned(), proof })
        };
        let malformed = || Err(Fault::Bad(reply::AUTH_MALFORMED));
        // RFC 2195 section 2 has the first one.
        let table = [
            ("dGltIGI5MTNhNjAyYzdlZGE3YTQ5NWI0ZTZlNzMzNGQzODkw", done("tim")),
            ("dGltIHRheWxvciBiOTEzYTYwMmM3ZWRhN2E0OTViNGU2ZTczMzRkMzg5MA==", done("tim taylor")),
            ("dGlt", malformed()),
            ("dGltIGI5MTM=", malformed()),
            ("", malformed()),
            ("*", Err(Fault::Cancelled)),
        ];
        for (line, expected) in table {
            assert_eq!(respond(line), expected, "{line}");
        }
    }
}
