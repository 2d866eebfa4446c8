//! Finds the messages of events: those of copies that have changed, and those of which copies are left.
//!
//! Changes of many messages are mostly changes of messages that follow each other. So the messages of a batch of changes are
//! read as one page of the list of all messages. Only those that are not on the page are found one by one.

use std::collections::BTreeSet;

use restante_auth::Grant;
use restante_mail::message::{Message, MessageId};
use restante_store::{MessageSelector, Page};

use crate::messages::Messages;
use crate::messages::permitted_copies;
use crate::response::problem::Problem;

impl Messages {
    /// Returns the messages of the copies with these ids, with the copies that the grant allows. Copies that do not exist any
    /// more are ignored.
    pub async fn messages_of_copies(
        &self,
        grant: &Grant,
        copies: BTreeSet<MessageId>,
    ) -> Result<Vec<Message>, Problem> {
        let Some(&first) = copies.first() else { return Ok(Vec::new()) };
        // The first copy can be one in the middle of its message, so its message is the one after the previous one.
        let after = self.id_before(first).await?;
        let MessageSpan { mut messages, end } = self.read_span(grant, after, 2 * copies.len()).await?;
        let last = end.unwrap_or(MessageId::MAX);
        for &id in copies.range(..).filter(|id| **id > last) {
            if messages.last().is_some_and(|message| message.copies().iter().any(|copy| copy.id == id)) {
                continue;
            }
            match self.permitted_message(grant, MessageSelector::Id(id)).await {
                Ok(message) => messages.push(message),
                Err(Problem::NoSuchMessage) => {}
                Err(problem) => return Err(problem),
            }
        }
        Ok(messages)
    }

    /// Returns those of these ids of messages that exist and of which the grant allows a copy.
    pub async fn existing_messages(
        &self,
        grant: &Grant,
        ids: BTreeSet<MessageId>,
    ) -> Result<BTreeSet<MessageId>, Problem> {
        let Some(&first) = ids.first() else { return Ok(BTreeSet::new()) };
        let after = first.number().saturating_sub(1).into();
        let MessageSpan { messages, end } = self.read_span(grant, after, 2 * ids.len()).await?;
        let mut existing: BTreeSet<MessageId> = messages.iter().map(Message::id).collect();
        let last = end.unwrap_or(MessageId::MAX);
        for id in ids.into_iter().filter(|id| *id > last) {
            let message = self.mailroom.find_message(MessageSelector::Id(id)).await?;
            existing.extend(message.and_then(|message| permitted_copies(grant, message)).map(|message| message.id()));
        }
        Ok(existing)
    }

    /// Returns up to `limit` messages after this id, the oldest first, with the copies that the grant allows.
    async fn read_span(&self, grant: &Grant, after: MessageId, limit: usize) -> Result<MessageSpan, Problem> {
        let page = Page { before: None, after: Some(after), limit: Some(limit) };
        let messages = self.mailroom.messages(grant.home(), page).await?.messages;
        let last_copy = messages.last().and_then(|message| message.copies().last()).map(|copy| copy.id);
        let end = last_copy.filter(|_| messages.len() >= limit);
        Ok(MessageSpan {
            messages: messages.into_iter().filter_map(|message| permitted_copies(grant, message)).collect(),
            end,
        })
    }
}

/// Consecutive messages of the list of all messages.
struct MessageSpan {
    messages: Vec<Message>,
    /// The id of the last copy, unless these are all messages up to the newest one.
    end: Option<MessageId>,
}
