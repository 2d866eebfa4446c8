//! The settings of the relay.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use restante_mail::address::Address;
use restante_mail::named_enum;
use restante_mail::patterns::Patterns;
use restante_proto::Secret;

use crate::recipients::RecipientPatterns;

/// The settings of the relay.
#[derive(Clone, Default)]
pub struct Settings {
    /// The targets. Their names are unique.
    pub targets: Vec<Target>,
    /// The rules that forward messages.
    pub rules: Vec<ForwardRule>,
    /// Whether targets may have addresses that are not public.
    pub allow_private_addresses: bool,
    /// How long sending is retried.
    pub give_up_after: Duration,
    /// The maximum number of entries that wait in the queue, with which the queue is opened.
    pub max_queued: usize,
    /// The host name of this server, for EHLO and for the detection of loops.
    pub domain: String,
}

/// Targets contain user names, so only their names are shown.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.targets.iter().map(|target| target.name.as_str()).collect();
        f.debug_struct("Settings").field("targets", &names).field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// An SMTP server that messages are sent to.
#[derive(Clone, Debug)]
pub struct Target {
    /// The name: letters, digits, `-` and `_`.
    pub name: String,
    /// The host name or IP address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// How the connection is encrypted.
    pub tls: TargetTls,
    /// How the certificate is verified.
    pub verification: Verification,
    /// The credentials, if the server requires authentication.
    pub login: Option<Login>,
    /// The time limit for a connection, and for each reply. The reply to the content of a message may take ten times as
    /// long.
    pub timeout: Duration,
    /// The maximum number of connections at the same time.
    pub connections: usize,
    /// Replaces the sender of the envelope.
    pub return_path: Option<Address>,
    /// Replaces the address in the header field From, and the sender of the envelope unless `return_path` does.
    pub from: Option<Address>,
    /// The recipients that messages may be sent to. If it is empty, nothing is sent.
    pub allowed: RecipientPatterns,
    /// Recipients that messages are not sent to, even if they are allowed.
    pub blocked: RecipientPatterns,
}

impl Target {
    /// Returns whether messages may be sent to a recipient.
    pub fn allows(&self, recipient: &str) -> bool {
        self.allowed.matches(recipient) && !self.blocked.matches(recipient)
    }
}

/// How a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetTls {
    /// TLS from the first byte.
    Implicit,
    /// STARTTLS. Without it nothing is sent.
    StartTls,
    /// STARTTLS if the server offers it.
    Optional,
    /// No encryption.
    None,
}

/// How the certificate of a target is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verification {
    /// With the certificates of the operating system.
    System,
    /// With the certificates in this PEM file.
    Ca(PathBuf),
    /// Not at all.
    None,
}

/// The credentials for a target.
#[derive(Clone, Debug)]
pub struct Login {
    /// The user.
    pub user: String,
    /// The password, or the token of XOAUTH2.
    pub password: Password,
    /// The mechanism. `None` for the strongest that the server offers, except XOAUTH2.
    pub mechanism: Option<Mechanism>,
    /// Whether the password may be sent over a connection that is not encrypted.
    pub allow_unencrypted: bool,
}

/// A password, or where it is.
#[derive(Clone, Debug)]
pub enum Password {
    /// The password itself.
    Text(Secret),
    /// A file that contains the password. It is read for every connection, so that it can be replaced.
    File(PathBuf),
}

named_enum! {
    /// A mechanism of authentication.
    pub enum Mechanism {
        /// PLAIN (RFC 4616).
        Plain = "plain",
        /// LOGIN.
        Login = "login",
        /// CRAM-MD5 (RFC 2195).
        CramMd5 = "cram-md5",
        /// XOAUTH2.
        Xoauth2 = "xoauth2",
    }
}

/// A rule that forwards messages when they are stored. A message has to match all conditions.
#[derive(Clone, Debug, Default)]
pub struct ForwardRule {
    /// The name of the target.
    pub target: String,
    /// Patterns of mailbox names. `None` for all.
    pub mailboxes: Option<Patterns>,
    /// Patterns of recipients of the envelope. The message is sent to these recipients only, unless `to` is given.
    /// `None` for all.
    pub recipients: Option<RecipientPatterns>,
    /// Tags, of which the message has at least one. Empty for all.
    pub tags: Vec<String>,
    /// A valid expression of the query language. `None` for all.
    pub search: Option<String>,
    /// The addresses that the message is sent to. Empty for the recipients of the envelope.
    pub to: Vec<Address>,
}
