//! Messages of all mailboxes, each with the copies that a grant allows.

use restante_auth::Grant;
use restante_http_connection::work::WorkPermit;
use restante_mail::message::{Message, MessageId};
use restante_store::{MessageListing, MessageSelector, Page, Version};
use tokio::task::yield_now;

use crate::response::problem::Problem;
use crate::state::Server;

/// The number of messages that are read at once if the client may not see all of them.
const SCAN_BATCH: usize = 500;
/// The maximum number of messages that one request reads to find those that the client may see.
pub(crate) const MAX_SCANNED_MESSAGES: usize = 20_000;

/// A range of the list of messages: ids between `after` and `before`, both exclusive. The newest `limit` messages are
/// selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageRange {
    pub(crate) before: Option<MessageId>,
    pub(crate) after: Option<MessageId>,
    pub(crate) limit: usize,
}

impl MessageRange {
    /// Returns whether a message is too old for the range.
    pub(crate) fn ends_before(&self, message: MessageId) -> bool {
        self.after.is_some_and(|after| message <= after)
    }
}

/// A page of a list of messages.
#[derive(Debug, Default)]
pub(crate) struct MessagePage {
    /// The messages with the copies that the grant allows, the newest first.
    pub(crate) messages: Vec<Message>,
    /// If there may be more messages, they have ids below this one.
    pub(crate) next: Option<MessageId>,
}

impl Server {
    /// Returns a message with the copies that the grant allows.
    pub(crate) async fn permitted_message(&self, grant: &Grant, selector: MessageSelector) -> Result<Message, Problem> {
        let message = match selector {
            MessageSelector::Latest if !grant.covers_all_mailboxes() => {
                let newest = MessageRange { before: None, after: None, limit: 1 };
                self.scan_messages(grant, newest).await?.messages.pop()
            }
            _ => {
                let message = self.mailroom.find_message(selector).await?;
                message.and_then(|message| permitted_copies(grant, message))
            }
        };
        message.ok_or(Problem::NoSuchWholeMessage)
    }

    /// Returns a page of all messages, and the version of the store from which it was read. The grant must cover all
    /// mailboxes.
    pub(crate) async fn list_messages(&self, range: MessageRange) -> Result<(Version, MessagePage), Problem> {
        // One more than requested, to know whether this is the last page. The store would return the oldest messages
        // after an id, so the end of the range is applied here.
        let page = Page { before: range.before, after: None, limit: Some(range.limit.saturating_add(1)) };
        let MessageListing { version, mut messages } = self.mailroom.messages(page).await?;
        messages.reverse();
        messages.retain(|message| !range.ends_before(message.id()));
        let is_last = messages.len() <= range.limit;
        messages.truncate(range.limit);
        let next = messages.last().filter(|_| !is_last).map(Message::id);
        Ok((version, MessagePage { messages, next }))
    }

    /// Returns a page of the messages that the grant allows. It reads messages until it has found enough or has read
    /// [`MAX_SCANNED_MESSAGES`]. So a page can have fewer messages than requested even if it is not the last one. Only
    /// one request at a time reads more than one batch.
    pub(crate) async fn scan_messages(&self, grant: &Grant, range: MessageRange) -> Result<MessagePage, Problem> {
        let (mut found, mut scanned, mut permit) = (MessagePage::default(), 0, None);
        let mut page = Page { before: range.before, after: None, limit: Some(range.limit.saturating_add(1)) };
        loop {
            let messages = self.mailroom.messages(page).await?.messages;
            let is_last = page.limit.is_some_and(|limit| messages.len() < limit);
            scanned += messages.len();
            page.before = messages.first().map(Message::id);
            for message in messages.into_iter().rev() {
                if range.ends_before(message.id()) {
                    return Ok(found);
                }
                let Some(message) = permitted_copies(grant, message) else { continue };
                if found.messages.len() >= range.limit {
                    found.next = found.messages.last().map(Message::id);
                    return Ok(found);
                }
                found.messages.push(message);
            }
            if is_last {
                return Ok(found);
            }
            if scanned >= MAX_SCANNED_MESSAGES {
                found.next = page.before;
                return Ok(found);
            }
            page.limit = Some(SCAN_BATCH);
            if permit.is_none() {
                permit = Some(WorkPermit::acquire(&self.scan_permits).await?);
            }
            // A memory store returns without yielding to other tasks.
            yield_now().await;
        }
    }
}

/// Returns a message with the copies that the grant allows, or `None` if it allows none.
pub(crate) fn permitted_copies(grant: &Grant, message: Message) -> Option<Message> {
    if grant.covers_all_mailboxes() { Some(message) } else { message.restricted_to(|mailbox| grant.covers(mailbox)) }
}
