//! Comparing the index with the store, a step at a time, so that news have their turn in between. First what the index has and
//! should not, then what it lacks.

use std::vec::IntoIter;

use restante_mail::message::MessageId;
use restante_mail::naming::MailboxName;
use restante_mailroom::{MailboxPage, Page};

use crate::filing::{Filing, Trouble};
use crate::index::Changes;

/// How many messages are looked at in a step.
const STEP: usize = 256;
/// How many mailboxes are asked for at once.
const MAILBOXES: usize = 1000;

/// See the file's documentation.
pub(crate) struct CatchUp {
    /// The id up to which it was seen to that nothing is too much, until that is done.
    checked: Option<MessageId>,
    /// What the index may lack has ids above this one.
    above: MessageId,
    /// The mailboxes that are to be looked at, and the one behind which others are to be asked for.
    mailboxes: IntoIter<MailboxName>,
    page: MailboxPage,
    /// The mailbox that is looked at, and how far.
    current: Option<(MailboxName, MessageId)>,
}

impl CatchUp {
    /// Looks at all messages.
    pub(crate) fn with_everything() -> Self {
        Self { checked: Some(MessageId::ZERO), ..Self::above(MessageId::ZERO) }
    }

    /// Looks for messages with higher ids that the index does not have.
    pub(crate) fn above(above: MessageId) -> Self {
        Self {
            checked: None,
            above,
            mailboxes: Vec::new().into_iter(),
            page: MailboxPage { limit: MAILBOXES, ..MailboxPage::ALL },
            current: None,
        }
    }

    /// Goes a step further. Whether that was the last one.
    pub(crate) fn step(&mut self, filing: &mut Filing) -> Result<bool, Trouble> {
        if let Some(checked) = self.checked {
            self.checked = check(filing, checked)?;
            return Ok(false);
        }
        let Some((mailbox, after)) = self.current.take().or_else(|| self.next_mailbox()) else {
            return self.ask_for_mailboxes(filing);
        };
        let page = Page { limit: Some(STEP), before: None, after: Some(after) };
        let messages = filing.ask(async |mailroom| mailroom.list(&mailbox, page).await)?.messages;
        if let Some(last) = messages.last() {
            self.current = Some((mailbox, last.id));
        }
        // Whatever is deleted from now on is heard of after it was added.
        let missing = filing.with_index(|index| index.missing(messages))?;
        filing.add_all(missing)?;
        Ok(false)
    }

    fn next_mailbox(&mut self) -> Option<(MailboxName, MessageId)> {
        Some((self.mailboxes.next()?, self.above))
    }

    fn ask_for_mailboxes(&mut self, filing: &Filing) -> Result<bool, Trouble> {
        let states = filing.ask(async |mailroom| mailroom.mailboxes(self.page.clone()).await)?;
        let Some(last) = states.last() else { return Ok(true) };
        last.name.as_str().clone_into(&mut self.page.after);
        let with_news = states.into_iter().filter(|state| state.newest.id > self.above);
        self.mailboxes = with_news.map(|state| state.name).collect::<Vec<_>>().into_iter();
        Ok(false)
    }
}

/// Compares the next messages in the index with the store. The id of the last one; none when there was none.
fn check(filing: &Filing, after: MessageId) -> Result<Option<MessageId>, Trouble> {
    let held = filing.with_index(|index| index.held(after, STEP))?;
    let last = held.last().map(|(_, id, _)| *id);
    let mut changes = Changes::default();
    for (mailbox, id, seen) in held {
        match filing.find(&mailbox, id)? {
            None => changes.removed.push(id),
            Some(summary) if summary.seen != seen => changes.seen.push((id, summary.seen)),
            Some(_) => {}
        }
    }
    filing.write(changes)?;
    Ok(last)
}
