//! Extension points of the mailroom. [`Hooks`] run before a step of delivery and may change its result. An [`Observer`]
//! is notified after a change. If there are none, they cost nothing.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use restante_mail::address::Address;
use restante_mail::envelope::{Envelope, Refusal};
use restante_mail::message::{Headline, Summary};
use restante_mail::naming::MailboxName;
use restante_store::feed::MarkChange;

/// The hooks and observers of a mailroom.
#[derive(Clone, Default)]
pub struct Extensions {
    /// Called before a sender, recipient or message is accepted.
    pub hooks: Option<Arc<dyn Hooks>>,
    /// Notified of the changes that this mailroom makes. If several nodes share a store, only the node that made a
    /// change notifies these.
    pub node_observers: Vec<Arc<dyn Observer>>,
    /// Notified of every change of the store, whichever node made it.
    pub store_observers: Vec<Arc<dyn Observer>>,
}

/// Callbacks during delivery. The `before` methods may take long: only the session that they are called for waits.
#[async_trait]
pub trait Hooks: Send + Sync + 'static {
    /// Returns whether there is a hook for this point. It is called for every message, so it must be cheap.
    fn has_hook(&self, point: HookPoint) -> bool;

    /// Called when a client has given a sender. [`Envelope::recipients`] is still empty.
    async fn before_mail_from_accepted(&self, envelope: &Envelope) -> Verdict;

    /// Called when a client has given a recipient. The envelope has the recipients that were accepted before it.
    async fn before_rcpt_to_accepted(&self, envelope: &Envelope, candidate: &Address) -> Verdict;

    /// Called before a message is stored. `Some` replaces its mailboxes and summary. A message without mailboxes is
    /// discarded.
    async fn before_message_stored(&self, message: &IncomingMessage) -> Option<IncomingMessage>;
}

/// The points at which hooks are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookPoint {
    /// [`Hooks::before_mail_from_accepted`].
    MailFrom,
    /// [`Hooks::before_rcpt_to_accepted`].
    RcptTo,
    /// [`Hooks::before_message_stored`].
    MessageStored,
}

/// Is notified of changes of the store. The methods must return at once, because deliveries wait for them.
pub trait Observer: Send + Sync + 'static {
    /// A message was stored.
    fn message_stored(&self, summary: &Summary);

    /// A message was stored by this mailroom, which still has it in memory as it was received. Called instead of
    /// [`Observer::message_stored`]. Most observers do not need the message.
    fn message_stored_with_body(&self, summary: &Summary, _body: &Bytes) {
        self.message_stored(summary);
    }

    /// A message was deleted, whatever the cause.
    fn message_deleted(&self, summary: &Summary);

    /// A mark of a copy was changed. Most observers ignore this.
    fn mark_changed(&self, _change: &MarkChange) {}

    /// Changes happened that are not known. Only a query of the store shows its current content. Called only for
    /// `store_observers`.
    fn events_missed(&self) {}
}

/// The decision of a hook about a sender or recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Accept, even if the built-in policy would refuse.
    Allow,
    /// Let the built-in policy decide.
    Defer,
    /// Refuse.
    Deny(Refusal),
}

/// A message after the policy's decision and before it is stored.
#[derive(Clone, Debug)]
pub struct IncomingMessage {
    /// The mailboxes that it is stored in.
    pub mailboxes: Vec<MailboxName>,
    /// The sender, recipients and subject for listings.
    pub headline: Headline,
    /// The message as received.
    pub body: Bytes,
}
