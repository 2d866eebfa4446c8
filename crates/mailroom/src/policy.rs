//! The built-in rules about domains: who may send, who may receive, and whose mail is kept.

use restante_mail::address::Address;
use restante_mail::envelope::{Refusal, ReversePath};
use restante_mail::naming::canonical_domain;

/// What is done with the mail of which domains.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whether recipients of unlisted domains are accepted.
    pub default_accept: bool,
    /// Accepted although the default is not to.
    pub accept_domains: Domains,
    /// Refused although the default is to accept.
    pub reject_domains: Domains,
    /// Senders of these domains are refused.
    pub reject_origin_domains: Domains,
    /// Whether mail for unlisted domains is kept.
    pub default_store: bool,
    /// Kept although the default is not to.
    pub store_domains: Domains,
    /// Accepted, and not kept, although the default is to keep.
    pub discard_domains: Domains,
}

/// A list of domains, ready to be compared with. An entry may hold the wildcards `*` (any run of characters) and `?` (any
/// one character).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Domains(Vec<Vec<char>>);

impl<S: AsRef<str>> FromIterator<S> for Domains {
    fn from_iter<T: IntoIterator<Item = S>>(entries: T) -> Self {
        Self(entries.into_iter().map(|entry| comparable(entry.as_ref())).collect())
    }
}

impl Domains {
    /// Whether an entry of the list matches this domain.
    pub fn contains(&self, domain: &str) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let domain = comparable(domain);
        self.0.iter().any(|pattern| matches(pattern, &domain))
    }

    /// The entries, in the form in which they are compared.
    pub fn entries(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|entry| entry.iter().collect())
    }
}

fn comparable(domain: &str) -> Vec<char> {
    canonical_domain(domain).chars().collect()
}

/// Takes and keeps everything.
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
        }
    }
}

impl Policy {
    /// Whether mail from this sender is taken.
    pub fn check_sender(&self, from: &ReversePath) -> Result<(), Refusal> {
        match from {
            Some(sender) if self.reject_origin_domains.contains(sender.domain()) => {
                Err(Refusal::new(550, "5.7.1 Mail from this domain is not accepted here"))
            }
            _ => Ok(()),
        }
    }

    /// Whether mail to this recipient is taken.
    pub fn check_recipient(&self, recipient: &Address) -> Result<(), Refusal> {
        let accepted = if self.default_accept {
            !self.reject_domains.contains(recipient.domain())
        } else {
            self.accept_domains.contains(recipient.domain())
        };
        if accepted { Ok(()) } else { Err(Refusal::new(550, "5.7.1 Mail to this domain is not accepted here")) }
    }

    /// Whether mail to this recipient is kept.
    pub fn stores(&self, recipient: &Address) -> bool {
        if self.default_store {
            !self.discard_domains.contains(recipient.domain())
        } else {
            self.store_domains.contains(recipient.domain())
        }
    }
}

/// Goes back to the last `*` only, so the cost is at most the product of the lengths.
fn matches(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p, t));
                p += 1;
            }
            Some(c) if *c == '?' || *c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((star, from)) = retry else { return false };
                retry = Some((star, from + 1));
                p = star + 1;
                t = from + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
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
    fn wildcards() {
        let table = [
            ("example.org", "EXAMPLE.org", true),
            ("example.org", "example.orga", false),
            ("*", "", true),
            ("*", "anything", true),
            ("*.org", "a.b.org", true),
            ("*.org", "org", false),
            ("mail?.org", "mail1.org", true),
            ("mail?.org", "mail.org", false),
            ("*a*b*c", "xxaxxbxxbxxc", true),
            ("*a*b*c", "xxaxxbxxbxx", false),
            ("", "x", false),
            ("bücher.example", "BU\u{308}CHER.example", true),
            ("r?t.example", "röt.example", true),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(Domains::from_iter([pattern]).contains(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn entries_are_told_as_they_are_compared() {
        let told: Vec<String> = list(&["Example.ORG", "*.deny.com"]).entries().collect();
        assert_eq!(told, ["example.org", "*.deny.com"]);
    }

    #[test]
    fn recipients_are_accepted_unless_rejected_or_the_other_way_round() {
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
    fn mail_is_kept_unless_discarded_or_the_other_way_round() {
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
    fn senders_are_refused_by_origin_and_bounces_never() {
        let policy = Policy { reject_origin_domains: list(&["*.spam.com"]), ..Policy::default() };
        assert_eq!(policy.check_sender(&Some(at("a.spam.com"))).unwrap_err().code, 550);
        assert!(policy.check_sender(&Some(at("spam.com"))).is_ok());
        assert!(policy.check_sender(&None).is_ok());
    }
}
