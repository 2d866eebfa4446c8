//! Delivery of a message: checks the sender and the recipients, determines the mailboxes, details and tags, stores and
//! publishes.

use std::borrow::Cow;

use bytes::Bytes;
use jiff::Timestamp;
use restante_auth::runs::{Run, UnknownRun};
use restante_mail::address::Address;
use restante_mail::details::{DetailFields, Details};
use restante_mail::envelope::{Envelope, Recipient, RecipientRefusal, SenderRefusal, reverse_path_text};
use restante_mail::message::{Flags, Headline, Summary};
use restante_mail::mime::{HeaderSummary, Preview, summarize};
use restante_mail::naming::{MailboxName, Project};
use restante_store::{NewCopy, NewMessage, StoreError};

use crate::Mailroom;
use crate::hooks::{HookPoint, IncomingMessage, Verdict};
use crate::run_to_completion::run_to_completion;
use crate::tagging::{TaggedCopy, TaggedMessage};

/// The result of delivering an accepted message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The message is stored, with one copy per mailbox.
    Stored(Vec<Summary>),
    /// The policy or a hook discarded the message.
    Discarded,
    /// The message is larger than the maximum size of one of its mailboxes, and is not stored.
    TooLarge {
        /// The maximum size of the mailbox in bytes.
        max_bytes: u64,
    },
}

/// The mailboxes that a client may write to. The default is all of them.
#[derive(Clone, Copy, Default)]
pub struct WriteAccess<'a> {
    /// The project into which all messages of the client are delivered.
    pub home: Option<&'a Project>,
    /// Returns whether the client may write to a mailbox. `None` permits all mailboxes.
    pub is_permitted: Option<&'a (dyn Fn(&MailboxName) -> bool + Sync)>,
}

impl Mailroom {
    /// Decides whether mail from the envelope's sender is accepted. A hook may decide; otherwise the policy does.
    pub async fn check_sender(&self, envelope: &Envelope) -> Result<(), SenderRefusal> {
        let verdict = match self.inner.hooks(HookPoint::MailFrom) {
            Some(hooks) => hooks.before_mail_from_accepted(envelope).await,
            None => Verdict::Defer,
        };
        match verdict {
            Verdict::Allow => Ok(()),
            Verdict::Defer if self.settings.policy.accepts_sender(&envelope.from) => Ok(()),
            Verdict::Defer => Err(SenderRefusal::Policy),
            Verdict::Deny(refusal) => Err(SenderRefusal::Hook(refusal)),
        }
    }

    /// Decides whether one more recipient is accepted. This is the only place that decides it, in this order:
    ///
    /// 1. A mailbox can be named after the recipient.
    /// 2. The mailbox is in the home of the client, if it has one. Otherwise the domain of a leased run or rules choose its
    ///    project.
    /// 3. The client may write to that mailbox.
    /// 4. A hook accepts or refuses the recipient, or leaves the decision to the policy.
    /// 5. The policy accepts the recipient's domain and address.
    pub async fn check_recipient(
        &self,
        envelope: &Envelope,
        candidate: Address,
        access: WriteAccess<'_>,
    ) -> Result<Recipient, RecipientRefusal> {
        let mut recipient = Recipient::new(candidate, self.settings.naming).map_err(RecipientRefusal::UnusableName)?;
        if let Some(home) = access.home {
            recipient.mailbox = recipient.mailbox.in_project(home);
        } else if let Some(run) = self.find_run(&recipient.address)? {
            recipient.mailbox = recipient.mailbox.in_project(&run.project);
        } else {
            // The header comes after this check, so it must not move the message out of the permitted mailboxes.
            self.settings.projects.assign(envelope, &mut recipient, access.is_permitted.is_some());
        }
        if access.is_permitted.is_some_and(|is_permitted| !is_permitted(&recipient.mailbox)) {
            return Err(RecipientRefusal::NotPermitted);
        }
        let verdict = match self.inner.hooks(HookPoint::RcptTo) {
            Some(hooks) => hooks.before_rcpt_to_accepted(envelope, &recipient.address).await,
            None => Verdict::Defer,
        };
        match verdict {
            Verdict::Allow => Ok(recipient),
            Verdict::Defer => self.settings.policy.check_recipient(&recipient.address).map(|()| recipient),
            Verdict::Deny(refusal) => Err(RecipientRefusal::Hook(refusal)),
        }
    }

    /// Returns the leased run that the domain of a recipient belongs to.
    fn find_run(&self, recipient: &Address) -> Result<Option<Run>, RecipientRefusal> {
        let Some(runs) = &self.runs else { return Ok(None) };
        runs.find_by_domain(recipient.domain(), Timestamp::now).map_err(|UnknownRun| RecipientRefusal::UnknownRun)
    }

    /// Stores a message in all of its mailboxes or in none. When this returns, the store has it. Once the store was
    /// called, the change completes and is published, even if the future is dropped.
    pub async fn deliver(&self, envelope: &Envelope, body: Bytes) -> Result<DeliveryOutcome, StoreError> {
        let (received, bytes) = (Timestamp::now(), body.len());
        let envelope = &*self.settings.projects.assign_by_header(envelope, &body);
        let (mut message, mut arrival) = self.prepare_message(envelope, body);
        if let Some(hooks) = self.inner.hooks(HookPoint::MessageStored)
            && let Some(changed) = hooks.before_message_stored(&message).await
        {
            arrival.lacks_from &= changed.headline.from() == message.headline.from();
            arrival.lacks_to &= changed.headline.recipient_lines() == message.headline.recipient_lines();
            message = IncomingMessage { mailboxes: deduplicate(changed.mailboxes), ..changed };
        }
        if message.mailboxes.is_empty() {
            self.inner.counters.count_discarded(bytes);
            return Ok(DeliveryOutcome::Discarded);
        }
        let copies = self.new_copies(envelope, &message, &arrival);
        // All copies share the headline, and a client of one project must not see the recipients in others.
        if arrival.lacks_to && is_in_several_projects(envelope, &message.mailboxes) {
            message.headline = Headline::new(message.headline.from(), [], message.headline.subject());
        }
        for copy in &copies {
            let max_bytes = self.mailbox_limits(&copy.mailbox).bytes;
            // The store would evict the message at once.
            if max_bytes < u64::MAX && (copy.trace(received).len() + message.body.len()) as u64 > max_bytes {
                return Ok(DeliveryOutcome::TooLarge { max_bytes });
            }
        }
        let IncomingMessage { headline, body, .. } = message;
        let inner = self.inner.clone();
        let message = NewMessage { received, headline, body, copies };
        let operation = async move { inner.store_message(message).await.map(DeliveryOutcome::Stored) };
        run_to_completion(operation).await
    }

    /// Collects the mailboxes in which the message is stored, and its headline. The headline is from the header; the
    /// envelope replaces missing fields.
    fn prepare_message(&self, envelope: &Envelope, body: Bytes) -> (IncomingMessage, Arrival) {
        let stored_recipients =
            envelope.recipients.iter().filter(|recipient| self.settings.policy.stores(&recipient.address));
        let mailboxes = stored_recipients.map(|recipient| recipient.mailbox.clone()).collect();
        let (header, preview) = summarize(&body);
        let from =
            header.from.as_ref().map_or_else(|| format!("<{}>", reverse_path_text(&envelope.from)).into(), Cow::from);
        let recipients = || envelope.recipients.iter().map(|to| format!("<{}>", to.address)).collect();
        let to = header.to.as_ref().map_or_else(|| Cow::Owned(recipients()), Cow::Borrowed);
        let message = IncomingMessage {
            mailboxes: deduplicate(mailboxes),
            headline: Headline::new(&from, to.iter().map(String::as_str), &header.subject),
            body,
        };
        (message, Arrival { lacks_from: header.from.is_none(), lacks_to: header.to.is_none(), header, preview })
    }

    /// Returns the copies of a message, each with its recipients and its tags.
    fn new_copies(&self, envelope: &Envelope, message: &IncomingMessage, arrival: &Arrival) -> Vec<NewCopy> {
        let (sender, mailboxes) = (reverse_path_text(&envelope.from), &message.mailboxes);
        let tagging = &self.settings.tagging;
        let common_tags = tagging.common_tags(&TaggedMessage {
            from: &envelope.from,
            headline: &message.headline,
            has_to: !arrival.lacks_to,
            header: &arrival.header,
        });
        let copy = |(index, mailbox): (usize, &MailboxName)| {
            let recipients = || self.recipients_of_copy(envelope, mailboxes, index);
            let addresses: Vec<String> = recipients().map(|recipient| recipient.address.text()).collect();
            let tagged = TaggedCopy { mailbox, recipients: recipients(), addresses: &addresses };
            let details = Details::new(&DetailFields {
                sender: &sender,
                helo: &envelope.peer.helo,
                ip: envelope.peer.ip,
                login: envelope.login.as_deref(),
                host: &self.settings.domain,
                lacks_from: arrival.lacks_from,
                lacks_to: arrival.lacks_to,
                recipients: &addresses,
                ..DetailFields::of_source(&arrival.header, &arrival.preview)
            });
            NewCopy {
                mailbox: mailbox.clone(),
                seen: false,
                flags: Flags::default(),
                tags: tagging.tags(&common_tags, tagged),
                details,
                trace: None,
            }
        };
        mailboxes.iter().enumerate().map(copy).collect()
    }

    /// Returns the recipients of the copy in the mailbox at `index`: those with this mailbox. Recipients without a
    /// mailbox, because a hook has changed the mailboxes, are in the first copy.
    fn recipients_of_copy<'a>(
        &'a self,
        envelope: &'a Envelope,
        mailboxes: &'a [MailboxName],
        index: usize,
    ) -> impl Iterator<Item = &'a Recipient> {
        let has_copy = |recipient: &Recipient| mailboxes.contains(&recipient.mailbox);
        let is_included = move |recipient: &&Recipient| {
            recipient.mailbox == mailboxes[index]
                || (index == 0 && !has_copy(recipient) && self.settings.policy.stores(&recipient.address))
        };
        envelope.recipients.iter().filter(is_included)
    }
}

/// What is read from the source of a message when it arrives.
struct Arrival {
    /// Whether the sender of the headline is that of the envelope.
    lacks_from: bool,
    /// Whether the recipients of the headline are those of the envelope.
    lacks_to: bool,
    header: HeaderSummary,
    preview: Preview,
}

/// Returns whether the recipients and the mailboxes of a message are in different projects.
fn is_in_several_projects(envelope: &Envelope, mailboxes: &[MailboxName]) -> bool {
    let mailboxes = envelope.recipients.iter().map(|recipient| &recipient.mailbox).chain(mailboxes);
    let mut projects = mailboxes.map(MailboxName::project);
    let first = projects.next();
    projects.any(|project| Some(project) != first)
}

/// Removes repeated mailboxes. A mailbox that is addressed twice gets one copy.
fn deduplicate(mailboxes: Vec<MailboxName>) -> Vec<MailboxName> {
    let mut unique = Vec::with_capacity(mailboxes.len());
    for mailbox in mailboxes {
        if !unique.contains(&mailbox) {
            unique.push(mailbox);
        }
    }
    unique
}
