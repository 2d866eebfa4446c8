//! Grants: what an authenticated client may do, and in which mailboxes.

use std::str::FromStr;
use std::sync::Arc;

use restante_mail::named_enum;
use restante_mail::naming::MailboxName;
use restante_mail::patterns::Patterns;

named_enum! {
    /// A kind of access.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Scope {
        /// Read and search messages, wait for them, and subscribe to events.
        Read = "read",
        /// Add, mark and delete messages.
        Write = "write",
        /// See data about all mailboxes: sessions, metrics, the state of the server.
        Admin = "admin",
        /// Send messages to other servers, and see and change the queues of the relay and the webhooks.
        Relay = "relay",
    }
}

impl FromStr for Scope {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_name(text).ok_or("read, write, admin or relay")
    }
}

/// A set of scopes. No scope includes another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// All scopes.
    pub const ALL: Self = Self(0b1111);

    /// Returns true if the set contains this scope.
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & bit(scope) != 0
    }

    /// Returns the scopes in the set.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |&scope| self.contains(scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<T: IntoIterator<Item = Scope>>(scopes: T) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | bit(scope)))
    }
}

const fn bit(scope: Scope) -> u8 {
    1 << scope as u8
}

/// What a client may do. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Grant {
    name: Option<Arc<str>>,
    scopes: Scopes,
    /// `None` means all mailboxes.
    mailboxes: Option<Arc<Patterns>>,
}

impl Grant {
    /// The grant of every client if no authentication is configured.
    pub const EVERYTHING: Self = Self { name: None, scopes: Scopes::ALL, mailboxes: None };

    /// Creates the grant of the user or token of this name, for the mailboxes that match these patterns, or for all.
    pub fn new(name: &str, scopes: Scopes, mailboxes: Option<Patterns>) -> Self {
        Self { name: Some(name.into()), scopes, mailboxes: mailboxes.map(Arc::new) }
    }

    /// Returns the name of the user or token; `None` if no authentication is configured.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns true if this scope is granted in this mailbox.
    pub fn allows(&self, scope: Scope, mailbox: &MailboxName) -> bool {
        self.scopes.contains(scope) && self.covers(mailbox)
    }

    /// Returns true if this scope is granted in all mailboxes.
    pub fn allows_everywhere(&self, scope: Scope) -> bool {
        self.scopes.contains(scope) && self.mailboxes.is_none()
    }

    /// Returns true if this scope is granted in at least one mailbox.
    pub fn allows_somewhere(&self, scope: Scope) -> bool {
        self.scopes.contains(scope)
    }

    /// Returns true if the grant covers all mailboxes.
    pub fn covers_all_mailboxes(&self) -> bool {
        self.mailboxes.is_none()
    }

    /// Returns prefixes that together cover the names of all granted mailboxes. They are sorted, and none is a prefix
    /// of another one.
    pub fn prefixes(&self) -> Vec<String> {
        self.mailboxes.as_ref().map_or_else(|| vec![String::new()], |patterns| patterns.prefixes())
    }

    /// Returns true if the grant covers this mailbox.
    pub fn covers(&self, mailbox: &MailboxName) -> bool {
        self.mailboxes.as_ref().is_none_or(|patterns| patterns.matches(mailbox.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allows_granted_scopes_in_granted_mailboxes() {
        let patterns = || Some(Patterns::from_iter(["ci-*", "ann"]));
        let reader = Grant::new("ci", Scopes::from_iter([Scope::Read]), patterns());
        let writer = Grant::new("ci", Scopes::from_iter([Scope::Read, Scope::Write]), None);
        let table = [
            (&reader, Scope::Read, "ci-7", true, false),
            (&reader, Scope::Read, "ann", true, false),
            (&reader, Scope::Read, "anna", false, false),
            (&reader, Scope::Write, "ci-7", false, false),
            (&writer, Scope::Write, "anna", true, true),
            (&writer, Scope::Admin, "anna", false, false),
            (&writer, Scope::Relay, "anna", false, false),
            (&Grant::EVERYTHING, Scope::Admin, "anna", true, true),
            (&Grant::EVERYTHING, Scope::Relay, "anna", true, true),
        ];
        for (grant, scope, mailbox, here, everywhere) in table {
            assert_eq!(grant.allows(scope, &mailbox.to_owned().into()), here, "{scope} {mailbox}");
            assert_eq!(grant.allows_everywhere(scope), everywhere, "{scope}");
        }
    }

    #[test]
    fn parses_scope_names() {
        for scope in Scope::ALL {
            assert_eq!(scope.to_string().parse(), Ok(scope));
            assert!(Scopes::ALL.contains(scope) && !Scopes::default().contains(scope));
        }
        assert!("Read".parse::<Scope>().is_err() && "".parse::<Scope>().is_err());
        assert_eq!(
            Scopes::from_iter([Scope::Admin, Scope::Read]).iter().collect::<Vec<_>>(),
            [Scope::Read, Scope::Admin]
        );
    }
}
