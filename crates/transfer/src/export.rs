//! Export from a store to an [`Output`], by mailbox and page. Memory use is limited to one page of summaries and one
//! message.

use std::io;

use restante_mail::message::{MessageId, Source, Summary};
use restante_mail::naming::MailboxName;
use restante_store::{MailboxPage, Page, Store, StoreError};
use tokio::sync::watch;

use super::console::{Console, Progress};
use super::output::Output;

/// The number of summaries or mailboxes per query.
const PAGE_SIZE: usize = 500;

/// The numbers of exported mailboxes, messages and bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ExportCounts {
    pub(super) mailboxes: u64,
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

/// The reason why an export ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExportError {
    /// The operator interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// Messages cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Messages cannot be written.
    #[error(transparent)]
    Output(#[from] io::Error),
}

/// Exports these mailboxes, or all if the list is empty.
pub(super) async fn export(
    store: &dyn Store,
    mailboxes: &[MailboxName],
    output: &mut dyn Output,
    console: &mut Console,
    stop: &watch::Receiver<bool>,
) -> Result<ExportCounts, ExportError> {
    let total = if mailboxes.is_empty() { store.usage().await?.copies } else { 0 };
    let mut run = ExportRun { store, output, console, stop, total, exported: ExportCounts::default() };
    for mailbox in mailboxes {
        if !run.export_mailbox(mailbox).await? {
            run.console.report_problem(&format!("mailbox {mailbox} is empty"));
        }
    }
    let mut page = MailboxPage { limit: PAGE_SIZE, ..MailboxPage::ALL };
    while mailboxes.is_empty() {
        let found = store.mailboxes(page.clone()).await?;
        let Some(last) = found.last() else { break };
        last.name.as_str().clone_into(&mut page.after);
        for mailbox in &found {
            // The operator did not name this mailbox. It can be empty by now, because its messages may have expired or
            // been deleted.
            run.export_mailbox(&mailbox.name).await?;
        }
    }
    run.output.finish()?;
    Ok(run.exported)
}

/// An export in progress.
struct ExportRun<'a> {
    store: &'a dyn Store,
    output: &'a mut dyn Output,
    console: &'a mut Console,
    stop: &'a watch::Receiver<bool>,
    /// The number of messages at the start. Zero if unknown.
    total: u64,
    exported: ExportCounts,
}

impl ExportRun<'_> {
    /// Writes the messages of a mailbox. Returns false if it is empty. The output of a mailbox starts with the first
    /// message that can be read, so that nothing is created for a mailbox that is purged meanwhile.
    async fn export_mailbox(&mut self, mailbox: &MailboxName) -> Result<bool, ExportError> {
        let (mut after, mut is_started, mut has_damaged) = (MessageId::ZERO, false, false);
        loop {
            let page = Page { limit: Some(PAGE_SIZE), after: Some(after), before: None };
            let messages = self.store.list(mailbox, page).await?.messages;
            let Some(last) = messages.last() else { return Ok(is_started || has_damaged) };
            after = last.id;
            for message in &messages {
                if *self.stop.borrow() {
                    return Err(ExportError::Interrupted);
                }
                let source = match self.store.source(mailbox, message.id).await {
                    Ok(Some(source)) => source,
                    // While a server is running, a message can be deleted after it was listed.
                    Ok(None) => continue,
                    // A damaged message does not prevent the export of the others.
                    Err(StoreError::Broken(cause)) => {
                        has_damaged = true;
                        self.console.report_problem(&format!("message {} of mailbox {mailbox}: {cause}", message.id));
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                if !is_started {
                    is_started = true;
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
