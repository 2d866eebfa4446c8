//! Where a script may take part: the trait that a script host implements. Without hooks nothing here costs anything.

use async_trait::async_trait;
use bytes::Bytes;
use restante_mail::address::Address;
use restante_mail::envelope::{Envelope, Refusal};
use restante_mail::message::{Headline, Summary};
use restante_mail::naming::MailboxName;

/// Takes part in delivery. The `before` methods may take their time, which only their own session waits for; the
/// `after` methods must return at once.
#[async_trait]
pub trait Hooks: Send + Sync + 'static {
    /// A sender was named; [`Envelope::recipients`] is still empty.
    async fn before_mail_from_accepted(&self, envelope: &Envelope) -> Verdict;

    /// A recipient was named; the envelope holds those accepted before it.
    async fn before_rcpt_to_accepted(&self, envelope: &Envelope, candidate: &Address) -> Verdict;

    /// A message is about to be stored. `Some` replaces its destinations and summary; no destination discards it.
    async fn before_message_stored(&self, message: &Inbound) -> Option<Inbound>;

    /// A message was stored.
    fn after_message_stored(&self, summary: &Summary);

    /// A message was deleted, whatever the cause.
    fn after_message_deleted(&self, summary: &Summary);
}

/// What a hook says about a sender or recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Accept, without asking the built-in policy.
    Allow,
    /// Let the built-in policy decide.
    Defer,
    /// Refuse.
    Deny(Refusal),
}

/// A message between the policy's decision and the store.
#[derive(Clone, Debug)]
pub struct Inbound {
    /// Where it goes.
    pub mailboxes: Vec<MailboxName>,
    /// Who wrote to whom about what.
    pub headline: Headline,
    /// The mail as received.
    pub body: Bytes,
}
