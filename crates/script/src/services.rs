//! The services that scripts can use. The server provides real ones, script tests provide fakes.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use restante_http_client::HttpService;
use restante_mail::message::{Message, MessageId, Summary};
use restante_mail::named_enum;
use restante_mail::naming::MailboxName;

use crate::commands::Commands;

/// The services, shared by all states of a script.
#[derive(Clone)]
pub(crate) struct Services {
    /// HTTP client of the module `http`.
    pub(crate) http: Arc<dyn HttpService>,
    /// Stored messages, for `restante.store`, `restante.release` and the contents of metadata objects.
    pub(crate) mail: Arc<dyn MailAccess>,
    /// Log of `print` and the module `logger`.
    pub(crate) log: Arc<dyn Log>,
    /// Clock of `restante.sleep`.
    pub(crate) clock: Arc<dyn Clock>,
    /// Commands of `os.execute`.
    pub(crate) commands: Arc<Commands>,
}

/// Access to stored messages, for threads that may block. Errors are sentences for the log.
pub(crate) trait MailAccess: Send + Sync {
    /// Converts a name or an address to a mailbox name.
    fn mailbox(&self, text: &str) -> Result<MailboxName, String>;
    /// Lists at most `limit` messages after the given id, oldest first.
    fn list(
        &self,
        mailbox: &MailboxName,
        after: Option<MessageId>,
        limit: usize,
        timeout: Duration,
    ) -> Result<Vec<Summary>, String>;
    /// Returns the summary of a message, if it exists.
    fn find(&self, mailbox: &MailboxName, id: MessageId, timeout: Duration) -> Result<Option<Summary>, String>;
    /// Returns the summary of the newest message, if there is one.
    fn latest(&self, mailbox: &MailboxName, timeout: Duration) -> Result<Option<Summary>, String>;
    /// Returns the source of a message, if it exists.
    fn source(&self, mailbox: &MailboxName, id: MessageId, timeout: Duration) -> Result<Option<Bytes>, String>;
    /// Deletes a message. Returns false if it does not exist.
    fn delete(&self, mailbox: &MailboxName, id: MessageId, timeout: Duration) -> Result<bool, String>;
    /// Adds a message to the queue of the relay. Returns the id of the entry.
    fn release(
        &self,
        mailbox: &MailboxName,
        id: MessageId,
        release: Release,
        timeout: Duration,
    ) -> Result<String, String>;
}

/// The error if a message that is to be released does not exist.
pub(crate) const NO_SUCH_MESSAGE: &str = "there is no such message";

/// Where a message is sent by [`Releaser::release`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// The name of the target of the relay. May be left out if there is only one.
    pub target: Option<String>,
    /// The recipients. Empty for the recipients of the envelope.
    pub recipients: Vec<String>,
}

/// The relay, which the server provides to scripts.
#[async_trait]
pub trait Releaser: Send + Sync + 'static {
    /// Adds a message to the queue of the relay. Returns the id of the entry. The error is a sentence for the script.
    async fn release(&self, message: Message, release: Release) -> Result<String, String>;
}

/// The log of scripts.
pub(crate) trait Log: Send + Sync {
    /// Returns whether lines of this level are logged.
    fn is_enabled(&self, level: Level) -> bool;
    /// Writes a line with fields in the given order.
    fn write(&self, level: Level, text: &str, fields: &[LogField]);
}

/// A field of a log line: its name and value.
pub(crate) type LogField = (String, serde_json::Value);

named_enum! {
    /// The level of a log line.
    pub(crate) enum Level {
        Debug = "debug",
        Info = "info",
        Warn = "warn",
        Error = "error",
    }
}

/// A clock.
pub(crate) trait Clock: Send + Sync {
    /// Blocks for the given duration.
    fn sleep(&self, duration: Duration);
}

/// The system clock.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn sleep(&self, duration: Duration) {
        thread::sleep(duration);
    }
}
