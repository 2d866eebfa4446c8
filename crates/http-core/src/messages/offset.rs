//! Pages of the list of all messages by offset. The store finds pages by id, so messages before an offset are read and
//! skipped. The ids at the ends of pages are kept until the store changes: a client that requests one page after the other
//! skips nothing.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use restante_mail::message::{Message, MessageId};
use restante_mail::naming::Project;
use restante_store::{MessageListing, Page, Version};

use crate::messages::Messages;
use crate::messages::{MessagePage, MessageRange};
use crate::response::problem::Problem;

/// The number of messages that are skipped at once. Each of them can have many copies.
const SKIP_BATCH: usize = 200;
/// The maximum number of offsets that are kept.
const MAX_OFFSETS: usize = 1000;

/// Known offsets in the lists of one version of the store: that of all messages, and those of projects.
#[derive(Debug, Default)]
pub(super) struct KnownOffsets(Mutex<(Version, BTreeMap<ListOffset, MessageId>)>);

/// An offset in the list of all messages, or of those in a project.
type ListOffset = (Option<Project>, usize);

impl KnownOffsets {
    /// Returns the highest known offset up to this one, and the id below which its messages are.
    fn find(&self, version: Version, list: Option<&Project>, offset: usize) -> Option<(usize, MessageId)> {
        let known = self.0.lock();
        let range = (list.cloned(), 0)..=(list.cloned(), offset);
        let found = known.1.range(range).next_back().filter(|_| known.0 == version);
        found.map(|((_, offset), &id)| (*offset, id))
    }

    fn insert(&self, version: Version, list: Option<&Project>, offset: usize, id: MessageId) {
        let mut known = self.0.lock();
        if known.0 != version {
            *known = (version, BTreeMap::new());
        }
        if known.1.len() < MAX_OFFSETS {
            known.1.insert((list.cloned(), offset), id);
        }
    }
}

impl Messages {
    /// Returns `limit` messages of the list of all messages or of those in a project, the newest first, without the first
    /// `start`, and the version of the store at the start of the query. `before` limits the list to older messages. The cost
    /// depends on `start`, so callers limit it. Only one request at a time skips more than one batch. The grant must cover its
    /// home, and that must be this project.
    pub async fn messages_from_offset(
        &self,
        home: Option<&Project>,
        start: usize,
        before: Option<MessageId>,
        limit: usize,
    ) -> Result<(Version, Vec<Message>), Problem> {
        let version = self.mailroom.store_version().await?;
        let known = self.known_offsets.find(version, home, start).filter(|_| before.is_none());
        let (mut offset, mut cursor) = known.map_or((0, before), |(offset, id)| (offset, Some(id)));
        let (mut permit, mut is_consistent) = (None, before.is_none());
        while offset < start {
            let count = (start - offset).min(SKIP_BATCH);
            let page = Page { before: cursor, after: None, limit: Some(count) };
            let MessageListing { version: found, messages } = self.mailroom.messages(home, page).await?;
            is_consistent &= found == version;
            offset += messages.len();
            cursor = messages.first().map(Message::id);
            let Some(last) = cursor.filter(|_| messages.len() == count) else { return Ok((version, Vec::new())) };
            if is_consistent {
                self.known_offsets.insert(version, home, offset, last);
            }
            if offset < start {
                self.continue_scan(&mut permit).await?;
            }
        }
        drop(permit);
        let (found, MessagePage { messages, next }) =
            self.list_messages(home, MessageRange { before: cursor, after: None, limit }).await?;
        if let Some(next) = next.filter(|_| is_consistent && found == version) {
            self.known_offsets.insert(version, home, offset + messages.len(), next);
        }
        Ok((if start == 0 { found } else { version }, messages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_known_for_one_version() {
        let (first, second, shop) = (Version(1), Version(2), "shop".parse().unwrap());
        let known = KnownOffsets::default();
        assert_eq!(known.find(first, None, 100), None);
        known.insert(first, None, 50, 7.into());
        known.insert(first, None, 100, 5.into());
        assert_eq!(known.find(first, None, 49), None);
        assert_eq!(known.find(first, None, 99), Some((50, 7.into())));
        assert_eq!(known.find(first, None, 100), Some((100, 5.into())));
        assert_eq!(known.find(first, Some(&shop), 100), None, "another list");
        assert_eq!(known.find(second, None, 100), None, "the list has changed");
        known.insert(second, None, 10, 9.into());
        known.insert(second, Some(&shop), 20, 8.into());
        assert_eq!((known.find(second, None, 100), known.find(first, None, 100)), (Some((10, 9.into())), None));
        assert_eq!(known.find(second, Some(&shop), 100), Some((20, 8.into())));
        for offset in 0..2 * MAX_OFFSETS {
            known.insert(second, None, offset, 1.into());
        }
        assert!(known.find(second, None, usize::MAX).is_some_and(|(offset, _)| offset <= MAX_OFFSETS));
    }
}
