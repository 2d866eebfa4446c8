//! The parts of SASL that the protocols share: base64 and the message of PLAIN. The exchanges are in the protocol
//! modules, and the driver checks passwords.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER_PERMISSIVE;

use crate::Secret;

/// The longest line of an AUTH exchange (RFC 4954 section 4).
pub(crate) const MAX_LINE_BYTES: usize = 12_288;

/// The message of PLAIN (RFC 4616 section 2).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PlainMessage {
    /// The authorization identity. Empty if it is the same as the user.
    pub(crate) authorization_id: String,
    /// The user name.
    pub(crate) user: String,
    /// The password.
    pub(crate) password: Secret,
}

impl PlainMessage {
    /// Parses the decoded message: three texts separated by NUL.
    pub(crate) fn parse(message: &str) -> Option<Self> {
        let (authorization_id, rest) = message.split_once('\0')?;
        let (user, password) = rest.split_once('\0')?;
        (!password.contains('\0')).then(|| Self {
            authorization_id: authorization_id.to_owned(),
            user: user.to_owned(),
            password: Secret::new(password),
        })
    }
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

    #[test]
    fn parses_plain_messages() {
        let parts = |message: &str| {
            let plain = PlainMessage::parse(message)?;
            Some([plain.authorization_id, plain.user, plain.password.expose().to_owned()])
        };
        let table: &[(&str, Option<[&str; 3]>)] = &[
            ("\0james\0secret", Some(["", "james", "secret"])),
            ("admin\0james\0secret", Some(["admin", "james", "secret"])),
            ("\0\0", Some(["", "", ""])),
            ("james", None),
            ("\0james", None),
            ("\0james\0secret\0", None),
        ];
        for (message, expected) in table {
            assert_eq!(parts(message), expected.map(|parts| parts.map(str::to_owned)), "{message:?}");
        }
    }
}
