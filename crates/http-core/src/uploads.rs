//! The delivery of a message that a request contains. Apart from the grant, the checks are those of SMTP.

use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use restante_auth::{Grant, Scope};
use restante_mail::address::Address;
use restante_mail::compose::ComposeContext;
use restante_mail::envelope::{Envelope, Peer, ReversePath};
use restante_mail::message::Summary;
use restante_mail::naming::{MailboxName, Project};
use restante_mailroom::{DeliveryOutcome, Mailroom, WriteAccess};
use restante_net::{Budget, Reservation};

use crate::response::problem::{Problem, internal_error};

/// The maximum size of a JSON body from which a message is composed, as a multiple of the maximum message size. Base64
/// adds a third, and escapes add more.
pub const JSON_SIZE_FACTOR: usize = 2;

/// The memory for all large messages that are being uploaded. One upload at a time may exceed it, see
/// [`restante_net::Budget`].
pub const MAX_UPLOAD_BYTES: usize = 64 * 1024 * 1024;

/// A message from a request.
pub struct Upload {
    /// The address of the client.
    pub ip: Option<IpAddr>,
    /// The name with which the client has logged in, if the message shows it.
    pub login: Option<String>,
    /// The API key of the client, if it has one. Rules that choose projects can match it; it is not stored.
    pub key: Option<Arc<str>>,
    /// The sender of the envelope.
    pub from: ReversePath,
    /// The recipients of the envelope.
    pub recipients: Vec<Address>,
    /// The project that the request names. `None` for that of a rule, or for the home of the grant.
    pub project: Option<Project>,
    /// The message.
    pub message: Bytes,
}

/// A message from a request, with accepted sender and recipients.
pub struct CheckedUpload {
    envelope: Envelope,
    message: Bytes,
}

/// Delivers messages from requests.
pub struct Uploads {
    mailroom: Arc<Mailroom>,
    /// The memory for messages that are being uploaded. It is separate from the memory for responses, so that slow
    /// uploads do not block responses, and the reverse.
    pub budget: Arc<Budget>,
}

impl Uploads {
    pub(crate) fn new(mailroom: Arc<Mailroom>) -> Self {
        Self { mailroom, budget: Budget::new(MAX_UPLOAD_BYTES) }
    }

    /// Returns the inputs for composing a message now.
    pub fn compose_context(&self) -> ComposeContext {
        ComposeContext::new(Timestamp::now(), self.mailroom.domain(), RandomState::new().hash_one(()))
    }

    /// Delivers a message if the sender and all recipients are accepted and the grant allows to write to all of their
    /// mailboxes. Returns the stored copies that the grant covers. Once it has begun, the delivery completes even if the
    /// client disconnects. The memory of the message is released when it is stored.
    pub async fn deliver_upload(
        &self,
        grant: &Grant,
        upload: Upload,
        reservation: Reservation,
    ) -> Result<Vec<Summary>, Problem> {
        let checked = self.check(grant, upload).await?;
        let mut stored = self.deliver(grant, vec![checked], reservation).await?;
        stored.pop().unwrap_or_else(|| Ok(Vec::new()))
    }

    /// Checks the sender and all recipients of a message, and that the grant allows to write to all of their mailboxes.
    pub async fn check(&self, grant: &Grant, upload: Upload) -> Result<CheckedUpload, Problem> {
        let Upload { ip, login, key, from, recipients, project, message } = upload;
        let peer = Peer { ip, helo: String::new() };
        let mut envelope = Envelope { peer, login, key, listener: None, from, recipients: Vec::new() };
        self.mailroom.check_sender(&envelope).await?;
        let home = project.as_ref().or(grant.home());
        let is_permitted = |mailbox: &MailboxName| grant.allows(Scope::Write, mailbox);
        let is_limited = !grant.allows_everywhere(Scope::Write);
        let access = WriteAccess { home, is_permitted: is_limited.then_some(&is_permitted) };
        for recipient in recipients {
            let recipient = self.mailroom.check_recipient(&envelope, recipient, access).await?;
            envelope.recipients.push(recipient);
        }
        // The delivery checks it again for the final mailboxes. Other messages of the request may be stored then.
        let bytes = message.len() as u64;
        let recipients = envelope.recipients.iter().filter(|recipient| !recipient.awaits_header);
        let limits = recipients.map(|recipient| self.mailroom.mailbox_limits(&recipient.mailbox).bytes);
        match limits.min() {
            Some(max) if bytes > max => Err(Problem::MessageTooLarge { bytes, max }),
            _ => Ok(CheckedUpload { envelope, message }),
        }
    }

    /// Delivers messages one after the other. Returns the stored copies of each message that the grant covers. Once it has
    /// begun, the delivery of all messages completes even if the client disconnects. Their memory is released then.
    pub async fn deliver(
        &self,
        grant: &Grant,
        uploads: Vec<CheckedUpload>,
        reservation: Reservation,
    ) -> Result<Vec<Result<Vec<Summary>, Problem>>, Problem> {
        let mailroom = self.mailroom.clone();
        let deliveries = tokio::spawn(async move {
            let mut results = Vec::with_capacity(uploads.len());
            for CheckedUpload { envelope, message } in uploads {
                let bytes = message.len() as u64;
                results.push(match mailroom.deliver(&envelope, message).await {
                    Ok(DeliveryOutcome::Stored(stored)) => Ok(stored),
                    Ok(DeliveryOutcome::Discarded) => Ok(Vec::new()),
                    Ok(DeliveryOutcome::TooLarge { max_bytes }) => {
                        Err(Problem::MessageTooLarge { bytes, max: max_bytes })
                    }
                    Err(error) => Err(error.into()),
                });
            }
            drop(reservation);
            results
        });
        let mut results = deliveries.await.map_err(|error| internal_error(&error))?;
        for stored in results.iter_mut().flatten() {
            // A hook may have delivered to mailboxes outside of the grant.
            stored.retain(|message| grant.covers(&message.mailbox));
            for message in stored {
                message.mailbox = message.mailbox.relative_to(grant.home());
            }
        }
        Ok(results)
    }
}
