//! A fake of the stored messages for tests. One mailbox always fails.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use restante_mail::message::{MessageId, Summary};
use restante_mail::naming::{MailboxName, Naming};

use crate::services::{MailAccess, NO_SUCH_MESSAGE, Release};

/// The mailbox that always fails.
const BROKEN_MAILBOX: &str = "broken";

/// Messages with their sources, oldest first.
#[derive(Default)]
pub(crate) struct FakeMail {
    messages: Mutex<Vec<(Summary, Bytes)>>,
    fetch_count: AtomicUsize,
}

impl FakeMail {
    pub(crate) fn with_messages(messages: impl IntoIterator<Item = (Summary, Bytes)>) -> Self {
        Self { messages: Mutex::new(messages.into_iter().collect()), fetch_count: AtomicUsize::new(0) }
    }

    /// Returns how often a source was requested.
    pub(crate) fn fetch_count(&self) -> usize {
        self.fetch_count.load(Ordering::Relaxed)
    }

    fn messages(&self, mailbox: &MailboxName) -> Result<MutexGuard<'_, Vec<(Summary, Bytes)>>, String> {
        if mailbox.as_str() == BROKEN_MAILBOX {
            return Err("the store does not respond".to_owned());
        }
        Ok(self.messages.lock())
    }
}

impl MailAccess for FakeMail {
    fn mailbox(&self, text: &str) -> Result<MailboxName, String> {
        Naming::Local.parse_mailbox(text).map_err(|error| error.to_string())
    }

    fn list(
        &self,
        mailbox: &MailboxName,
        after: Option<MessageId>,
        limit: usize,
        _: Duration,
    ) -> Result<Vec<Summary>, String> {
        let messages = self.messages(mailbox)?;
        let summaries = messages.iter().map(|(summary, _)| summary).filter(|summary| summary.mailbox == *mailbox);
        Ok(summaries.filter(|summary| Some(summary.id) > after).take(limit).cloned().collect())
    }

    fn find(&self, mailbox: &MailboxName, id: MessageId, timeout: Duration) -> Result<Option<Summary>, String> {
        let summaries = self.list(mailbox, None, usize::MAX, timeout)?;
        Ok(summaries.into_iter().find(|summary| summary.id == id))
    }

    fn latest(&self, mailbox: &MailboxName, timeout: Duration) -> Result<Option<Summary>, String> {
        Ok(self.list(mailbox, None, usize::MAX, timeout)?.pop())
    }

    fn source(&self, mailbox: &MailboxName, id: MessageId, timeout: Duration) -> Result<Option<Bytes>, String> {
        self.fetch_count.fetch_add(1, Ordering::Relaxed);
        assert!(!timeout.is_zero(), "the timeout is the time that the call has left");
        let messages = self.messages(mailbox)?;
        let found = messages.iter().find(|(summary, _)| (&summary.mailbox, summary.id) == (mailbox, id));
        Ok(found.map(|(_, source)| source.clone()))
    }

    fn delete(&self, mailbox: &MailboxName, id: MessageId, _: Duration) -> Result<bool, String> {
        let mut messages = self.messages(mailbox)?;
        let count = messages.len();
        messages.retain(|(summary, _)| (&summary.mailbox, summary.id) != (mailbox, id));
        Ok(messages.len() < count)
    }

    fn release(
        &self,
        mailbox: &MailboxName,
        id: MessageId,
        Release { target, recipients }: Release,
        timeout: Duration,
    ) -> Result<String, String> {
        self.find(mailbox, id, timeout)?.ok_or(NO_SUCH_MESSAGE)?;
        let target = target.unwrap_or_else(|| "default".to_owned());
        Ok(format!("{target}: {}", recipients.join(" ")))
    }
}
