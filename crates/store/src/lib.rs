//! Storage of messages: the [`Store`] contract and its backends.
//!
//! A backend runs queries and changes state; it never calls upward. Messages that a change removed (by the cap, the
//! size limit or a purge) are returned, and the caller publishes the events. Every backend passes the suite in
//! `tests/conformance.rs`.

mod copy_update;
pub mod disk;
pub mod feed;
mod limits;
pub mod memory;
pub mod overview;
pub mod postgres;
#[cfg(test)]
mod tests {
    pub(crate) mod conformance;
    mod project_times;
}

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::join_all;
use jiff::Timestamp;
use restante_mail::details::Details;
use restante_mail::message::{Flags, Headline, Marks, Message, MessageId, Source, Summary};
use restante_mail::naming::{MailboxName, Project};
use restante_mail::tags::Tags;

pub use copy_update::{ChangedMarks, CopyUpdate, UpdateOutcome};
use feed::Feed;
pub use limits::{Limits, MailboxLimits, MailboxPolicies, MailboxPolicy};
use overview::Overview;

/// Mailboxes and their messages.
///
/// Every name is a mailbox. A mailbox without messages is empty, not unknown. A message has one copy per mailbox, and it
/// exists for as long as one of its copies does. Limits, retention, read marks, flags and tags apply to copies. All methods may
/// be called at the same time from any number of tasks. A method that fails has changed nothing.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Adds a message to the mailboxes of all its copies, or to none.
    ///
    /// When this returns, the message is as safe as the backend makes it, and may be acknowledged to the sender. Copies
    /// get ids above every id that their mailbox ever had (see [`MessageId`]). Then the limits are enforced: first those
    /// of the mailboxes, which evict the lowest ids; then the size limit, which evicts the oldest messages of all
    /// mailboxes in the order of [`Store::expire`]. The evicted messages are in [`Appended::evicted`]; they can include
    /// copies that were just added.
    async fn append(&self, message: NewMessage) -> Result<Appended>;

    /// Adds messages like [`Store::append`], in this order: each gets higher ids than those before it. Returns the result of
    /// each. It is faster than one call after the other. Other changes can wait meanwhile, so callers add many messages in
    /// several calls.
    async fn append_in_order(&self, messages: Vec<NewMessage>) -> Vec<Result<Appended>> {
        // Stores with one writer make changes in the order of the calls.
        join_all(messages.into_iter().map(|message| self.append(message))).await
    }

    /// Returns a number that changes whenever the listing of the mailbox changes. It never returns to an earlier value,
    /// except for zero, the version of every empty mailbox.
    async fn version(&self, mailbox: &MailboxName) -> Result<Version>;

    /// Returns the messages of a page of a mailbox, ascending by id. The cost depends only on the size of the result.
    async fn list(&self, mailbox: &MailboxName, page: Page) -> Result<Listing>;

    /// Returns the summary of a message without reading its source.
    async fn find(&self, mailbox: &MailboxName, selector: MessageSelector) -> Result<Option<Summary>>;

    /// Returns the source of a message.
    async fn source(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>>;

    /// Returns the sources of copies, in their order. It is faster than [`Store::source`] for each, and does not use caches.
    async fn sources(&self, copies: Vec<CopyKey>) -> Result<Vec<Option<Source>>> {
        let mut sources = Vec::with_capacity(copies.len());
        for CopyKey { mailbox, id } in copies {
            sources.push(self.source(&mailbox, id).await?);
        }
        Ok(sources)
    }

    /// Returns the copies of a mailbox with ids above `after`, ascending by id and at most `limit`, without their texts, and
    /// the numbers of the mailbox. It costs much less than [`Store::list`]. `limit` can be zero.
    async fn index(&self, mailbox: &MailboxName, after: MessageId, limit: usize) -> Result<MailboxIndex>;

    /// Returns a number that identifies the numbers of copies in this store: the UIDVALIDITY of IMAP. It is not zero, stays
    /// the same for the lifetime of the store, and is different after all data was deleted.
    async fn uid_validity(&self) -> Result<u32>;

    /// Returns the messages of a page, ascending by id, each with all of its copies. With a project, returns the messages
    /// that have copies in mailboxes of the project, each with these copies only. The limit counts messages. In `before`
    /// and `after` the id of a copy stands for that of its message. The cost depends only on the size of the result.
    async fn messages(&self, project: Option<&Project>, page: Page) -> Result<MessageListing>;

    /// Returns a message with all of its copies.
    async fn find_message(&self, selector: MessageSelector) -> Result<Option<Message>>;

    /// Returns a number that changes whenever any mailbox changes. It never returns to an earlier value.
    async fn store_version(&self) -> Result<Version>;

    /// Changes the marks of copies. Returns the outcomes in the order of the updates. If it fails, no copy was changed. If a
    /// copy is in several updates, they are made in their order. Other changes wait meanwhile, so callers change many copies
    /// in several calls.
    ///
    /// An update that changes a mark gives the copy a MODSEQ above every one that the mailbox had, and its mailbox another
    /// version. Other updates change nothing.
    async fn update_copies(&self, updates: Vec<CopyUpdate>) -> Result<Vec<UpdateOutcome>>;

    /// Removes copies, all of them or none. Returns those that existed, ascending by id. Other changes wait
    /// meanwhile, so callers remove many copies in several calls.
    async fn remove_copies(&self, copies: Vec<CopyKey>) -> Result<Vec<Summary>>;

    /// Removes a message. Returns it if it existed.
    async fn remove(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Summary>> {
        let copy = CopyKey { mailbox: mailbox.clone(), id };
        self.remove_copies(vec![copy]).await.map(|mut removed| removed.pop())
    }

    /// Removes the messages of a mailbox up to the id `last`, lowest first and at most `limit`. Returns them in
    /// ascending order. A large mailbox is emptied in several calls, so that other changes can run in between.
    async fn purge(&self, mailbox: &MailboxName, last: MessageId, limit: usize) -> Result<Vec<Summary>>;

    /// Removes messages received before `deadline`, oldest first and at most `limit`. Returns them. The cost depends
    /// only on the number of removed messages. The order is by time of receipt, then by id: if the clock was set back,
    /// the received time counts.
    async fn expire(&self, deadline: Timestamp, limit: usize) -> Result<Vec<Summary>>;

    /// Returns the oldest copies of a range of all mailboxes in the order of [`Store::expire`], at most `limit`. The copies
    /// of a message are adjacent; the first and the last message may have more of them. The cost depends only on the size
    /// of the result.
    async fn oldest(&self, range: AgeRange, limit: usize) -> Result<Vec<Summary>>;

    /// Returns a page of the mailboxes that are not empty, ascending by the bytes of their names, with their contents
    /// in one snapshot. The cost depends only on the size of the result.
    async fn mailboxes(&self, page: MailboxPage) -> Result<Vec<MailboxState>>;

    /// Returns the highest id that any message ever had, even if it was removed. Later messages get higher ids. Zero if
    /// there never was a message.
    async fn last_id(&self) -> Result<MessageId>;

    /// Returns the current usage. Cheap enough to be called every few seconds. Fails while messages cannot be stored.
    async fn usage(&self) -> Result<Usage>;

    /// Returns the number of messages, the number of unread ones, and the tags, in one snapshot: of all messages, or of
    /// those that [`Store::messages`] returns for a project. The cost can depend on the number of mailboxes, of tagged
    /// messages and of messages with several copies, all of them in the project, so callers cache the result by
    /// [`Store::store_version`].
    async fn overview(&self, project: Option<&Project>) -> Result<Overview>;

    /// Returns the first `limit` projects after `after` that have messages, ascending by name. The cost depends only on
    /// the number of their mailboxes.
    async fn projects(&self, after: Option<&Project>, limit: usize) -> Result<Vec<ProjectState>>;

    /// Returns the feed of a store that other processes change too. Only the first call returns it. `None` if all
    /// changes are made by this process.
    fn feed(&self) -> Option<Feed> {
        None
    }
}

/// A message to be stored.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// The time of receipt.
    pub received: Timestamp,
    /// Sender, recipients and subject.
    pub headline: Headline,
    /// The message as received. Stored once, however many copies it has.
    pub body: Bytes,
    /// One copy per mailbox. At least one, and no mailbox twice.
    pub copies: Vec<NewCopy>,
}

/// One mailbox's copy of a new message.
#[derive(Clone, Debug)]
pub struct NewCopy {
    /// The mailbox.
    pub mailbox: MailboxName,
    /// Whether this copy is marked as read.
    pub seen: bool,
    /// The flags of this copy.
    pub flags: Flags,
    /// The tags of this copy.
    pub tags: Tags,
    /// The envelope and a preview.
    pub details: Details,
    /// The trace lines that precede the body in this mailbox. `None` for those of [`Details::trace`].
    pub trace: Option<Bytes>,
}

impl NewCopy {
    /// Returns the trace lines of a message that was received at `received`.
    pub fn trace(&self, received: Timestamp) -> Bytes {
        self.trace.clone().unwrap_or_else(|| self.details.trace(&self.mailbox, received))
    }
}

/// The place of a copy in the order of [`Store::expire`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// The time of receipt.
    pub received: Timestamp,
    /// The id of the copy.
    pub id: MessageId,
}

impl From<&Summary> for Age {
    fn from(summary: &Summary) -> Self {
        Self { received: summary.received, id: summary.id }
    }
}

/// A range of copies in the order of [`Store::expire`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgeRange {
    /// Only copies that follow this one, which need not exist.
    pub after: Option<Age>,
    /// Only copies that were received before this time.
    pub before: Option<Timestamp>,
}

impl AgeRange {
    /// Returns time and id of `after` as values in a database, or values before all others.
    fn after_values(&self) -> (i64, i64) {
        let values = |after: Age| (sql_values::time_to_nanos(after.received), sql_values::id_to_i64(after.id));
        self.after.map_or((i64::MIN, -1), values)
    }
}

/// Identifies a copy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CopyKey {
    /// The mailbox.
    pub mailbox: MailboxName,
    /// The id of the copy.
    pub id: MessageId,
}

impl From<&Summary> for CopyKey {
    fn from(summary: &Summary) -> Self {
        Self { mailbox: summary.mailbox.clone(), id: summary.id }
    }
}

/// The result of an append.
#[derive(Clone, Debug, Default)]
pub struct Appended {
    /// The copies that were added, in the order of [`NewMessage::copies`].
    pub stored: Vec<Summary>,
    /// The messages that were evicted by the limits.
    pub evicted: Vec<Summary>,
}

/// See [`Store::version`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Version(pub u64);

/// A range of a listing: ids between `after` and `before`, both exclusive. They are the ids of copies, or of messages in
/// [`Store::messages`]. `limit` selects the first ones if `after` is given, otherwise the last ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Page {
    /// The maximum number of messages.
    pub limit: Option<usize>,
    /// Only ids below this one.
    pub before: Option<MessageId>,
    /// Only ids above this one.
    pub after: Option<MessageId>,
}

impl Page {
    /// The whole mailbox.
    pub const ALL: Self = Self { limit: None, before: None, after: None };
}

/// The messages of a mailbox, and its version.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The version of the mailbox at the moment of the query.
    pub version: Version,
    /// Ascending by id.
    pub messages: Vec<Summary>,
}

/// The copies of a mailbox without their texts, in one snapshot with the numbers of the mailbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailboxIndex {
    /// The version of the mailbox.
    pub version: Version,
    /// The lowest number that the next copy can get. Above every number that the mailbox ever had, also if it is empty.
    pub next_number: u32,
    /// At least the MODSEQ of every copy that the mailbox ever had, and at least 1. Later changes get a higher MODSEQ.
    pub highest_modseq: u64,
    /// Ascending by id.
    pub entries: Vec<IndexEntry>,
}

/// A copy in a [`MailboxIndex`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// The id of the copy.
    pub id: MessageId,
    /// The number of the copy. See [`Summary::number`].
    pub number: u32,
    /// The time of receipt.
    pub received: Timestamp,
    /// The length of the source in bytes.
    pub size: u64,
    /// The marks.
    pub marks: Marks,
}

/// Messages of all mailboxes or of a project, and the version of the store.
#[derive(Clone, Debug, Default)]
pub struct MessageListing {
    /// The version of the store at the moment of the query, or an earlier one.
    pub version: Version,
    /// Ascending by id.
    pub messages: Vec<Message>,
}

/// A range of the list of mailboxes: the first `limit` names after `after` that start with `prefix`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MailboxPage {
    /// The start of the names, compared byte by byte. Empty for all.
    pub prefix: String,
    /// Only names after this one, which need not exist. Empty for all.
    pub after: String,
    /// The maximum number of mailboxes.
    pub limit: usize,
}

impl MailboxPage {
    /// All mailboxes.
    pub const ALL: Self = Self { prefix: String::new(), after: String::new(), limit: usize::MAX };

    /// Returns the name at which the page starts. Names with the same prefix are adjacent, and the prefix itself is the
    /// first of them.
    fn start(&self) -> &str {
        self.prefix.as_str().max(&self.after)
    }
}

/// The contents of a mailbox that is not empty, as numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxState {
    /// The name.
    pub name: MailboxName,
    /// The number of messages.
    pub messages: u64,
    /// The number of messages that are not marked as read.
    pub unseen: u64,
    /// The sum of the sizes of its messages. A body that is shared with another mailbox counts fully.
    pub bytes: u64,
    /// The message with the highest id.
    pub newest: Newest,
}

/// The contents of a project that has messages, as numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectState {
    /// The name.
    pub name: Project,
    /// The number of copies in its mailboxes.
    pub copies: u64,
    /// The number of copies that are not marked as read.
    pub unseen: u64,
}

/// The newest message of a mailbox, which [`MessageSelector::Latest`] selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newest {
    /// The id.
    pub id: MessageId,
    /// The time of receipt.
    pub received: Timestamp,
}

/// Selects a message of a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageSelector {
    /// The message with this id.
    Id(MessageId),
    /// The message with the highest id.
    Latest,
}

/// The contents of a store, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The number of messages. A message in several mailboxes is counted once.
    pub messages: u64,
    /// The number of copies: messages, counted once per mailbox.
    pub copies: u64,
    /// The number of mailboxes that are not empty.
    pub mailboxes: u64,
    /// The bytes of message sources. A body that several mailboxes share is counted once.
    pub bytes: u64,
}

/// The result of a store operation. An error is never caused by the peer: a missing message is a normal result.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a store operation failed. The text is for the log; peers get a general sentence.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no space: the disk is full, or a quota is reached. The peer may retry after the operator has freed
    /// space.
    #[error("no space left in the store: {0}")]
    NoSpace(String),
    /// The store cannot be reached or does not respond. The peer may retry.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// The stored data is damaged, or the program has a bug.
    #[error("store broken: {0}")]
    Broken(String),
}

/// Returns the error of a change that the writer of a store does not make any more.
fn writer_stopped() -> StoreError {
    StoreError::Unavailable("the writer has stopped".to_owned())
}

/// Conversions of ids, counts and times to the signed 64-bit integers of a database.
pub mod sql_values {
    use jiff::Timestamp;
    use restante_mail::message::MessageId;

    /// Converts a number. Databases have signed integers only; larger numbers become the maximum, which no stored
    /// number reaches.
    pub fn to_i64(number: impl TryInto<i64>) -> i64 {
        number.try_into().unwrap_or(i64::MAX)
    }

    /// Converts an id.
    pub fn id_to_i64(id: MessageId) -> i64 {
        to_i64(id.number())
    }

    /// Converts a time to Unix nanoseconds. Times after the year 2262 do not fit and become the latest time that does.
    pub fn time_to_nanos(time: Timestamp) -> i64 {
        i64::try_from(time.as_nanosecond()).unwrap_or(if time < Timestamp::UNIX_EPOCH { i64::MIN } else { i64::MAX })
    }

    /// Converts Unix nanoseconds to a time.
    pub fn nanos_to_time(nanoseconds: i64) -> Timestamp {
        Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}
