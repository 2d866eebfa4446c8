//! The IMAP server session (RFC 3501, RFC 9051) without I/O.
//!
//! The driver passes its input to [`Session::step`], performs the returned [`Action`], and writes the queued replies
//! before it waits for the client. A session is in one of these states:
//!
//! | state            | waits for                                           | next state                                    |
//! |------------------|-----------------------------------------------------|-----------------------------------------------|
//! | `Ready`          | a command                                           | the one of the command, or stays              |
//! | `Authenticating` | a line of AUTHENTICATE                              | → LoggingIn, or Ready if cancelled or invalid |
//! | `LoggingIn`      | [`Session::logged_in`]                              | → Ready, or LoginFailed after the description of a failure |
//! | `LoginFailed`    | a line that answers it                              | → Ready                                       |
//! | `Working`        | [`Session::completed`], or the replies to be written | → Ready at the end of the command             |
//! | `Idling`         | DONE, or changes of the mailbox                     | → Ready                                       |
//! | `StartingTls`    | [`Session::tls_started`]                            | → Ready                                       |
//! | `LoggingOut`     | the last reply to be written                        | → Closed                                      |
//! | `Closed`         | nothing                                             | stays                                         |
//!
//! A command that needs data is a `Task`. It asks the driver for one [`Operation`] after the other and continues with
//! their results. The driver reports changes of the selected mailbox with [`Session::changed`] at any time; the session
//! announces them when the protocol allows it.
//!
//! A line of an HTTP request ends the session. Before the login a TLS handshake and a line that is too long end it too.
//! So commands that a web page puts into the body of a request are never executed.

pub mod command;
mod commands;
mod date;
mod fetch;
mod find;
mod flags;
mod keywords;
mod list;
mod literal;
mod mailbox_tasks;
mod mask;
mod message_tasks;
mod parse;
mod reader;
mod reply;
mod search;
mod selected;
mod sequence_set;
mod session;
mod sort;
mod subject;
mod task;
mod thread;
mod transitions;
mod utf7;
mod view;
mod write;

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use restante_mail::message::{Flags, Marks, MessageId};
use restante_mail::tags::Tags;

use crate::sasl::Credentials;
use command::{Append, StatusItem};
pub use list::{OTHER_USERS, SEPARATOR};
pub use session::Session;

/// The settings of all sessions of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The name of this server.
    pub domain: String,
    /// Whether STARTTLS is offered while TLS is not active.
    pub starttls: bool,
    /// The number of bad commands that ends the session. 0 means no limit.
    pub max_bad_commands: usize,
    /// The maximum size of a message in APPEND.
    pub max_message_bytes: usize,
}

/// What the driver must do next. After it has passed the result of an action, it calls [`Session::step`] again with the
/// remaining input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write the replies, then read more input and append it to the input that was not consumed.
    Read,
    /// Write the replies, because there are many, and continue with the remaining input.
    Write,
    /// Reserve memory for the message of APPEND, of this many octets. Pass the result to [`Session::literal_reserved`].
    ReserveLiteral(usize),
    /// Check the login. Pass the result to [`Session::logged_in`].
    LogIn(Credentials),
    /// Perform the operation. Pass the result to [`Session::completed`].
    Perform(Operation),
    /// Write the replies, discard all input that was read so far, perform the handshake as server, then call
    /// [`Session::tls_started`].
    StartTls,
    /// Write the replies and close the connection. The client has sent LOGOUT.
    Quit,
    /// Write the replies and close the connection. The client may still be sending.
    Close,
}

/// An operation on mailboxes or messages. Names of mailboxes are those of the client, in Unicode. Messages are those of
/// the selected mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// List the mailboxes: [`Outcome::Folders`].
    List,
    /// Get the numbers of a mailbox: [`Outcome::Status`].
    Status {
        /// The mailbox.
        mailbox: String,
        /// The requested values. The result may contain more.
        items: Vec<StatusItem>,
    },
    /// Open a mailbox and report its changes from now on: [`Outcome::Opened`]. It becomes the selected mailbox.
    Open {
        /// The mailbox.
        mailbox: String,
        /// Whether the client opens it to read only.
        is_read_only: bool,
    },
    /// Create a mailbox: [`Outcome::Done`].
    Create(String),
    /// Delete a mailbox: [`Outcome::Done`].
    Delete(String),
    /// Rename a mailbox: [`Outcome::Done`].
    Rename {
        /// The mailbox.
        from: String,
        /// Its new name.
        to: String,
    },
    /// Subscribe to a mailbox, or end the subscription: [`Outcome::Done`].
    Subscribe {
        /// The mailbox.
        mailbox: String,
        /// Whether it is subscribed from now on.
        is_subscribed: bool,
    },
    /// Get the sources of messages: [`Outcome::Sources`].
    Sources {
        /// The messages.
        ids: Vec<MessageId>,
        /// The sum of their sizes.
        bytes: u64,
    },
    /// Get what is known about messages besides their sources: [`Outcome::Properties`].
    Properties(Vec<MessageId>),
    /// Change the flags of messages: [`Outcome::Updated`].
    Update(Vec<Update>),
    /// Delete messages that are still marked as deleted: [`Outcome::Removed`].
    Remove(Vec<MessageId>),
    /// Copy or move messages to another mailbox, all of them or none: [`Outcome::Copied`]. They are a part of those of the
    /// command.
    Copy {
        /// The messages.
        ids: Vec<MessageId>,
        /// The sum of their sizes.
        bytes: u64,
        /// The other mailbox.
        mailbox: String,
        /// Whether the messages are deleted after they were copied.
        is_move: bool,
        /// The number of messages of the command. It must not exceed the limit of the other mailbox.
        all_messages: u64,
        /// The sum of the sizes of all messages of the command. It must not exceed the limit of the other mailbox.
        all_bytes: u64,
    },
    /// Delete messages that the command has copied to another mailbox: [`Outcome::Done`].
    RemoveCopies {
        /// The copies.
        ids: Vec<MessageId>,
        /// The other mailbox.
        mailbox: String,
    },
    /// Store a message: [`Outcome::Appended`].
    Append {
        /// The message. Its keywords are tags.
        append: Append,
        /// The flags.
        marks: NewMarks,
    },
    /// Get the use and the limits of a mailbox: [`Outcome::Quota`].
    Quota(String),
}

/// The flags of a message that is appended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewMarks {
    /// Whether it is seen.
    pub seen: bool,
    /// The other system flags.
    pub flags: Flags,
    /// The keywords.
    pub tags: Tags,
}

/// A change of the flags of a message. `None` keeps a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The message.
    pub id: MessageId,
    /// Whether it is seen.
    pub seen: Option<bool>,
    /// The other system flags.
    pub flags: Option<Flags>,
    /// The keywords.
    pub tags: Option<Tags>,
    /// The MODSEQ that the message must still have.
    pub if_modseq: u64,
}

/// The result of an [`Operation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The operation is done.
    Done,
    /// The mailboxes that the client may see.
    Folders(Vec<Folder>),
    /// The numbers of a mailbox.
    Status(MailboxStatus),
    /// The selected mailbox.
    Opened(Mailbox),
    /// The sources, in the order of the request. `None` for messages that no longer exist.
    Sources(Vec<Option<Bytes>>),
    /// The properties, in the order of the request. `None` for messages that no longer exist.
    Properties(Vec<Option<Properties>>),
    /// The results of updates, in their order.
    Updated(Vec<Updated>),
    /// Those of the messages that do not exist any more: the deleted ones, and the missing ones.
    Removed(Vec<MessageId>),
    /// The copies.
    Copied {
        /// The UIDVALIDITY of the other mailbox.
        uid_validity: u32,
        /// The UIDs of the copies, in the order of the request. `None` for messages that no longer exist.
        uids: Vec<Option<u32>>,
        /// The ids of the copies, without those that no longer exist.
        ids: Vec<MessageId>,
    },
    /// The stored message.
    Appended {
        /// The UIDVALIDITY of the mailbox.
        uid_validity: u32,
        /// The UID of the message.
        uid: u32,
    },
    /// The use and the limits of a mailbox.
    Quota(Quota),
}

/// A mailbox in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folder {
    /// The name.
    pub name: String,
    /// Whether it can be selected. Otherwise there are only mailboxes below it.
    pub is_selectable: bool,
    /// Whether it is subscribed.
    pub is_subscribed: bool,
    /// Its special use, such as `\Sent` (RFC 6154).
    pub special_use: Option<&'static str>,
}

/// The numbers of a mailbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailboxStatus {
    /// The number of messages.
    pub messages: u64,
    /// The number of messages that are not seen.
    pub unseen: u64,
    /// The number of messages that are marked as deleted. Only valid if requested.
    pub deleted: u64,
    /// The number of messages that no session has listed. Only valid if requested.
    pub recent: u64,
    /// The sum of the sizes.
    pub bytes: u64,
    /// The UID of the next message.
    pub next_uid: u32,
    /// The UIDVALIDITY.
    pub uid_validity: u32,
    /// The highest MODSEQ.
    pub highest_modseq: u64,
    /// The identity of the mailbox (RFC 8474).
    pub mailbox_id: String,
}

/// An opened mailbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mailbox {
    /// The UIDVALIDITY.
    pub uid_validity: u32,
    /// Whether UIDs are valid after the session.
    pub has_sticky_uids: bool,
    /// Whether the client cannot change it.
    pub is_read_only: bool,
    /// The identity of the mailbox (RFC 8474).
    pub mailbox_id: String,
    /// The messages.
    pub listing: Listed,
}

/// Messages of the selected mailbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// The UID of the next message.
    pub next_uid: u32,
    /// The highest MODSEQ.
    pub highest_modseq: u64,
    /// The UID from which on messages are recent: no other session has listed them before.
    pub first_recent_uid: u32,
    /// Ascending by id. Sessions can share them.
    pub messages: Arc<Vec<ListedMessage>>,
}

/// A message of the selected mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedMessage {
    /// The id.
    pub id: MessageId,
    /// The UID. UIDs ascend with the ids.
    pub uid: u32,
    /// The time of receipt.
    pub received: Timestamp,
    /// The size in octets.
    pub size: u64,
    /// The flags.
    pub marks: Marks,
}

/// A change of the selected mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// New messages, with ids above all earlier ones.
    Added(Listed),
    /// The current flags of a message.
    Marked(MessageId, Marks),
    /// A message was deleted.
    Removed(MessageId),
    /// All messages, after changes were missed.
    Reloaded(Listed),
}

/// What is known about a message besides its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// The id of the message, of which this one is a copy.
    pub message: MessageId,
    /// The current flags.
    pub marks: Marks,
    /// The start of the text.
    pub preview: String,
}

/// The result of an [`Update`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Updated {
    /// The message has these flags now.
    Done(Marks),
    /// The message has another MODSEQ.
    Conflict,
    /// The message no longer exists.
    Missing,
}

/// The use of a mailbox and its limits (RFC 9208).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// The bytes of its messages.
    pub bytes: u64,
    /// The maximum number of bytes, if there is one.
    pub max_bytes: Option<u64>,
    /// The number of messages.
    pub messages: u64,
    /// The maximum number of messages, if there is one.
    pub max_messages: Option<u64>,
}

/// Why an operation or a login is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The user name or the proof is wrong.
    WrongCredentials,
    /// The login does not permit this.
    NotPermitted,
    /// There is no such mailbox.
    NoSuchMailbox,
    /// There is no such mailbox, but it can be created, and the message be stored then.
    TryCreate,
    /// The mailbox exists already.
    AlreadyExists,
    /// The mailbox has mailboxes below it.
    HasChildren,
    /// This is not possible, for this reason.
    Cannot(String),
    /// A limit would be exceeded, for this reason.
    Limit(String),
    /// The message is larger than the limit.
    TooLarge,
    /// The store is not available now.
    Unavailable,
}
