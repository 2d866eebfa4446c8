//! The built-in rules about domains and addresses: which senders and recipients are accepted, and which messages are
//! stored.

use regex::Regex;
use restante_mail::address::Address;
use restante_mail::envelope::{RecipientRefusal, ReversePath};
use restante_mail::patterns::Patterns;

/// The rules per domain.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whether recipients of unlisted domains are accepted.
    pub default_accept: bool,
    /// Recipient domains that are accepted if `default_accept` is false.
    pub accept_domains: Domains,
    /// Recipient domains that are refused if `default_accept` is true.
    pub reject_domains: Domains,
    /// Sender domains that are refused.
    pub reject_origin_domains: Domains,
    /// Whether messages to unlisted domains are stored.
    pub default_store: bool,
    /// Recipient domains whose messages are stored if `default_store` is false.
    pub store_domains: Domains,
    /// Recipient domains whose messages are accepted and discarded if `default_store` is true.
    pub discard_domains: Domains,
    /// The recipients that are allowed: those whose address matches. `None` allows all.
    pub allowed_recipients: Option<Regex>,
    /// Whether mail to recipients that are not allowed is accepted and discarded instead of refused.
    pub discard_rejected: bool,
}

/// A list of domains.
pub type Domains = Patterns;

/// Accepts and stores everything.
impl Default for Policy {
    fn default() -> Self {
        Self {
            default_accept: true,
            accept_domains: Domains::default(),
            reject_domains: Domains::default(),
            reject_origin_domains: Domains::default(),
            default_store: true,
            store_domains: Domains::default(),
            discard_domains: Domains::default(),
            allowed_recipients: None,
            discard_rejected: false,
        }
    }
}

impl Policy {
    /// Returns whether mail from this sender is accepted. Bounces always are.
    pub fn accepts_sender(&self, from: &ReversePath) -> bool {
        from.as_ref().is_none_or(|sender| !self.reject_origin_domains.matches(sender.domain()))
    }

    /// Returns an error if mail to this recipient is refused.
    pub fn check_recipient(&self, recipient: &Address) -> Result<(), RecipientRefusal> {
        if !self.accepts_domain(recipient) {
            return Err(RecipientRefusal::Policy);
        }
        if !self.discard_rejected && !self.allows_address(recipient) {
            return Err(RecipientRefusal::NotAllowed);
        }
        Ok(())
    }

    fn accepts_domain(&self, recipient: &Address) -> bool {
        if self.default_accept {
            !self.reject_domains.matches(recipient.domain())
        } else {
            self.accept_domains.matches(recipient.domain())
        }
    }

    fn allows_address(&self, recipient: &Address) -> bool {
        self.allowed_recipients.as_ref().is_none_or(|allowed| allowed.is_match(&recipient.to_string()))
    }

    /// Returns whether mail to this recipient is stored.
    pub fn stores(&self, recipient: &Address) -> bool {
        let stores_domain = if self.default_store {
            !self.discard_domains.matches(recipient.domain())
        } else {
            self.store_domains.matches(recipient.domain())
        };
        // Without `discard_rejected` other addresses were refused, unless a hook accepted them.
        stores_domain && (!self.discard_rejected || self.allows_address(recipient))
    }
}

#[cfg(test)]
mod tests {
    use restante_mail::address::Alphabet;

    use super::*;

    fn at(domain: &str) -> Address {
        Address::parse(&format!("a@{domain}"), Alphabet::Ascii).unwrap()
    }

    fn list(domains: &[&str]) -> Domains {
        domains.iter().collect()
    }

    #[test]
    fn recipients_are_accepted_by_default_or_only_if_listed() {
        let open = Policy { reject_domains: list(&["deny.com", "*.deny.com"]), ..Policy::default() };
        let closed = Policy { default_accept: false, accept_domains: list(&["allow.com"]), ..Policy::default() };
        let table = [
            ("bar.com", true, false),
            ("Deny.COM", false, false),
            ("a.deny.com", false, false),
            ("ALLOW.com", true, true),
        ];
        for (domain, by_open, by_closed) in table {
            assert_eq!(open.check_recipient(&at(domain)).is_ok(), by_open, "{domain}");
            assert_eq!(closed.check_recipient(&at(domain)).is_ok(), by_closed, "{domain}");
        }
    }

    #[test]
    fn recipients_that_are_not_allowed_are_refused_or_discarded() {
        let refusing =
            Policy { allowed_recipients: Some(Regex::new("@(qa|ci)[.]test$").unwrap()), ..Policy::default() };
        let discarding = Policy { discard_rejected: true, ..refusing.clone() };
        assert_eq!(refusing.check_recipient(&at("qa.test")), Ok(()));
        assert_eq!(refusing.check_recipient(&at("x.test")), Err(RecipientRefusal::NotAllowed));
        assert_eq!(discarding.check_recipient(&at("x.test")), Ok(()));
        assert!(discarding.stores(&at("ci.test")) && !discarding.stores(&at("x.test")));
    }

    #[test]
    fn messages_are_stored_by_default_or_only_if_listed() {
        let open = Policy { discard_domains: list(&["drop.com"]), ..Policy::default() };
        let closed = Policy { default_store: false, store_domains: list(&["keep.com"]), ..Policy::default() };
        for (domain, by_open, by_closed) in
            [("bar.com", true, false), ("DROP.com", false, false), ("Keep.com", true, true)]
        {
            assert_eq!(open.stores(&at(domain)), by_open, "{domain}");
            assert_eq!(closed.stores(&at(domain)), by_closed, "{domain}");
        }
    }

    #[test]
    fn senders_are_refused_by_domain_but_bounces_are_not() {
        let policy = Policy { reject_origin_domains: list(&["*.spam.com"]), ..Policy::default() };
        assert!(!policy.accepts_sender(&Some(at("a.spam.com"))));
        assert!(policy.accepts_sender(&Some(at("spam.com"))));
        assert!(policy.accepts_sender(&None));
    }
}
