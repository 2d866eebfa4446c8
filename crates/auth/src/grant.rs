//! What somebody is allowed: how much, and in which mailboxes. Who that is was found out before.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use restante_mail::naming::MailboxName;
use restante_mail::patterns::Patterns;

/// A kind of thing that one can be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// To read and search mail, to wait for it, and to listen to what happens.
    Read,
    /// To add, mark and delete mail.
    Write,
    /// To see what concerns all mailboxes: sessions, metrics, the state of the server.
    Admin,
}

impl Scope {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    /// The word for it in settings, files and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|scope| scope.name() == text).ok_or("read, write or admin")
    }
}

/// Some of the scopes; none of them includes another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// All there are.
    pub const ALL: Self = Self(0b111);

    /// Whether this one is among them.
    pub fn contains(self, scope: Scope) -> bool {
        self.0 & bit(scope) != 0
    }

    /// Those that are among them.
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

/// What somebody is allowed. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Grant {
    name: Option<Arc<str>>,
    scopes: Scopes,
    /// None means all mailboxes.
    mailboxes: Option<Arc<Patterns>>,
}

impl Grant {
    /// What everybody is allowed where nobody has to say who they are.
    pub const EVERYTHING: Self = Self { name: None, scopes: Scopes::ALL, mailboxes: None };

    /// What somebody, known by this name, is allowed in the mailboxes that match these patterns, or in all of them.
    pub fn new(holder: &str, scopes: Scopes, mailboxes: Option<Patterns>) -> Self {
        Self { name: Some(holder.into()), scopes, mailboxes: mailboxes.map(Arc::new) }
    }

    /// Who has it, where somebody had to say so.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Whether something of this kind is allowed in this mailbox.
    pub fn allows(&self, scope: Scope, mailbox: &MailboxName) -> bool {
        self.scopes.contains(scope) && self.covers(mailbox)
    }

    /// Whether something of this kind is allowed in all mailboxes.
    pub fn allows_everywhere(&self, scope: Scope) -> bool {
        self.scopes.contains(scope) && self.mailboxes.is_none()
    }

    /// Whether something of this kind is allowed at all.
    pub fn allows_somewhere(&self, scope: Scope) -> bool {
        self.scopes.contains(scope)
    }

    /// Whether this is about all mailboxes.
    pub fn covers_all_mailboxes(&self) -> bool {
        self.mailboxes.is_none()
    }

    /// What the names of the mailboxes begin with that this is about. Sorted; none begins with another one.
    pub fn prefixes(&self) -> Vec<String> {
        self.mailboxes.as_ref().map_or_else(|| vec![String::new()], |patterns| patterns.prefixes())
    }

    /// Whether the mailbox is one of those that this is about.
    pub fn covers(&self, mailbox: &MailboxName) -> bool {
        self.mailboxes.as_ref().is_none_or(|patterns| patterns.matches(mailbox.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allowed_where() {
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
            (&Grant::EVERYTHING, Scope::Admin, "anna", true, true),
        ];
        for (grant, scope, mailbox, here, everywhere) in table {
            assert_eq!(grant.allows(scope, &mailbox.to_owned().into()), here, "{scope} {mailbox}");
            assert_eq!(grant.allows_everywhere(scope), everywhere, "{scope}");
        }
    }

    #[test]
    fn scopes_by_name() {
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
