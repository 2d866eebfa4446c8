//! The selected mailbox: its messages, and its changes from all clients and nodes.
//!
//! The messages are listed after the subscription to events, so no change is missed. An event of a new message only says
//! that there is one: the list of new messages comes from the store, in the order of their UIDs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use restante_mail::message::{Marks, Message, MessageId, Summary};
use restante_mail::naming::{MailboxName, Project};
use restante_mailroom::events::{Event, MarkChange, MarkSubscription, Subscription};
use restante_mailroom::{CopyKey, Mailroom, MessageSelector, Page};
use restante_proto::imap::{Change, Listed, ListedMessage, Mailbox, Outcome, Properties};
use restante_store::{IndexEntry, StoreError};
use tokio::time::sleep;

use super::folders::{FolderNotes, FolderRef, mailbox_id};
use super::listing::{ListCache, list_mailbox};
use super::messages::state_of;
use super::{Failure, Server};

/// The number of messages with all their copies that are listed at once.
const MESSAGE_PAGE_SIZE: usize = 1000;

/// After an error of the store, the messages are listed again after this time.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The selected mailbox.
pub(super) struct OpenMailbox {
    pub(super) contents: Contents,
    events: Subscription,
    marks: MarkSubscription,
    notes: Arc<FolderNotes>,
    lists: Arc<ListCache>,
    is_read_only: bool,
    /// Whether there are new messages.
    has_new: bool,
    /// Whether events were missed.
    has_gap: bool,
    /// Changes that were received and not yet reported.
    pending: Vec<Noted>,
}

/// A change that was received.
enum Noted {
    Marked(MessageId, Marks),
    Removed(MessageId),
    /// A copy in the list of all messages has other flags.
    CopyMarked(CopyKey),
}

/// What is selected.
#[derive(Clone)]
pub(super) enum Contents {
    /// A mailbox.
    Mailbox(MailboxName),
    /// All messages, or those of a project. The last UID and MODSEQ are numbers of this session.
    All { project: Option<Project>, last_uid: u32, last_modseq: u64 },
    /// INBOX of an account without access to a mailbox of its name.
    Nothing,
}

impl OpenMailbox {
    /// Opens a mailbox.
    pub(super) async fn open(
        server: &Server,
        folder: FolderRef,
        name: &str,
        is_read_only: bool,
    ) -> Result<(Self, Mailbox), Failure> {
        let mailroom = &server.context.mailroom;
        let contents = match folder {
            FolderRef::Mailbox(mailbox) => Contents::Mailbox(mailbox),
            FolderRef::All(project) => Contents::All { project, last_uid: 0, last_modseq: 0 },
            FolderRef::Nothing => Contents::Nothing,
        };
        let topic = match &contents {
            Contents::Mailbox(mailbox) => Some(mailbox.clone()),
            Contents::All { .. } | Contents::Nothing => None,
        };
        let mut open = Self {
            contents,
            events: mailroom.subscribe(topic, None).without_history(),
            marks: mailroom.subscribe_to_marks(),
            notes: server.folders.clone(),
            lists: server.lists.clone(),
            is_read_only,
            has_new: false,
            has_gap: false,
            pending: Vec::new(),
        };
        let listing = open.list(mailroom, MessageId::ZERO).await?;
        let has_sticky_uids = !matches!(open.contents, Contents::All { .. });
        let uid_validity =
            if has_sticky_uids { mailroom.uid_validity().await? } else { server.next_session_uid_validity() };
        let mailbox_id = match &open.contents {
            Contents::Mailbox(mailbox) => mailbox_id(mailbox.as_str()),
            Contents::All { .. } | Contents::Nothing => mailbox_id(name),
        };
        let is_read_only = open.is_read_only;
        Ok((open, Mailbox { uid_validity, has_sticky_uids, is_read_only, mailbox_id, listing }))
    }

    /// Waits until there may be a change. If the client does not wait for changes, those of new messages are only noted.
    pub(super) async fn changed(&mut self, is_idling: bool) {
        if matches!(self.contents, Contents::Nothing) {
            return std::future::pending().await;
        }
        // The list could not be read.
        if self.has_gap && is_idling {
            return sleep(RETRY_INTERVAL).await;
        }
        loop {
            tokio::select! {
                event = self.events.next() => match event {
                    Ok(event) => self.note_event(event.event()),
                    Err(_) => self.has_gap = true,
                },
                mark = self.marks.next() => match mark {
                    Ok(change) => self.note_marks(change),
                    Err(_) => self.has_gap = true,
                },
            }
            if self.has_changes() && (is_idling || self.has_gap || self.pending.len() >= MESSAGE_PAGE_SIZE) {
                return;
            }
        }
    }

    fn has_changes(&self) -> bool {
        self.has_new || self.has_gap || !self.pending.is_empty()
    }

    fn note_event(&mut self, event: &Event) {
        let summary = event.summary();
        match (&self.contents, event) {
            (Contents::Mailbox(_), Event::Stored(..)) => self.has_new = true,
            (Contents::Mailbox(_), Event::Deleted(_)) => self.pending.push(Noted::Removed(summary.id)),
            (Contents::All { project, .. }, event) => {
                if project.as_ref().is_none_or(|project| summary.mailbox.is_in(project)) {
                    match event {
                        Event::Stored(..) => self.has_new = true,
                        Event::Deleted(_) => self.pending.push(Noted::Removed(summary.message)),
                    }
                }
            }
            (Contents::Nothing, _) => {}
        }
    }

    fn note_marks(&mut self, MarkChange { mailbox, id, marks, .. }: MarkChange) {
        match &self.contents {
            Contents::Mailbox(own) if *own == mailbox => self.pending.push(Noted::Marked(id, marks)),
            Contents::All { project, .. } if project.as_ref().is_none_or(|project| mailbox.is_in(project)) => {
                self.pending.push(Noted::CopyMarked(CopyKey { mailbox, id }));
            }
            _ => {}
        }
    }

    /// Returns the changes up to now. `last_id` is the highest id that the session knows.
    pub(super) async fn changes(&mut self, mailroom: &Mailroom, last_id: MessageId) -> Result<Vec<Change>, StoreError> {
        self.drain();
        if !self.has_changes() {
            return Ok(Vec::new());
        }
        let changes = self.query_changes(mailroom, last_id).await;
        // After an error the next call lists everything.
        self.has_gap = changes.is_err();
        changes
    }

    async fn query_changes(&mut self, mailroom: &Mailroom, last_id: MessageId) -> Result<Vec<Change>, StoreError> {
        let noted = std::mem::take(&mut self.pending);
        let has_new = std::mem::take(&mut self.has_new);
        if self.has_gap {
            self.events = mailroom.subscribe(self.topic(), None).without_history();
            return Ok(vec![Change::Reloaded(self.list(mailroom, MessageId::ZERO).await?)]);
        }
        let mut changes = Vec::new();
        if has_new {
            changes.push(Change::Added(self.list(mailroom, last_id).await?));
        }
        for change in noted {
            changes.extend(self.resolve(mailroom, change).await?);
        }
        Ok(changes)
    }

    fn topic(&self) -> Option<MailboxName> {
        match &self.contents {
            Contents::Mailbox(mailbox) => Some(mailbox.clone()),
            Contents::All { .. } | Contents::Nothing => None,
        }
    }

    fn drain(&mut self) {
        if matches!(self.contents, Contents::Nothing) {
            return;
        }
        loop {
            match self.events.try_next() {
                Ok(Some(event)) => self.note_event(event.event()),
                Ok(None) => break,
                Err(_) => {
                    self.has_gap = true;
                    break;
                }
            }
        }
        loop {
            match self.marks.try_next() {
                Ok(Some(change)) => self.note_marks(change),
                Ok(None) => break,
                Err(_) => self.has_gap = true,
            }
        }
    }

    /// Returns a change as the session needs it. In the list of all messages, a change of a copy is one of its message.
    async fn resolve(&mut self, mailroom: &Mailroom, change: Noted) -> Result<Option<Change>, StoreError> {
        let Contents::All { project, last_modseq, .. } = &mut self.contents else {
            return Ok(match change {
                Noted::Marked(id, marks) => Some(Change::Marked(id, marks)),
                Noted::Removed(id) => Some(Change::Removed(id)),
                Noted::CopyMarked(_) => None,
            });
        };
        let id = match change {
            Noted::CopyMarked(CopyKey { mailbox, id }) => {
                match mailroom.find(&mailbox, MessageSelector::Id(id)).await? {
                    Some(copy) => copy.message,
                    None => return Ok(None),
                }
            }
            Noted::Marked(id, _) | Noted::Removed(id) => id,
        };
        *last_modseq += 1;
        Ok(Some(match find_message(mailroom, project.as_ref(), id).await? {
            Some(message) => Change::Marked(message.id(), marks_of(&message, *last_modseq)),
            None => Change::Removed(id),
        }))
    }

    /// Lists the messages after an id.
    async fn list(&mut self, mailroom: &Mailroom, after: MessageId) -> Result<Listed, StoreError> {
        match &mut self.contents {
            Contents::Mailbox(mailbox) => {
                let mut listed = match after {
                    MessageId::ZERO => self.lists.list(mailroom, mailbox).await?,
                    after => list_mailbox(mailroom, mailbox, after).await?,
                };
                listed.first_recent_uid = self.notes.first_recent_uid(mailbox, listed.next_uid, self.is_read_only);
                Ok(listed)
            }
            Contents::Nothing => Ok(Listed { next_uid: 1, highest_modseq: 1, ..Listed::default() }),
            Contents::All { project, last_uid, last_modseq } => {
                let mut messages = Vec::new();
                let mut last = after;
                loop {
                    let page = Page { limit: Some(MESSAGE_PAGE_SIZE), before: None, after: Some(last) };
                    let listed = mailroom.messages(project.as_ref(), page).await?.messages;
                    for message in &listed {
                        *last_uid += 1;
                        *last_modseq += 1;
                        messages.push(ListedMessage {
                            id: message.id(),
                            uid: *last_uid,
                            received: message.first().received,
                            size: message.first().size,
                            marks: marks_of(message, *last_modseq),
                        });
                    }
                    match listed.last() {
                        Some(message) if listed.len() == MESSAGE_PAGE_SIZE => last = message.id(),
                        _ => break,
                    }
                }
                let (next_uid, highest_modseq) = (*last_uid + 1, (*last_modseq).max(1));
                Ok(Listed { next_uid, highest_modseq, first_recent_uid: u32::MAX, messages: Arc::new(messages) })
            }
        }
    }

    /// Returns the copies of messages of this mailbox. `None` for those that no longer exist.
    pub(super) async fn copies(
        &self,
        mailroom: &Mailroom,
        ids: &[MessageId],
    ) -> Result<Vec<Option<CopyKey>>, StoreError> {
        match &self.contents {
            Contents::Mailbox(mailbox) => {
                Ok(ids.iter().map(|&id| Some(CopyKey { mailbox: mailbox.clone(), id })).collect())
            }
            Contents::Nothing => Ok(vec![None; ids.len()]),
            Contents::All { project, .. } => {
                let mut copies = Vec::with_capacity(ids.len());
                for &id in ids {
                    let message = find_message(mailroom, project.as_ref(), id).await?;
                    copies.push(message.map(|message| message.first().into()));
                }
                Ok(copies)
            }
        }
    }

    /// Returns the sources of messages.
    pub(super) async fn sources(&self, mailroom: &Mailroom, ids: &[MessageId]) -> Result<Outcome, Failure> {
        let copies = self.copies(mailroom, ids).await?;
        let mut found = mailroom.sources(copies.iter().flatten().cloned().collect()).await?.into_iter();
        let source = |copy: Option<CopyKey>| copy.and_then(|_| found.next().flatten()).map(|source| source.to_bytes());
        Ok(Outcome::Sources(copies.into_iter().map(source).collect()))
    }

    /// Returns the properties of messages.
    pub(super) async fn properties(&self, mailroom: &Mailroom, ids: &[MessageId]) -> Result<Outcome, Failure> {
        let mut listed = self.list_from(mailroom, ids).await?;
        let mut all = Vec::with_capacity(ids.len());
        for (id, copy) in ids.iter().zip(self.copies(mailroom, ids).await?) {
            let found = match (listed.remove(id), copy) {
                (None, Some(copy)) => mailroom.find(&copy.mailbox, MessageSelector::Id(copy.id)).await?,
                (listed, _) => listed,
            };
            all.push(found.map(|summary| Properties {
                message: summary.details.original().unwrap_or(summary.message),
                marks: summary.marks(),
                preview: summary.details.snippet().to_owned(),
            }));
        }
        Ok(Outcome::Properties(all))
    }

    /// Lists messages of the mailbox from the first of these ids on: the ids of a command are often next to each other, and
    /// one query is cheaper than many.
    async fn list_from(
        &self,
        mailroom: &Mailroom,
        ids: &[MessageId],
    ) -> Result<HashMap<MessageId, Summary>, StoreError> {
        let (Contents::Mailbox(mailbox), Some(first), true) = (&self.contents, ids.iter().min(), ids.len() > 2) else {
            return Ok(HashMap::new());
        };
        let after = first.number().checked_sub(1).map(MessageId::from);
        let page = Page { limit: Some(2 * ids.len()), before: None, after };
        let listing = mailroom.list(mailbox, page).await?;
        Ok(listing.messages.into_iter().map(|summary| (summary.id, summary)).collect())
    }
}

/// Returns the memory that the list of a mailbox needs while it is opened.
pub(super) async fn list_bytes(mailroom: &Mailroom, folder: &FolderRef) -> Result<usize, Failure> {
    let count = match folder {
        FolderRef::Mailbox(mailbox) => state_of(mailroom, mailbox).await?.map_or(0, |state| state.messages),
        FolderRef::All(project) => mailroom.overview(project.as_ref()).await?.messages,
        FolderRef::Nothing => 0,
    };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    Ok(count.saturating_mul(size_of::<IndexEntry>() + size_of::<ListedMessage>()))
}

/// Returns a message with its copies in a project, or with all.
async fn find_message(
    mailroom: &Mailroom,
    project: Option<&Project>,
    id: MessageId,
) -> Result<Option<Message>, StoreError> {
    let message = mailroom.find_message(MessageSelector::Id(id)).await?;
    let is_in_project = |mailbox: &MailboxName| project.is_none_or(|project| mailbox.is_in(project));
    Ok(message.and_then(|message| message.restricted_to(is_in_project)))
}

/// Returns the flags of a message: it is seen if all copies are.
fn marks_of(message: &Message, modseq: u64) -> Marks {
    Marks { seen: message.is_seen(), flags: message.first().flags, tags: message.tags(), modseq }
}
