//! Why somebody is not let in, or not allowed something.

use std::sync::Arc;

/// A denial: why, and whom it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Why.
    pub reason: DenialReason,
    /// The user or the token, when there is one of that name. A name that nobody has may be a password in the wrong field.
    pub name: Option<Arc<str>>,
}

/// Why something is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialReason {
    /// Nothing was said about who asks.
    NoCredentials,
    /// There is no such user, or it has another password.
    WrongPassword,
    /// There is no such token.
    UnknownToken,
    /// The token, or the login, was good for some time only.
    Expired,
    /// Too many wait for the answer to a login already, because others before it have failed.
    TooMany,
    /// Things of this kind are not allowed to them.
    Scope,
    /// The mailbox is none of theirs.
    Mailbox,
}

impl DenialReason {
    /// All there are.
    pub const ALL: [Self; 7] = [
        Self::NoCredentials,
        Self::WrongPassword,
        Self::UnknownToken,
        Self::Expired,
        Self::TooMany,
        Self::Scope,
        Self::Mailbox,
    ];

    /// The words for it in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoCredentials => "no credentials",
            Self::WrongPassword => "wrong password",
            Self::UnknownToken => "unknown token",
            Self::Expired => "expired",
            Self::TooMany => "too many failed logins",
            Self::Scope => "scope",
            Self::Mailbox => "mailbox",
        }
    }
}

impl Denied {
    /// A denial of somebody who has this name, where that is known.
    pub fn new(holder: Option<&str>, reason: DenialReason) -> Self {
        Self { reason, name: holder.map(Into::into) }
    }
}

impl From<DenialReason> for Denied {
    /// A denial of nobody in particular.
    fn from(reason: DenialReason) -> Self {
        Self { reason, name: None }
    }
}
