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
const PAGE: usize = 500;

/// What was exported.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Exported {
    pub(super) mailboxes: u64,
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

/// Why an export ended before its end.
#[derive(Debug)]
pub(super) enum Failure {
    /// Somebody asked for it.
    Interrupted,
    /// The mail cannot be read.
    Store(StoreError),
    /// The mail cannot be written.
    Output(io::Error),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for Failure {
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
) -> Result<Exported, Failure> {
    let total = if mailboxes.is_empty() { store.usage().await?.messages } else { 0 };
    let mut run = Run { store, output, console, stop, total, exported: Exported::default() };
    for mailbox in mailboxes {
        if !run.mailbox(mailbox).await? {
            run.console.problem(&format!("mailbox {mailbox} holds nothing"));
        }
    }
    let mut page = MailboxPage { limit: PAGE, ..MailboxPage::ALL };
    while mailboxes.is_empty() {
        let found = store.mailboxes(page.clone()).await?;
        let Some(last) = found.last() else { break };
        last.name.as_str().clone_into(&mut page.after);
        for mailbox in &found {
            // Nobody asked for this one by name: when it is empty by now, its mail went in the normal course of things.
            run.mailbox(&mailbox.name).await?;
        }
    }
    run.output.finish()?;
    Ok(run.exported)
}

/// An export under way.
struct Run<'a> {
    store: &'a dyn Store,
    output: &'a mut dyn Output,
    console: &'a mut Console,
    stop: &'a watch::Receiver<bool>,
    /// Messages that there were at the beginning; zero when nobody counted.
    total: u64,
    exported: Exported,
}

impl Run<'_> {
    /// Writes what a mailbox holds; false when there was nothing. A mailbox begins with the first message that can be
    /// read, so that one whose mail goes meanwhile leaves nothing behind.
    async fn mailbox(&mut self, mailbox: &MailboxName) -> Result<bool, Failure> {
        let (mut after, mut begun, mut damaged) = (MessageId::ZERO, false, false);
        loop {
            let page = Page { limit: Some(PAGE), after: Some(after), before: None };
            let messages = self.store.list(mailbox, page).await?.messages;
            let Some(last) = messages.last() else { return Ok(begun || damaged) };
            after = last.id;
            for message in &messages {
                if *self.stop.borrow() {
                    return Err(Failure::Interrupted);
                }
                let source = match self.store.source(mailbox, message.id).await {
                    Ok(Some(source)) => source,
                    // Beside a running server a message can go between the listing and now.
                    Ok(None) => continue,
                    // One damaged message does not keep the others from being saved.
                    Err(StoreError::Broken(cause)) => {
                        damaged = true;
                        self.console.problem(&format!("message {} of mailbox {mailbox}: {cause}", message.id));
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                };
                if !begun {
                    begun = true;
                    self.output.begin(mailbox)?;
                    self.exported.mailboxes += 1;
                }
                self.write(message, &source)?;
            }
        }
    }

    fn write(&mut self, message: &Summary, source: &Source) -> Result<(), Failure> {
        self.output.write(message, source)?;
        self.exported.messages += 1;
        self.exported.bytes += source.len() as u64;
        let messages = self.exported.messages;
        self.console.progress(Progress { messages, done: messages, total: self.total });
        Ok(())
    }
}
