//! SASL: the exchanges of PLAIN (RFC 4616), LOGIN, XOAUTH2 and OAUTHBEARER (RFC 7628), which all protocols share. An
//! exchange ends with [`Credentials`]; the driver checks them. How a challenge is written, and what is replied at the
//! end, is in the protocol modules. They also limit the length of lines, and hide them from the transcript.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER_PERMISSIVE;
use restante_mail::named_enum;

use crate::Secret;

/// The longest line of an exchange (RFC 4954 section 4). It has room for a token of 9 KB.
pub const MAX_LINE_BYTES: usize = 12_288;

/// Separates the fields of XOAUTH2 and OAUTHBEARER.
const FIELD_SEPARATOR: char = '\x01';

named_enum! {
    /// A mechanism.
    pub enum Mechanism {
        /// A password in one message.
        Plain = "PLAIN",
        /// A name and a password in two messages.
        Login = "LOGIN",
        /// A bearer token, in the form of Google and Microsoft.
        XOAuth2 = "XOAUTH2",
        /// A bearer token, in the form of RFC 7628.
        OAuthBearer = "OAUTHBEARER",
    }
}

impl Mechanism {
    /// Returns the mechanism with this name, in any letter case.
    pub fn parse(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// Returns the challenge, in base64, that says why a bearer token is refused. The client responds with a line whose
    /// content has no meaning, and only then the exchange has failed. Returns `None` for mechanisms with a password.
    pub fn failure_challenge(self) -> Option<String> {
        // The form that Google sends.
        let error = match self {
            Self::Plain | Self::Login => return None,
            Self::XOAuth2 => r#"{"status":"400","schemes":"Bearer","scope":"https://mail.google.com/"}"#,
            Self::OAuthBearer => r#"{"status":"invalid_token","scope":"https://mail.google.com/"}"#,
        };
        Some(STANDARD.encode(error))
    }
}

/// The proof of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The password, as sent.
    Password(Secret),
    /// A bearer token (RFC 6750).
    Bearer(Secret),
}

/// The result of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The authorization identity. Empty if it is the same as the user.
    pub authorization_id: String,
    /// The user name, as sent.
    pub user: String,
    /// The password or token.
    pub proof: Proof,
}

/// An exchange that waits for the next line of the client.
#[derive(Debug, PartialEq, Eq)]
pub struct Exchange(Awaited);

/// The message that an exchange waits for.
#[derive(Debug, PartialEq, Eq)]
enum Awaited {
    /// The first message, which is the only one except for LOGIN.
    First(Mechanism),
    /// The password of LOGIN, after the user name.
    Password(String),
}

/// The next step of an exchange.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this challenge, which is in base64 and may be empty, and pass the next line to the exchange.
    Challenge(Exchange, &'static str),
    /// The exchange is complete.
    Credentials(Credentials),
    /// The client has cancelled the exchange.
    Cancelled,
    /// The message of the client is not valid.
    Malformed,
}

impl Exchange {
    /// Starts an exchange. `initial_response` is the word after the mechanism, if there is one.
    pub fn start(mechanism: Mechanism, initial_response: Option<&[u8]>) -> Step {
        let exchange = Self(Awaited::First(mechanism));
        match initial_response {
            // RFC 4954 section 4: an empty initial response is written as a single equals sign.
            Some(b"=") => exchange.line(b""),
            Some(response) => exchange.line(response),
            // "Username:", as every client of LOGIN expects it.
            None => Step::Challenge(exchange, if mechanism == Mechanism::Login { "VXNlcm5hbWU6" } else { "" }),
        }
    }

    /// Processes the next line of the client, without its line end.
    pub fn line(self, line: &[u8]) -> Step {
        if line == b"*" {
            return Step::Cancelled;
        }
        let Some(message) = decode_base64(line) else { return Step::Malformed };
        let credentials = match self.0 {
            // "Password:"
            Awaited::First(Mechanism::Login) => {
                return Step::Challenge(Self(Awaited::Password(message)), "UGFzc3dvcmQ6");
            }
            Awaited::Password(user) => {
                Some(credentials(Mechanism::Login, "", &user, Proof::Password(Secret::new(message))))
            }
            Awaited::First(Mechanism::Plain) => parse_plain(&message),
            Awaited::First(Mechanism::XOAuth2) => parse_xoauth2(&message),
            Awaited::First(Mechanism::OAuthBearer) => parse_oauthbearer(&message),
        };
        credentials.map_or(Step::Malformed, Step::Credentials)
    }
}

fn credentials(mechanism: Mechanism, authorization_id: &str, user: &str, proof: Proof) -> Credentials {
    Credentials { mechanism, authorization_id: authorization_id.to_owned(), user: user.to_owned(), proof }
}

/// Parses the message of PLAIN (RFC 4616 section 2): three texts separated by NUL.
fn parse_plain(message: &str) -> Option<Credentials> {
    let (authorization_id, rest) = message.split_once('\0')?;
    let (user, password) = rest.split_once('\0')?;
    let proof = Proof::Password(Secret::new(password));
    (!password.contains('\0')).then(|| credentials(Mechanism::Plain, authorization_id, user, proof))
}

/// Parses the message of XOAUTH2: `user=NAME^Aauth=Bearer TOKEN^A^A`.
fn parse_xoauth2(message: &str) -> Option<Credentials> {
    let (user, fields) = message.strip_prefix("user=")?.split_once(FIELD_SEPARATOR)?;
    Some(credentials(Mechanism::XOAuth2, "", user, parse_bearer(fields)?))
}

/// Parses the message of OAUTHBEARER (RFC 7628 section 3.1): `n,a=NAME,^Ahost=...^Aport=...^Aauth=Bearer TOKEN^A^A`. The
/// name is optional. Other fields are ignored.
fn parse_oauthbearer(message: &str) -> Option<Credentials> {
    let (header, fields) = message.split_once(FIELD_SEPARATOR)?;
    // Channel binding, `p=`, is not supported.
    let header = header.strip_prefix("n,").or_else(|| header.strip_prefix("y,"))?.strip_suffix(',')?;
    let user = match header {
        "" => String::new(),
        // RFC 5801 section 4: a comma and an equals sign in a name are escaped.
        header => header.strip_prefix("a=")?.replace("=2C", ",").replace("=3D", "="),
    };
    Some(credentials(Mechanism::OAuthBearer, "", &user, parse_bearer(fields)?))
}

/// Returns the token of the field `auth`. Each field ends with a separator, and so does the list.
fn parse_bearer(fields: &str) -> Option<Proof> {
    let fields = fields.strip_suffix(FIELD_SEPARATOR)?.strip_suffix(FIELD_SEPARATOR)?;
    let auth = fields.split(FIELD_SEPARATOR).find_map(|field| field.strip_prefix("auth="))?;
    let (scheme, token) = auth.split_once(' ')?;
    let token = token.trim_matches(' ');
    (scheme.eq_ignore_ascii_case("Bearer") && !token.is_empty()).then(|| Proof::Bearer(Secret::new(token)))
}

/// Decodes base64. RFC 4616 requires UTF-8. Other bytes are replaced instead of rejected: such a name or password
/// matches no configured one, but a server that accepts any login accepts it.
pub(crate) fn decode_base64(line: &[u8]) -> Option<String> {
    let decoded = STANDARD.decode(line).ok()?;
    Some(String::from_utf8_lossy(&decoded).into_owned())
}

pub(crate) fn decode_md5_hex(digits: &[u8]) -> Option<[u8; 16]> {
    HEXLOWER_PERMISSIVE.decode(digits).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of a complete message: the authorization identity, the user and the secret.
    fn exchange(mechanism: Mechanism, message: &str) -> Option<[String; 3]> {
        match Exchange::start(mechanism, Some(STANDARD.encode(message).as_bytes())) {
            Step::Credentials(Credentials { mechanism: same, authorization_id, user, proof }) => {
                assert_eq!(same, mechanism);
                let (Proof::Password(secret) | Proof::Bearer(secret)) = proof;
                Some([authorization_id, user, secret.expose().to_owned()])
            }
            step => {
                assert_eq!(step, Step::Malformed, "{message:?}");
                None
            }
        }
    }

    #[test]
    fn parses_messages() {
        use Mechanism::{OAuthBearer, Plain, XOAuth2};
        let table: &[(Mechanism, &str, Option<[&str; 3]>)] = &[
            (Plain, "\0james\0secret", Some(["", "james", "secret"])),
            (Plain, "admin\0james\0secret", Some(["admin", "james", "secret"])),
            (Plain, "\0\0", Some(["", "", ""])),
            (Plain, "james", None),
            (Plain, "\0james", None),
            (Plain, "\0james\0secret\0", None),
            (XOAuth2, "user=a@x.test\x01auth=Bearer ya29.t\x01\x01", Some(["", "a@x.test", "ya29.t"])),
            (XOAuth2, "user=\x01auth=bearer  t\x01\x01", Some(["", "", "t"])),
            (XOAuth2, "user=a\x01auth=Bearer t\x01", None),
            (XOAuth2, "user=a\x01auth=Bearer t", None),
            (XOAuth2, "user=a\x01auth=Bearer \x01\x01", None),
            (XOAuth2, "user=a\x01auth=Bearer\x01\x01", None),
            (XOAuth2, "user=a\x01auth=Basic t\x01\x01", None),
            (XOAuth2, "user=a\x01\x01", None),
            (XOAuth2, "auth=Bearer t\x01\x01", None),
            (XOAuth2, "n,a=a,\x01auth=Bearer t\x01\x01", None),
            (XOAuth2, "", None),
            (
                OAuthBearer,
                "n,a=a@x.test,\x01host=mx.test\x01port=143\x01auth=Bearer t\x01\x01",
                Some(["", "a@x.test", "t"]),
            ),
            (OAuthBearer, "n,,\x01auth=Bearer t\x01\x01", Some(["", "", "t"])),
            (OAuthBearer, "y,a=a=2Cb=3D,\x01auth=Bearer t\x01\x01", Some(["", "a,b=", "t"])),
            (OAuthBearer, "p=tls-unique,a=a,\x01auth=Bearer t\x01\x01", None),
            (OAuthBearer, "n,a=a\x01auth=Bearer t\x01\x01", None),
            (OAuthBearer, "n,b=a,\x01auth=Bearer t\x01\x01", None),
            (OAuthBearer, "n,a=a,\x01auth=\x01\x01", None),
            (OAuthBearer, "n,a=a,\x01\x01", None),
            (OAuthBearer, "\x01", None),
            (OAuthBearer, "user=a\x01auth=Bearer t\x01\x01", None),
        ];
        for (mechanism, message, expected) in table {
            let expected = expected.map(|parts| parts.map(str::to_owned));
            assert_eq!(exchange(*mechanism, message), expected, "{mechanism} {message:?}");
        }
    }

    #[test]
    fn exchanges_continue_until_they_are_complete_or_cancelled() {
        for mechanism in Mechanism::ALL {
            assert_eq!(Mechanism::parse(mechanism.name().to_ascii_lowercase().as_bytes()), Some(mechanism));
            assert_eq!(Exchange::start(mechanism, Some(b"*")), Step::Cancelled);
            assert_eq!(Exchange::start(mechanism, Some(b"AAA")), Step::Malformed);
            let Step::Challenge(exchange, challenge) = Exchange::start(mechanism, None) else { panic!("{mechanism}") };
            assert_eq!(challenge, if mechanism == Mechanism::Login { "VXNlcm5hbWU6" } else { "" });
            assert_eq!(exchange.line(b"*"), Step::Cancelled);
            assert_eq!(mechanism.failure_challenge().is_some(), mechanism.name().contains("OAUTH"));
        }
        assert_eq!(Mechanism::parse(b"CRAM-MD5"), None);
        assert_eq!(Exchange::start(Mechanism::Plain, Some(b"=")), Step::Malformed);
        let Step::Challenge(exchange, "UGFzc3dvcmQ6") = Exchange::start(Mechanism::Login, Some(b"YW5u")) else {
            panic!("LOGIN requests the password")
        };
        let Step::Credentials(login) = exchange.line(b"c2VjcmV0") else { panic!("LOGIN is complete") };
        assert_eq!(login, credentials(Mechanism::Login, "", "ann", Proof::Password(Secret::new("secret"))));
        assert!(!format!("{login:?}").contains("secret"));
    }
}
