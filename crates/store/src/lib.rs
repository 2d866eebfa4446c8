//! Where mail is kept: the [`Store`] contract and its backends.
//!
//! A backend answers questions and changes state; it never calls upward. Whatever a change removed on the way (cap,
//! bound, purge) is returned, and the caller tells the world. Every backend passes
//! the suite in `conformance.rs`.

#[cfg(test)]
mod conformance;
pub mod disk;
pub mod feed;
pub mod memory;
pub mod postgres;

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use jiff::Timestamp;
use restante_mail::message::{Headline, MessageId, Source, Summary};
use restante_mail::naming::MailboxName;

use feed::Feed;

/// Mailboxes and the messages in them.
///
/// Every name is a mailbox; one that holds nothing is empty, not unknown. All methods may be called at the same time
/// from any number of tasks. A method that fails changed nothing.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Adds a message to all the mailboxes of its copies, or to none.
    ///
    /// When this returns, the message is as safe as the backend makes it: whoever sent it may be told so. Copies get
    /// ids above every id that their mailbox ever gave (see [`MessageId`]). The cap per mailbox and the bound of the
    /// whole store hold again when this returns; what had to go for that is in [`Appended::evicted`], and can include
    /// a copy that was just added. The cap comes first and lets the lowest ids of a mailbox go; the bound then lets the
    /// oldest go in the order of [`Store::expire`], of all mailboxes, whether they just got mail or not.
    async fn append(&self, message: NewMessage) -> Result<Appended>;

    /// A number that changes whenever a listing of the mailbox would change, and never returns to an earlier value
    /// except zero, which is every empty mailbox's.
    async fn version(&self, mailbox: &MailboxName) -> Result<Version>;

    /// The messages of a mailbox, ascending by id, restricted to a page. Costs what it returns.
    async fn list(&self, mailbox: &MailboxName, page: Page) -> Result<Listing>;

    /// One message's summary, without touching its source.
    async fn find(&self, mailbox: &MailboxName, which: MessageSelector) -> Result<Option<Summary>>;

    /// One message's source.
    async fn source(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Source>>;

    /// Marks a message as read or unread; false when there is no such message.
    async fn set_seen(&self, mailbox: &MailboxName, id: MessageId, seen: bool) -> Result<bool>;

    /// Removes a message, and returns it when it was there.
    async fn remove(&self, mailbox: &MailboxName, id: MessageId) -> Result<Option<Summary>>;

    /// Removes the messages of a mailbox up to the id `last`, lowest first and at most `limit` of them, and returns them in
    /// ascending order. A large mailbox is emptied in several steps, so that others get their turn in between.
    async fn purge(&self, mailbox: &MailboxName, last: MessageId, limit: usize) -> Result<Vec<Summary>>;

    /// Removes messages received before `deadline`, oldest first and at most `limit` of them, and returns them. Costs
    /// what it removes, whatever else the store holds. Age is the time of receipt and then the id: a message that came
    /// after the clock was put back goes by what the clock said.
    async fn expire(&self, deadline: Timestamp, limit: usize) -> Result<Vec<Summary>>;

    /// The mailboxes that hold something, ascending by the bytes of their names, restricted to a page: each with what it
    /// holds, all at one moment. Costs what it returns, however many mailboxes there are and whatever is in them.
    async fn mailboxes(&self, page: MailboxPage) -> Result<Vec<MailboxState>>;

    /// The highest id that was ever given to a message, in whatever mailbox, whether it is still there or not; zero in a store
    /// that never held any. Whatever comes later has a higher one.
    async fn last_id(&self) -> Result<MessageId>;

    /// How much the store holds now; cheap enough to ask every few seconds.
    async fn usage(&self) -> Result<Usage>;

    /// What happens in the store, when others change it too; for the first who asks. None when all its changes are made here.
    fn feed(&self) -> Option<Feed> {
        None
    }
}

/// The bounds of a store; zero is no bound.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The cap per mailbox: with one more, the one with the lowest id goes.
    pub messages_per_mailbox: usize,
    /// The bound on the whole store, in the bytes of [`Usage::bytes`]: with more, the oldest message of all goes.
    pub bytes: u64,
}

/// A message on its way in.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// When it was received.
    pub received: Timestamp,
    /// Who wrote to whom about what.
    pub headline: Headline,
    /// The mail as received; held once, however many mailboxes refer to it.
    pub body: Bytes,
    /// Where it goes: at least one, no mailbox twice.
    pub copies: Vec<NewCopy>,
}

/// One mailbox's copy of a new message.
#[derive(Clone, Debug)]
pub struct NewCopy {
    /// The mailbox.
    pub mailbox: MailboxName,
    /// The lines that stand in front of the body in this mailbox.
    pub trace: Bytes,
}

/// What an append did.
#[derive(Clone, Debug, Default)]
pub struct Appended {
    /// The copies that were added, in the order of [`NewMessage::copies`].
    pub stored: Vec<Summary>,
    /// What went to keep the cap and the bound.
    pub evicted: Vec<Summary>,
}

/// See [`Store::version`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Version(pub u64);

/// A part of a listing: ids between `after` and `before`, both exclusive. With a `limit`, the first ones when `after` is given,
/// otherwise the last ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Page {
    /// At most so many.
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

/// A listing, and the version it was taken at.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The mailbox's version at the moment of the listing.
    pub version: Version,
    /// Ascending by id.
    pub messages: Vec<Summary>,
}

/// A part of the list of mailboxes: the first `limit` of those that come behind `after` and begin with `prefix`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MailboxPage {
    /// How the names begin, character for character; empty for all.
    pub prefix: String,
    /// Only names behind this one, which need not be a mailbox; empty for all.
    pub after: String,
    /// At most so many.
    pub limit: usize,
}

impl MailboxPage {
    /// All mailboxes.
    pub const ALL: Self = Self { prefix: String::new(), after: String::new(), limit: usize::MAX };

    /// Where the page begins. Names of one prefix stand together, the prefix itself before all of them.
    fn start(&self) -> &str {
        self.prefix.as_str().max(&self.after)
    }
}

/// A mailbox that holds something, in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailboxState {
    /// Its name.
    pub name: MailboxName,
    /// The messages in it.
    pub messages: u64,
    /// Those of them that are not marked as read.
    pub unseen: u64,
    /// The sum of their sizes, also of those that share their bytes with another mailbox.
    pub bytes: u64,
    /// The one with the highest id.
    pub newest: Newest,
}

/// The most recent message of a mailbox, which [`Which::Latest`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newest {
    /// Its id.
    pub id: MessageId,
    /// When it was received.
    pub received: Timestamp,
}

/// Which message of a mailbox is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageSelector {
    /// The one with this id.
    Id(MessageId),
    /// The most recent one.
    Latest,
}

/// How much a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Messages, counted once per mailbox.
    pub messages: u64,
    /// Mailboxes that are not empty.
    pub mailboxes: u64,
    /// Bytes of message source, a body in several mailboxes counted once.
    pub bytes: u64,
}

/// The result of asking a store. None of its errors is the peer's fault: a missing message is an answer, not an error.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a store could not do its work. The text is for the log; peers get a plain sentence.
#[derive(Clone, Debug)]
pub enum StoreError {
    /// There is no room: the disk is full or a quota is reached. The operator can help, and the peer may try again.
    NoSpace(String),
    /// It cannot be reached or does not answer now. The peer may try again.
    Unavailable(String),
    /// What it holds is damaged, or we made a mistake.
    Broken(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSpace(cause) => write!(f, "no space left in the store: {cause}"),
            Self::Unavailable(cause) => write!(f, "store unavailable: {cause}"),
            Self::Broken(cause) => write!(f, "store broken: {cause}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// How ids, counts and times are numbers in a database.
pub mod sql_values {
    use jiff::Timestamp;
    use restante_mail::message::MessageId;

    /// A number for the database, which has only signed ones. What does not fit is more than was ever stored.
    pub fn to_i64(number: impl TryInto<i64>) -> i64 {
        number.try_into().unwrap_or(i64::MAX)
    }

    /// An id for the database.
    pub fn id_to_i64(id: MessageId) -> i64 {
        to_i64(id.number())
    }

    /// A time as it is stored. Times beyond the year 2262 do not fit and are moved there.
    pub fn time_to_nanos(time: Timestamp) -> i64 {
        i64::try_from(time.as_nanosecond()).unwrap_or(if time < Timestamp::UNIX_EPOCH { i64::MIN } else { i64::MAX })
    }

    /// The time that was stored.
    pub fn nanos_to_time(nanoseconds: i64) -> Timestamp {
        Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}
