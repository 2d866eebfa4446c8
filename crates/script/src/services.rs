//! What scripts can use of the world around them. The server gives them the real thing, tests of scripts something made up.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use restante_http_client::HttpService;
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::MailboxName;

use crate::commands::Commands;

/// Shared by all states of a script.
#[derive(Clone)]
pub(crate) struct Services {
    /// The way out, for the module `http`.
    pub(crate) http: Arc<dyn HttpService>,
    /// The mail, for `restante.store` and what metadata can tell of a stored message.
    pub(crate) mail: Arc<dyn MailAccess>,
    /// Where `print` and the module `logger` write.
    pub(crate) log: Arc<dyn Log>,
    /// The time that passes, for `restante.sleep`.
    pub(crate) clock: Arc<dyn Clock>,
    /// The commands of `os.execute`.
    pub(crate) commands: Arc<Commands>,
}

/// The stored mail, for threads that may block. Errors are sentences for the log.
pub(crate) trait MailAccess: Send + Sync {
    /// The mailbox that is meant by a name or an address.
    fn mailbox(&self, text: &str) -> Result<MailboxName, String>;
    /// Newest last; at most `limit` of them, those after the given one.
    fn list(
        &self,
        mailbox: &MailboxName,
        after: Option<MessageId>,
        limit: usize,
        patience: Duration,
    ) -> Result<Vec<Summary>, String>;
    /// The record of one message; none when it is not there.
    fn find(&self, mailbox: &MailboxName, id: MessageId, patience: Duration) -> Result<Option<Summary>, String>;
    /// The record of the newest message; none when the mailbox is empty.
    fn latest(&self, mailbox: &MailboxName, patience: Duration) -> Result<Option<Summary>, String>;
    /// The whole source of a message; none when it is not there.
    fn source(&self, mailbox: &MailboxName, id: MessageId, patience: Duration) -> Result<Option<Bytes>, String>;
    /// Deletes a message; false when it is not there.
    fn delete(&self, mailbox: &MailboxName, id: MessageId, patience: Duration) -> Result<bool, String>;
}

/// Takes what scripts write to the log.
pub(crate) trait Log: Send + Sync {
    /// Whether entries of this level are written at all.
    fn is_enabled(&self, level: Level) -> bool;
    /// One entry: the text, and fields in their order.
    fn write(&self, level: Level, text: &str, fields: &[LogField]);
}

/// A field of an entry: its name, and what it holds.
pub(crate) type LogField = (String, serde_json::Value);

/// How important an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

/// Lets time pass.
pub(crate) trait Clock: Send + Sync {
    /// Waits for so long.
    fn sleep(&self, time: Duration);
}

/// The time of the real world.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn sleep(&self, time: Duration) {
        thread::sleep(time);
    }
}
