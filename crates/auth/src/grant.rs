//! Grants: what an authenticated client may do, and in which mailboxes.

use std::str::FromStr;
use std::sync::Arc;

use restante_mail::named_enum;
use restante_mail::naming::{MailboxName, Project};
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
    /// The project of mailboxes that are named without one.
    home: Option<Project>,
    /// Whether only mailboxes of the home are granted, whatever the patterns are.
    is_limited_to_home: bool,
}

impl Grant {
    /// The grant of every client if no authentication is configured.
    pub const EVERYTHING: Self =
        Self { name: None, scopes: Scopes::ALL, mailboxes: None, home: None, is_limited_to_home: false };

    /// Creates the grant of the user or token of this name, for the mailboxes that match these patterns, or for all. If all
    /// patterns are in one project, it is the home of the grant.
    pub fn new(name: &str, scopes: Scopes, mailboxes: Option<Patterns>) -> Self {
        let home = mailboxes.as_ref().and_then(Patterns::project);
        Self { name: Some(name.into()), scopes, mailboxes: mailboxes.map(Arc::new), home, is_limited_to_home: false }
    }

    /// Returns the part of this grant that is in a project, with that project as its home.
    #[must_use]
    pub fn in_project(self, project: Project) -> Self {
        Self { home: Some(project), is_limited_to_home: true, ..self }
    }

    /// Returns the home: the project of a mailbox that a request names without one, which responses leave out. A grant with
    /// a home covers no mailbox outside of it.
    pub fn home(&self) -> Option<&Project> {
        self.home.as_ref()
    }

    /// Returns true if the grant covers all mailboxes of its home or, without a home, all mailboxes.
    pub fn covers_home(&self) -> bool {
        match (&self.mailboxes, &self.home) {
            (None, _) => true,
            (Some(patterns), Some(home)) => patterns.covers_project(home),
            (Some(_), None) => false,
        }
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
        self.scopes.contains(scope) && self.covers_all_mailboxes()
    }

    /// Returns true if this scope is granted in at least one mailbox.
    pub fn allows_somewhere(&self, scope: Scope) -> bool {
        self.scopes.contains(scope)
    }

    /// Returns true if the grant covers all mailboxes.
    pub fn covers_all_mailboxes(&self) -> bool {
        self.mailboxes.is_none() && !self.is_limited_to_home
    }

    /// Returns prefixes that together cover the names of all granted mailboxes. They are sorted, and none is a prefix
    /// of another one.
    pub fn prefixes(&self) -> Vec<String> {
        let prefixes = self.mailboxes.as_ref().map_or_else(|| vec![String::new()], |patterns| patterns.prefixes());
        let Some(home) = self.home.as_ref().filter(|_| self.is_limited_to_home).map(Project::prefix) else {
            return prefixes;
        };
        if prefixes.iter().any(|prefix| home.starts_with(prefix)) {
            return vec![home];
        }
        prefixes.into_iter().filter(|prefix| prefix.starts_with(&home)).collect()
    }

    /// Returns true if the grant covers this mailbox. A grant that covers a mailbox covers its folders.
    pub fn covers(&self, mailbox: &MailboxName) -> bool {
        let is_in_home = || self.home.as_ref().is_some_and(|home| mailbox.is_in(home));
        (!self.is_limited_to_home || is_in_home())
            && self.mailboxes.as_ref().is_none_or(|patterns| patterns.match_mailbox(mailbox))
    }

    /// Returns false if the grant covers no mailbox in this project.
    pub fn covers_some_of(&self, project: &Project) -> bool {
        let prefix = project.prefix();
        let is_reachable = |reached: String| reached.starts_with(&prefix) || prefix.starts_with(&reached);
        self.prefixes().into_iter().any(is_reachable)
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
    fn covers_the_folders_of_its_mailboxes() {
        let grant = Grant::new("ci", Scopes::ALL, Some(Patterns::from_iter(["ann", "*-qa", "s?op:bob"])));
        // The mailbox, whether the grant covers it, and whether its part in the project `shop` does.
        let table = [
            ("ann,Sent", true, false),
            ("anna,Sent", false, false),
            ("bob,ann", false, false),
            ("x-qa,Archive/2024", true, false),
            ("bob,x-qa", false, false),
            ("shop:bob,Sent", true, true),
            ("shop:ann,Sent", false, false),
        ];
        let in_project = grant.clone().in_project("shop".parse().unwrap());
        for (name, expected, in_shop) in table {
            let mailbox = name.to_owned().into();
            assert_eq!((grant.covers(&mailbox), in_project.covers(&mailbox)), (expected, in_shop), "{name}");
            assert!(!expected || grant.prefixes().iter().any(|prefix| name.starts_with(prefix)), "{name}");
        }
    }

    #[test]
    fn home_is_the_project_of_all_patterns() {
        let grant = |patterns: &[&str]| Grant::new("ci", Scopes::ALL, Some(Patterns::from_iter(patterns)));
        let project = |name: &str| name.parse::<Project>().unwrap();
        // The grant, its home, whether it covers its home, and its prefixes.
        let table: [(Grant, Option<&str>, bool, &[&str]); 8] = [
            (Grant::EVERYTHING, None, true, &[""]),
            (grant(&["shop:*"]), Some("shop"), true, &["shop:"]),
            (grant(&["shop:bob", "shop:ann*"]), Some("shop"), false, &["shop:ann", "shop:bob"]),
            (grant(&["shop:*", "acme:*"]), None, false, &["acme:", "shop:"]),
            (Grant::EVERYTHING.in_project(project("shop")), Some("shop"), true, &["shop:"]),
            (grant(&["shop:*", "acme:*"]).in_project(project("shop")), Some("shop"), true, &["shop:"]),
            (grant(&["s*"]).in_project(project("shop")), Some("shop"), false, &["shop:"]),
            (grant(&["acme:*"]).in_project(project("shop")), Some("shop"), false, &[]),
        ];
        for (grant, home, covers_home, prefixes) in table {
            assert_eq!(grant.home().map(Project::as_str), home, "{grant:?}");
            assert_eq!(grant.covers_home(), covers_home, "{grant:?}");
            assert_eq!(grant.prefixes(), prefixes, "{grant:?}");
        }
        let limited = Grant::EVERYTHING.in_project(project("shop"));
        let covers = |grant: &Grant, name: &str| grant.covers(&name.to_owned().into());
        assert!(covers(&limited, "shop:bob") && !covers(&limited, "bob") && !covers(&limited, "shopping:bob"));
        assert!(!limited.covers_all_mailboxes() && !limited.allows_everywhere(Scope::Admin));
        assert!(limited.covers_some_of(&project("shop")) && !limited.covers_some_of(&project("acme")));
        assert!(grant(&["s*"]).covers_some_of(&project("shop")) && !grant(&["bob"]).covers_some_of(&project("shop")));
        assert!(!covers(&grant(&["acme:*"]).in_project(project("shop")), "shop:bob"));
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
