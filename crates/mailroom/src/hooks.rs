//! Where others may take part: [`Hooks`] are asked before something happens and may change it, an [`Observer`] hears of it
//! afterwards. Without them nothing here costs anything.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use restante_mail::address::Address;
use restante_mail::envelope::{Envelope, Refusal};
use restante_mail::message::{Headline, MessageId, Summary};
use restante_mail::naming::MailboxName;

/// Those who take part in the work of a mailroom.
#[derive(Clone, Default)]
pub struct Extensions {
    /// Who is asked before.
    pub hooks: Option<Arc<dyn Hooks>>,
    /// Who is told afterwards of what this mailroom does. However many nodes share a store, one of them tells of a change.
    pub node_observers: Vec<Arc<dyn Observer>>,
    /// Who is told of everything that happens in the store, whichever node did it.
    pub store_observers: Vec<Arc<dyn Observer>>,
}

/// Takes part in delivery. The `before` methods may take their time, which only their own session waits for.
#[async_trait]
pub trait Hooks: Send + Sync + 'static {
    /// Whether there is anything to ask at this point. This is asked for every mail, so it must cost next to nothing.
    fn has_hook(&self, point: HookPoint) -> bool;

    /// A sender was named; [`Envelope::recipients`] is still empty.
    async fn before_mail_from_accepted(&self, envelope: &Envelope) -> Verdict;

    /// A recipient was named; the envelope holds those accepted before it.
    async fn before_rcpt_to_accepted(&self, envelope: &Envelope, candidate: &Address) -> Verdict;

    /// A message is about to be stored. `Some` replaces its destinations and summary; no destination discards it.
    async fn before_message_stored(&self, message: &IncomingMessage) -> Option<IncomingMessage>;
}

/// The points at which hooks are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookPoint {
    /// [`Hooks::before_mail_from_accepted`].
    MailFrom,
    /// [`Hooks::before_rcpt_to_accepted`].
    RcptTo,
    /// [`Hooks::before_message_stored`].
    MessageStored,
}

/// Hears of changes of what is held, and must return at once: deliveries wait for it.
pub trait Observer: Send + Sync + 'static {
    /// A message was stored.
    fn message_stored(&self, summary: &Summary);

    /// A message was deleted, whatever the cause.
    fn message_deleted(&self, summary: &Summary);

    /// A message was marked as read, or as unread. Few want to know.
    fn seen_changed(&self, _mailbox: &MailboxName, _id: MessageId, _seen: bool) {}

    /// Something happened that nobody can tell any more; only the store knows what there is now. That is for followers.
    fn events_missed(&self) {}
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
pub struct IncomingMessage {
    /// Where it goes.
    pub mailboxes: Vec<MailboxName>,
    /// Who wrote to whom about what.
    pub headline: Headline,
    /// The mail as received.
    pub body: Bytes,
}
