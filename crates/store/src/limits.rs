//! The limits of a store, and the policies that replace them for some mailboxes.

use std::sync::Arc;
use std::time::Duration;

use restante_mail::naming::MailboxName;
use restante_mail::patterns::Patterns;

/// The limits of a store. Zero means no limit.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// The cap per mailbox. If it is exceeded, the messages with the lowest ids are evicted.
    pub messages_per_mailbox: usize,
    /// The limit of [`Usage::bytes`](crate::Usage::bytes). If it is exceeded, the oldest messages of all mailboxes are
    /// evicted.
    pub bytes: u64,
    /// Other limits for some mailboxes.
    pub policies: MailboxPolicies,
}

impl Limits {
    /// Returns the limits of a mailbox. A folder has its own messages and the limits of its owner.
    pub fn of_mailbox(&self, mailbox: &MailboxName) -> MailboxLimits {
        let policy = self.policies.find(mailbox);
        let messages = policy.and_then(|policy| policy.messages).unwrap_or(self.messages_per_mailbox);
        let bytes = policy.and_then(|policy| policy.bytes).unwrap_or(0);
        let or_unlimited = |limit| if limit == 0 { u64::MAX } else { limit };
        MailboxLimits { messages: or_unlimited(messages as u64), bytes: or_unlimited(bytes) }
    }
}

/// The limits of one mailbox. If one is exceeded, the messages with the lowest ids are evicted. The maximum number means
/// no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailboxLimits {
    /// The limit of [`MailboxState::messages`](crate::MailboxState::messages).
    pub messages: u64,
    /// The limit of [`MailboxState::bytes`](crate::MailboxState::bytes).
    pub bytes: u64,
}

/// An ordered list of policies, of which the first that matches a mailbox decides. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailboxPolicies(Arc<[MailboxPolicy]>);

/// Limits for some mailboxes. `None` means that of all mailboxes, and zero means no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailboxPolicy {
    /// The mailboxes.
    pub mailboxes: Patterns,
    /// How long a message is kept.
    pub retention: Option<Duration>,
    /// The maximum number of messages in a mailbox.
    pub messages: Option<usize>,
    /// The maximum size of a mailbox.
    pub bytes: Option<u64>,
}

impl FromIterator<MailboxPolicy> for MailboxPolicies {
    fn from_iter<T: IntoIterator<Item = MailboxPolicy>>(policies: T) -> Self {
        Self(policies.into_iter().collect())
    }
}

impl MailboxPolicies {
    /// Returns the policies in order.
    pub fn iter(&self) -> impl Iterator<Item = &MailboxPolicy> {
        self.0.iter()
    }

    /// Returns the first policy that matches a mailbox, or the owner of a folder.
    fn find(&self, mailbox: &MailboxName) -> Option<&MailboxPolicy> {
        self.iter().find(|policy| policy.mailboxes.match_mailbox(mailbox))
    }

    /// Returns how long messages of a mailbox are kept. `default` is the period of mailboxes without a policy. `None`
    /// means forever.
    pub fn retention(&self, mailbox: &MailboxName, default: Option<Duration>) -> Option<Duration> {
        match self.find(mailbox).and_then(|policy| policy.retention) {
            Some(period) => Some(period).filter(|period| !period.is_zero()),
            None => default,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_policy_that_matches_decides() {
        let policy =
            |pattern: &str| MailboxPolicy { mailboxes: Patterns::from_iter([pattern]), ..MailboxPolicy::default() };
        let policies = MailboxPolicies::from_iter([
            MailboxPolicy { messages: Some(5), ..policy("shop:qa-*") },
            MailboxPolicy { retention: Some(Duration::from_mins(1)), bytes: Some(1000), ..policy("shop:*") },
            MailboxPolicy { retention: Some(Duration::ZERO), messages: Some(0), ..policy("*keep") },
        ]);
        let limits = Limits { messages_per_mailbox: 10, bytes: 1, policies };
        let hour = Some(Duration::from_hours(1));
        let table = [
            ("bob", 10, u64::MAX, hour),
            ("shop:qa-1", 5, u64::MAX, hour),
            ("shop:bob", 10, 1000, Some(Duration::from_mins(1))),
            ("shop:keep", 10, 1000, Some(Duration::from_mins(1))),
            ("acme:keep", u64::MAX, u64::MAX, None),
            ("bob,keep", 10, u64::MAX, hour),
            ("shop:qa-1,Sent", 5, u64::MAX, hour),
            ("acme:keep,Archive/2024", u64::MAX, u64::MAX, None),
        ];
        for (name, messages, bytes, retention) in table {
            let mailbox = MailboxName::from(name.to_owned());
            assert_eq!(limits.of_mailbox(&mailbox), MailboxLimits { messages, bytes }, "{name}");
            assert_eq!(limits.policies.retention(&mailbox, hour), retention, "{name}");
        }
        let unlimited = MailboxLimits { messages: u64::MAX, bytes: u64::MAX };
        assert_eq!(Limits::default().of_mailbox(&"bob".to_owned().into()), unlimited);
    }
}
