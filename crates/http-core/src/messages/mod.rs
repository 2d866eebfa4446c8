//! Messages of all mailboxes, each with the copies that a grant allows.
//!
//! - `mailboxes`: the mailboxes that a grant allows
//! - `changes`: changes of many messages
//! - `changed`: the messages of events
//! - `offset`: pages of the list of all messages by offset
//! - `overview`: the number of messages and of unread ones, and the tags, cached

mod changed;
pub mod changes;
mod mailboxes;
mod offset;
pub mod overview;

use std::sync::Arc;
use std::time::Instant;

use restante_auth::Grant;
use restante_mail::message::{Message, MessageId, Summary};
use restante_mail::naming::{MailboxName, Project};
use restante_mailroom::Mailroom;
use restante_metrics::Metrics;
use restante_search::{FoundIds, Query, Search, SearchRequest, SearchResults};
use restante_store::{Listing, MailboxState, MessageListing, MessageSelector, Page, Version};

use tokio::sync::Semaphore;

use crate::response::problem::Problem;
use offset::KnownOffsets;
use overview::OverviewCache;

/// The number of messages that are read at once if the client may not see all of them.
const SCAN_BATCH: usize = 500;
/// The maximum number of copies on a page of messages, exceeded by the copies of the last message at most. A page that
/// reaches it has fewer messages than requested.
pub const MAX_PAGE_COPIES: usize = 20_000;
/// The number of messages that are read at once for a page of all messages. Each of them can have many copies.
const PAGE_BATCH: usize = 200;
/// Ids are microseconds. A cursor that does not come from a visible message is a multiple of a millisecond.
const CURSOR_STEP: u64 = 1000;
/// The maximum number of messages that one request reads to find those that the client may see.
pub const MAX_SCANNED_MESSAGES: usize = 20_000;

/// A range of the list of messages: ids between `after` and `before`, both exclusive. The newest `limit` messages are
/// selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRange {
    /// Only ids below this one.
    pub before: Option<MessageId>,
    /// Only ids above this one.
    pub after: Option<MessageId>,
    /// The maximum number of messages.
    pub limit: usize,
}

impl MessageRange {
    /// Returns whether a message is too old for the range.
    pub fn ends_before(&self, message: MessageId) -> bool {
        self.after.is_some_and(|after| message <= after)
    }

    /// Returns the page of the store that contains the range: one message more than requested, to know whether this is the
    /// last page. The store would return the oldest messages after an id, so [`Self::select`] applies the end of the range.
    fn store_page(&self) -> Page {
        Page { before: self.before, after: None, limit: Some(self.limit.saturating_add(1)) }
    }

    /// Selects the range from the messages of its [`Self::store_page`], which are ascending by id.
    fn select(&self, mut messages: Vec<Message>) -> MessagePage {
        messages.reverse();
        messages.retain(|message| !self.ends_before(message.id()));
        let is_last = messages.len() <= self.limit;
        messages.truncate(self.limit);
        let next = messages.last().filter(|_| !is_last).map(Message::id);
        MessagePage { messages, next }
    }
}

/// A page of a list of messages.
#[derive(Debug, Default)]
pub struct MessagePage {
    /// The messages with the copies that the grant allows, the newest first.
    pub messages: Vec<Message>,
    /// If there may be more messages, they have ids below this one.
    pub next: Option<MessageId>,
}

impl MessagePage {
    /// Adds the next messages, up to the limit on copies. Returns whether that limit is reached.
    pub fn append(&mut self, MessagePage { messages, next }: MessagePage) -> bool {
        let mut copies: usize = self.messages.iter().map(|message| message.copies().len()).sum();
        for message in messages {
            if copies >= MAX_PAGE_COPIES {
                self.next = self.messages.last().map(Message::id);
                return true;
            }
            copies += message.copies().len();
            self.messages.push(message);
        }
        self.next = next;
        copies >= MAX_PAGE_COPIES
    }

    /// Returns the cursor for the messages below `cursor`, which can be the id of a message that the client may not see.
    /// It is rounded up to a millisecond, in which there are always fewer messages than a request reads.
    fn hidden_cursor(&self, cursor: MessageId) -> MessageId {
        let rounded: MessageId = cursor.number().checked_next_multiple_of(CURSOR_STEP).unwrap_or(u64::MAX).into();
        // No message is on two pages.
        self.messages.last().map_or(rounded, |last| rounded.min(last.id()))
    }
}

/// Queries of messages and mailboxes, as far as a grant allows them.
pub struct Messages {
    mailroom: Arc<Mailroom>,
    search: Option<Arc<Search>>,
    metrics: Arc<Metrics>,
    overview_cache: OverviewCache,
    known_offsets: KnownOffsets,
    /// Limits listings that read many mailboxes or messages to find the few that a client may see. A request that needs both
    /// acquires the work permit first.
    pub scan_permits: Arc<Semaphore>,
}

impl Messages {
    pub(crate) fn new(mailroom: Arc<Mailroom>, search: Option<Arc<Search>>, metrics: Arc<Metrics>) -> Self {
        Self {
            mailroom,
            search,
            metrics,
            overview_cache: OverviewCache::default(),
            known_offsets: KnownOffsets::default(),
            scan_permits: Arc::new(Semaphore::new(1)),
        }
    }

    /// Returns a message with the copies that the grant allows. The id can be that of the message, or that of one of these
    /// copies.
    pub async fn permitted_message(&self, grant: &Grant, selector: MessageSelector) -> Result<Message, Problem> {
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
            MessageSelector::Latest => self.mailroom.find_message(selector).await?,
            MessageSelector::Id(id) => {
                let message = match self.mailroom.find_message(selector).await? {
                    Some(message) => Some(message),
                    None => self.find_message_of_copy(id).await?,
                };
                let message = message.and_then(|message| permitted_copies(grant, message));
                // A copy that the client may not read does not exist for it, even if it may read another one.
                message.filter(|message| message.id() == id || message.copies().iter().any(|copy| copy.id == id))
            }
        };
        message.ok_or(Problem::NoSuchMessage)
    }

    /// Returns the message that the copy with this id belongs to. The store finds copies only by their mailbox, so this
    /// reads the list of messages: the message before the copy, and the next one. The cost does not depend on the number
    /// of messages.
    async fn find_message_of_copy(&self, id: MessageId) -> Result<Option<Message>, Problem> {
        let next = Page { before: None, after: Some(self.id_before(id).await?), limit: Some(1) };
        let message = self.mailroom.messages(None, next).await?.messages.pop();
        Ok(message.filter(|message| message.copies().iter().any(|copy| copy.id == id)))
    }

    /// Returns the id of the last message before an id, or zero if there is none.
    pub(super) async fn id_before(&self, id: MessageId) -> Result<MessageId, Problem> {
        let page = Page { before: Some(id), after: None, limit: Some(1) };
        let previous = self.mailroom.messages(None, page).await?.messages.pop();
        Ok(previous.map_or(MessageId::ZERO, |previous| previous.id()))
    }

    /// Returns the newest message that the grant allows, found in the list of mailboxes. That list is read in full, so
    /// this is for messages that are too old for [`Self::scan_messages`].
    async fn newest_message(&self, grant: &Grant) -> Result<Option<Message>, Problem> {
        let mut newest: Option<MailboxState> = None;
        let visit = |mailbox: MailboxState| {
            if newest.as_ref().is_none_or(|newest| newest.newest.id < mailbox.newest.id) {
                newest = Some(mailbox);
            }
        };
        self.visit_mailboxes(grant, visit).await?;
        let Some(MailboxState { name, .. }) = newest else { return Ok(None) };
        let Some(copy) = self.mailroom.find(&name, MessageSelector::Latest).await? else { return Ok(None) };
        let message = self.mailroom.find_message(MessageSelector::Id(copy.message)).await?;
        Ok(message.and_then(|message| permitted_copies(grant, message)))
    }

    /// Returns a page of all messages, or of those in a project, and the version of the store from which its first messages
    /// were read: if the list changes meanwhile, clients request it again. The grant must cover its home, and that must be
    /// this project.
    pub async fn list_messages(
        &self,
        home: Option<&Project>,
        range: MessageRange,
    ) -> Result<(Version, MessagePage), Problem> {
        let (mut found, mut rest, mut first_version) = (MessagePage::default(), range, None);
        loop {
            rest.limit = (range.limit - found.messages.len()).min(PAGE_BATCH);
            let MessageListing { version, messages } = self.mailroom.messages(home, rest.store_page()).await?;
            let version = *first_version.get_or_insert(version);
            let is_full = found.append(rest.select(messages));
            if is_full || found.next.is_none() || found.messages.len() >= range.limit {
                return Ok((version, found));
            }
            rest.before = found.next;
        }
    }

    /// Returns a page of the copies in a mailbox, each as a message of its own, and the version of the mailbox from which
    /// it was read.
    pub async fn list_copies(
        &self,
        mailbox: &MailboxName,
        range: MessageRange,
    ) -> Result<(Version, MessagePage), Problem> {
        let Listing { version, messages: copies } = self.mailroom.list(mailbox, range.store_page()).await?;
        Ok((version, range.select(Message::group(copies.into_iter().map(separate_copy)))))
    }

    /// Returns a page of the messages that the grant allows. It can have fewer messages than requested even if it is not the
    /// last one.
    pub async fn permitted_messages(&self, grant: &Grant, range: MessageRange) -> Result<MessagePage, Problem> {
        if grant.covers_home() {
            Ok(self.list_messages(grant.home(), range).await?.1)
        } else {
            self.scan_messages(grant, range).await
        }
    }

    /// Searches copies that the grant allows, in a mailbox or in all. With `one_per_message`, returns one copy of each
    /// message.
    pub async fn find_copies(
        &self,
        grant: &Grant,
        query: &Query,
        mailbox: Option<&MailboxName>,
        before: Option<MessageId>,
        limit: usize,
        one_per_message: bool,
    ) -> Result<SearchResults, Problem> {
        let search = self.search.as_ref().ok_or(Problem::SearchDisabled)?;
        let (query, is_permitted, start) = (query.clone(), mailbox_filter(grant), Instant::now());
        let request = SearchRequest { query, mailbox: mailbox.cloned(), is_permitted, before, limit, one_per_message };
        let results = search.find(&self.mailroom, request).await;
        self.metrics.observe_search(start.elapsed());
        let mut results = results?;
        for hit in &mut results.hits {
            hit.summary.mailbox = hit.summary.mailbox.relative_to(grant.home());
        }
        Ok(results)
    }

    /// Searches copies in all mailboxes that the grant allows. Returns only their ids, which is much cheaper.
    pub async fn find_copy_ids(
        &self,
        grant: &Grant,
        query: &Query,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<FoundIds, Problem> {
        let search = self.search.as_ref().ok_or(Problem::SearchDisabled)?;
        let (query, is_permitted, start) = (query.clone(), mailbox_filter(grant), Instant::now());
        let request = SearchRequest { query, mailbox: None, is_permitted, before, limit, one_per_message: false };
        let found = search.find_ids(&self.mailroom, request).await;
        self.metrics.observe_search(start.elapsed());
        Ok(found?)
    }

    /// Returns a page of the messages that the grant allows. It reads messages until it has found enough or has read
    /// [`MAX_SCANNED_MESSAGES`]. So a page can have fewer messages than requested even if it is not the last one. Only
    /// one request at a time reads more than one batch.
    pub async fn scan_messages(&self, grant: &Grant, range: MessageRange) -> Result<MessagePage, Problem> {
        let (mut found, mut scanned, mut copies, mut permit) = (MessagePage::default(), 0, 0, None);
        let mut page = range.store_page();
        page.limit = page.limit.map(|limit| limit.min(SCAN_BATCH));
        loop {
            let messages = self.mailroom.messages(grant.home(), page).await?.messages;
            let is_last = page.limit.is_some_and(|limit| messages.len() < limit);
            scanned += messages.len();
            page.before = messages.first().map(Message::id);
            for message in messages.into_iter().rev() {
                if range.ends_before(message.id()) {
                    return Ok(found);
                }
                let Some(message) = permitted_copies(grant, message) else { continue };
                if found.messages.len() >= range.limit || copies >= MAX_PAGE_COPIES {
                    found.next = found.messages.last().map(Message::id);
                    return Ok(found);
                }
                copies += message.copies().len();
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
            self.continue_scan(&mut permit).await?;
        }
    }
}

/// Returns a function that returns whether the grant covers a mailbox.
fn mailbox_filter(grant: &Grant) -> Box<dyn Fn(&MailboxName) -> bool + Send> {
    let grant = grant.clone();
    Box::new(move |mailbox| grant.covers(mailbox))
}

/// Returns a message with the copies that the grant allows, or `None` if it allows none. The names of mailboxes are relative
/// to the home of the grant.
pub fn permitted_copies(grant: &Grant, message: Message) -> Option<Message> {
    if grant.covers_all_mailboxes() {
        return Some(message);
    }
    Some(message.restricted_to(|mailbox| grant.covers(mailbox))?.relative_to(grant.home()))
}

/// Returns a copy as a copy of a message of its own, which has the id of the copy.
pub fn separate_copy(copy: Summary) -> Summary {
    Summary { message: copy.id, ..copy }
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
