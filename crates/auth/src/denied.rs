//! Why access was denied, and to whom.

use std::sync::Arc;

use restante_mail::named_enum;

/// A denial of access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The reason.
    pub reason: DenialReason,
    /// The name of the user or token, if it exists. An unknown name is not included: it may be a password in the wrong
    /// field.
    pub name: Option<Arc<str>>,
}

named_enum! {
    /// The reason of a denial.
    pub enum DenialReason {
        /// The client sent no credentials.
        NoCredentials = "none",
        /// The user does not exist or has another password.
        WrongPassword = "password",
        /// The token does not exist.
        UnknownToken = "token",
        /// The token or the login session has expired.
        Expired = "expired",
        /// The login with the identity provider was not completed, or the provider cannot be used to check a token.
        SingleSignOn = "sso",
        /// No rule grants rights to the account of the identity provider or of the authenticating proxy.
        NoAccess = "account",
        /// Too many logins are waiting, because earlier ones have failed.
        TooMany = "busy",
        /// The scope is not granted.
        Scope = "scope",
        /// The mailbox is not granted.
        Mailbox = "mailbox",
    }
}

impl DenialReason {
    /// Returns the reason as it appears in the log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoCredentials => "no credentials",
            Self::WrongPassword => "wrong password",
            Self::UnknownToken => "unknown token",
            Self::Expired => "expired",
            Self::SingleSignOn => "single sign-on failed",
            Self::NoAccess => "account without access",
            Self::TooMany => "too many failed logins",
            Self::Scope => "scope not granted",
            Self::Mailbox => "mailbox not granted",
        }
    }
}

impl Denied {
    /// Creates a denial for the user or token of this name, if it is known.
    pub fn new(name: Option<&str>, reason: DenialReason) -> Self {
        Self { reason, name: name.map(Into::into) }
    }
}

impl From<DenialReason> for Denied {
    /// Creates a denial without a name.
    fn from(reason: DenialReason) -> Self {
        Self { reason, name: None }
    }
}
