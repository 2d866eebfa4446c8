//! Messages of all mailboxes, each with the copies that a grant allows.

use restante_auth::Grant;
use restante_http_connection::work::WorkPermit;
use restante_mail::message::{Message, MessageId};
use restante_store::{MailboxPage, MailboxState, MessageListing, MessageSelector, Page, Version};
use tokio::task::yield_now;

use crate::response::problem::Problem;
use crate::state::Server;

/// The number of messages that are read at once if the client may not see all of them.
const SCAN_BATCH: usize = 500;
/// Ids are microseconds. A cursor that does not come from a visible message is a multiple of a millisecond.
const CURSOR_STEP: u64 = 1000;
/// The number of mailboxes that are read at once to find the newest message.
const MAILBOX_BATCH: usize = 1000;
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

impl MessagePage {
    /// Returns the cursor for the messages below `cursor`, which can be the id of a message that the client may not see.
    /// It is rounded up to a millisecond, in which there are always fewer messages than a request reads.
    fn hidden_cursor(&self, cursor: MessageId) -> MessageId {
        let rounded: MessageId = cursor.number().checked_next_multiple_of(CURSOR_STEP).unwrap_or(u64::MAX).into();
        // No message is on two pages.
        self.messages.last().map_or(rounded, |last| rounded.min(last.id()))
    }
}

impl Server {
    /// Returns a message with the copies that the grant allows.
    pub(crate) async fn permitted_message(&self, grant: &Grant, selector: MessageSelector) -> Result<Message, Problem> {
        let message = match selector {
            MessageSelector::Latest if !grant.covers_all_mailboxes() => {
                let newest = MessageRange { before: None, after: None, limit: 1 };
                match self.scan_messages(grant, newest).await? {
                    MessagePage { messages, next: Some(_) } if messages.is_empty() => {
                        self.newest_message(grant).await?
                    }
                    MessagePage { mut messages, .. } => messages.pop(),
                }
            }
            _ => {
                let message = self.mailroom.find_message(selector).await?;
                message.and_then(|message| permitted_copies(grant, message))
            }
        };
        message.ok_or(Problem::NoSuchWholeMessage)
    }

    /// Returns the newest message that the grant allows, found in the list of mailboxes. That list is read in full, so
    /// this is for messages that are too old for [`Self::scan_messages`].
    async fn newest_message(&self, grant: &Grant) -> Result<Option<Message>, Problem> {
        let mut page = MailboxPage { limit: MAILBOX_BATCH, ..MailboxPage::ALL };
        let mut newest: Option<MailboxState> = None;
        loop {
            let mailboxes = self.reachable_mailboxes(grant, &page, page.limit).await?;
            let last = mailboxes.last().filter(|_| mailboxes.len() >= page.limit).map(|last| last.name.to_string());
            newest = newest.into_iter().chain(mailboxes).max_by_key(|mailbox| mailbox.newest.id);
            let Some(last) = last else { break };
            page.after = last;
        }
        let Some(MailboxState { name, .. }) = newest else { return Ok(None) };
        let Some(copy) = self.mailroom.find(&name, MessageSelector::Latest).await? else { return Ok(None) };
        let message = self.mailroom.find_message(MessageSelector::Id(copy.message)).await?;
        Ok(message.and_then(|message| permitted_copies(grant, message)))
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
                found.next = page.before.map(|cursor| found.hidden_cursor(cursor));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_cursors_are_rounded_up() {
        let table = [(1, 1000), (999, 1000), (1000, 1000), (1001, 2000), (u64::MAX - 1, u64::MAX)];
        for (cursor, expected) in table {
            assert_eq!(MessagePage::default().hidden_cursor(cursor.into()), MessageId::from(expected), "{cursor}");
        }
    }
}
