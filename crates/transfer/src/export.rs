//! From a store into an [`Output`], mailbox by mailbox and page by page, so that memory holds one page of summaries and
//! one message, whatever the store holds.

use std::io;

use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::naming::MailboxName;
use restante_store::{MailboxPage, Page, Store, StoreError};
use tokio::sync::watch;

use super::console::{Console, Progress};
use super::output::Output;

/// Summaries or mailboxes that are asked for at once.
const PAGE_SIZE: usize = 500;

/// What was exported.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ExportCounts {
    pub(super) mailboxes: u64,
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

/// Why an export ended before its end.
#[derive(Debug)]
pub(super) enum ExportError {
    /// Somebody asked for it.
    Interrupted,
    /// The mail cannot be read.
    Store(StoreError),
    /// The mail cannot be written.
    Output(io::Error),
}

impl From<StoreError> for ExportError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Exports these mailboxes, or all when there are none.
pub(super) async fn export(
    store: &dyn Store,
    mailboxes: &[MailboxName],
    output: &mut dyn Output,
    console: &mut Console,
    stop: &watch::Receiver<bool>,
) -> Result<ExportCounts, ExportError> {
    let total = if mailboxes.is_empty() { store.usage().await?.messages } else { 0 };
    let mut run = ExportRun { store, output, console, stop, total, exported: ExportCounts::default() };
    for mailbox in mailboxes {
        if !run.export_mailbox(mailbox).await? {
            run.console.report_problem(&format!("mailbox {mailbox} holds nothing"));
        }
    }
    let mut page = MailboxPage { limit: PAGE_SIZE, ..MailboxPage::ALL };
    while mailboxes.is_empty() {
        let found = store.mailboxes(page.clone()).await?;
        let Some(last) = found.last() else { break };
        last.name.as_str().clone_into(&mut page.after);
        for mailbox in &found {
            // Nobody asked for this one by name: when it is empty by now, its mail went in the normal course of things.
            run.export_mailbox(&mailbox.name).await?;
        }
    }
    run.output.finish()?;
    Ok(run.exported)
}

/// An export under way.
struct ExportRun<'a> {
    store: &'a dyn Store,
    output: &'a mut dyn Output,
    console: &'a mut Console,
    stop: &'a watch::Receiver<bool>,
    /// Messages that there were at the beginning; zero when nobody counted.
    total: u64,
    exported: ExportCounts,
}

impl ExportRun<'_> {
    /// Writes what a mailbox holds; false when there was nothing. A mailbox begins with the first message that can be
    /// read, so that one whose mail goes meanwhile leaves nothing behind.
    async fn export_mailbox(&mut self, mailbox: &MailboxName) -> Result<bool, ExportError> {
        let (mut after, mut begun, mut damaged) = (MessageId::ZERO, false, false);
        loop {
            let page = Page { limit: Some(PAGE_SIZE), after: Some(after), before: None };
            let messages = self.store.list(mailbox, page).await?.messages;
            let Some(last) = messages.last() else { return Ok(begun || damaged) };
            after = last.id;
            for message in &messages {
                if *self.stop.borrow() {
                    return Err(ExportError::Interrupted);
                }
                let source = match self.store.source(mailbox, message.id).await {
                    Ok(Some(source)) => source,
                    // Beside a running server a message can go between the listing and now.
                    Ok(None) => continue,
                    // One damaged message does not keep the others from being saved.
                    Err(StoreError::Broken(cause)) => {
                        damaged = true;
                        self.console.report_problem(&format!("message {} of mailbox {mailbox}: {cause}", message.id));
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                if !begun {
                    begun = true;
                    self.output.start_mailbox(mailbox)?;
                    self.exported.mailboxes += 1;
                }
                self.write_message(message, &source)?;
            }
        }
    }

    fn write_message(&mut self, message: &Summary, source: &Source) -> Result<(), ExportError> {
        self.output.write(message, source)?;
        self.exported.messages += 1;
        self.exported.bytes += source.len() as u64;
        let messages = self.exported.messages;
        self.console.show_progress(Progress { messages, done: messages, total: self.total });
        Ok(())
    }
}
