//! Changes of many messages as a whole: of their copies that a client may access. Messages are found and changed in
//! batches, so that only those of one batch are in memory. After an error, the messages of earlier batches are changed.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use restante_auth::Grant;
use restante_mail::message::{Message, MessageId};
use restante_mailroom::{CopyKey, DeletionCause};
use restante_store::MessageSelector;

use crate::messages::Messages;
use crate::messages::permitted_copies;
use crate::response::problem::{Problem, internal_error};

/// The maximum number of ids in a request. All copies of these messages are changed.
pub const MAX_IDS: usize = 20_000;
/// The maximum size of a request body with ids, those of about fifty thousand messages.
pub const MAX_IDS_BODY_BYTES: usize = 1024 * 1024;
/// The number of messages that are found and changed at once.
pub const CHANGE_BATCH: usize = 200;
/// The number of messages that are looked up concurrently.
const CONCURRENT_LOOKUPS: usize = 16;

/// A change of messages.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// Marks them as seen or unseen.
    Mark {
        /// Whether they are marked as seen.
        seen: bool,
    },
    /// Deletes them.
    Delete,
}

impl Messages {
    /// Changes the messages with these ids. Returns how many of them the client may access. The change runs in its own
    /// task, so that it completes even if the client disconnects: check before whether the request is canceled already.
    pub async fn change_ids(
        self: &Arc<Self>,
        grant: Grant,
        ids: Vec<MessageId>,
        change: Change,
    ) -> Result<usize, Problem> {
        let this = self.clone();
        let task = async move { this.change_each_batch(&grant, &ids, change).await };
        tokio::spawn(task).await.map_err(|error| internal_error(&error))?
    }

    /// Changes the messages with these ids in batches, so that only those of one batch are in memory.
    async fn change_each_batch(&self, grant: &Grant, ids: &[MessageId], change: Change) -> Result<usize, Problem> {
        let mut count = 0;
        for batch in ids.chunks(CHANGE_BATCH) {
            let messages = self.find_messages(grant, batch).await?;
            count += self.change_messages(messages, change).await?;
        }
        Ok(count)
    }

    /// Returns those of the messages with these ids that exist, with the copies that the grant allows.
    pub async fn find_messages(&self, grant: &Grant, ids: &[MessageId]) -> Result<Vec<Message>, Problem> {
        let find = |&id: &MessageId| self.mailroom.find_message(MessageSelector::Id(id));
        let lookups: Vec<_> = ids.iter().map(find).collect();
        let found: Vec<_> = stream::iter(lookups).buffered(CONCURRENT_LOOKUPS).try_collect().await?;
        Ok(found.into_iter().flatten().filter_map(|message| permitted_copies(grant, message)).collect())
    }

    /// Changes these copies of messages. Returns the number of messages that still existed.
    pub async fn change_messages(&self, messages: Vec<Message>, change: Change) -> Result<usize, Problem> {
        match change {
            Change::Mark { seen } => {
                let is_marked = |message: &Message| message.copies().iter().all(|copy| copy.seen == seen);
                let (marked, rest): (Vec<_>, Vec<_>) = messages.into_iter().partition(is_marked);
                let changed_copies = self.mailroom.mark_copies(rest.iter().flat_map(copy_keys).collect(), seen).await?;
                Ok(marked.len() + changed_messages(&rest, changed_copies))
            }
            Change::Delete => {
                let copies = messages.iter().flat_map(copy_keys).collect();
                let removed_copies = self.mailroom.remove_copies(copies, DeletionCause::Request).await?;
                Ok(changed_messages(&messages, removed_copies))
            }
        }
    }
}

/// Returns the copies of a message, as the mailroom names them.
pub fn copy_keys(message: &Message) -> impl Iterator<Item = CopyKey> {
    message.copies().iter().map(Into::into)
}

/// Returns how many of the messages were changed with this number of copies. Other requests may have deleted some of the
/// copies. Then this is the smallest number of messages that can have this number of copies.
fn changed_messages(messages: &[Message], changed_copies: usize) -> usize {
    let mut counts: Vec<usize> = messages.iter().map(|message| message.copies().len()).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let mut rest = changed_copies;
    let is_changed = |count: usize| {
        let is_changed = rest > 0;
        rest = rest.saturating_sub(count);
        is_changed
    };
    counts.into_iter().map(is_changed).take_while(|is_changed| *is_changed).count()
}
