//! Commands that add and remove messages: APPEND, COPY, MOVE, EXPUNGE and CLOSE.

use std::io::Write as _;

use restante_mail::message::{Flags, MessageId};

use super::command::{Append, SequenceSet};
use super::commands::marks_of;
use super::reply::{self, set_text};
use super::selected::{Entry, Selected};
use super::task::{BATCH_BYTES, BATCH_MESSAGES, Completion, Context, Step, Task};
use super::{NewMarks, Operation, Outcome, Refusal};

/// APPEND.
#[derive(Debug)]
pub(super) struct AppendTask {
    append: Option<(Append, NewMarks)>,
}

impl AppendTask {
    pub(super) fn new(append: Append, max_message_bytes: usize) -> Result<Self, Refusal> {
        if append.message.len() > max_message_bytes {
            return Err(Refusal::TooLarge);
        }
        if append.message.is_empty() {
            return Err(Refusal::Cannot("The message is empty".to_owned()));
        }
        let marks = marks_of(&append.flags).map_err(|completion| Refusal::Limit(completion.text.into_owned()))?;
        Ok(Self { append: Some((append, marks)) })
    }
}

impl Task for AppendTask {
    fn advance(&mut self, _: &mut Context<'_>, outcome: Option<Outcome>) -> Step {
        match (self.append.take(), outcome) {
            (Some((append, marks)), _) => Step::Perform(Operation::Append { append, marks }),
            (None, Some(Outcome::Appended { uid_validity, uid })) => {
                let code = format!("[APPENDUID {uid_validity} {uid}] ");
                Step::Done(Completion::ok("APPEND completed").with_code(code))
            }
            (None, _) => Step::Done(Completion::ok("APPEND completed")),
        }
    }
}

/// COPY and MOVE, in several operations. If one of them fails, COPY deletes the copies of those before (RFC 3501 section
/// 6.4.7). MOVE reports the messages that were moved (RFC 6851 section 3.3).
#[derive(Debug)]
pub(super) struct CopyTask {
    mailbox: String,
    is_move: bool,
    /// The messages that are not copied yet, in descending order.
    queue: Vec<Source>,
    /// The messages of the current operation.
    sent: Vec<Source>,
    /// The number and the sizes of all messages.
    all_messages: u64,
    all_bytes: u64,
    uid_validity: u32,
    /// The UIDs of the messages that were copied, and of their copies.
    copied: Vec<(u32, u32)>,
    /// The ids of the copies.
    copies: Vec<MessageId>,
    /// Why the command has failed, while the copies are deleted.
    failure: Option<Completion>,
}

/// A message to be copied.
#[derive(Debug)]
struct Source {
    id: MessageId,
    uid: u32,
    size: u64,
}

impl CopyTask {
    pub(super) fn new(selected: &Selected, set: &SequenceSet, is_uid: bool, mailbox: String, is_move: bool) -> Self {
        let indices = selected.resolve(set, is_uid).into_iter().flatten();
        let entries = indices.filter_map(|index| selected.entries().get(index)).filter(|entry| !entry.is_gone);
        let source = |entry: &Entry| Source { id: entry.id, uid: entry.uid, size: entry.size() };
        let mut queue: Vec<Source> = entries.map(source).collect();
        queue.reverse();
        Self {
            mailbox,
            is_move,
            all_messages: queue.len() as u64,
            all_bytes: queue.iter().map(|source| source.size).sum(),
            queue,
            sent: Vec::new(),
            uid_validity: 0,
            copied: Vec::new(),
            copies: Vec::new(),
            failure: None,
        }
    }

    /// Returns the operation for the next messages.
    fn next_operation(&mut self) -> Operation {
        let mut bytes = 0;
        while self.sent.len() < BATCH_MESSAGES
            && bytes < BATCH_BYTES
            && let Some(source) = self.queue.pop()
        {
            bytes += source.size;
            self.sent.push(source);
        }
        Operation::Copy {
            ids: self.sent.iter().map(|source| source.id).collect(),
            bytes,
            mailbox: self.mailbox.clone(),
            is_move: self.is_move,
            all_messages: self.all_messages,
            all_bytes: self.all_bytes,
        }
    }

    /// Notes the results of an operation. Messages that were moved are deleted.
    fn note_copied(&mut self, selected: Option<&mut Selected>, uids: Vec<Option<u32>>) {
        let copied = self.sent.drain(..).zip(uids).filter_map(|(source, uid)| Some((source, uid?)));
        let copied: Vec<(Source, u32)> = copied.collect();
        self.copied.extend(copied.iter().map(|(source, uid)| (source.uid, *uid)));
        if let Some(selected) = selected.filter(|_| self.is_move) {
            for (source, _) in copied {
                selected.remove(source.id);
            }
        }
    }

    /// Returns the response code COPYUID, or nothing if no message was copied.
    fn code(&self) -> String {
        if self.copied.is_empty() {
            return String::new();
        }
        let sources = set_text(self.copied.iter().map(|&(uid, _)| uid));
        let targets = set_text(self.copied.iter().map(|&(_, uid)| uid));
        format!("[COPYUID {} {sources} {targets}] ", self.uid_validity)
    }

    /// Writes COPYUID of MOVE. It precedes the EXPUNGE replies (RFC 6851 section 4.3).
    fn write_moved(&self, out: &mut Vec<u8>) {
        if !self.copied.is_empty() {
            let _ = write!(out, "* OK {}Copied\r\n", self.code());
        }
    }
}

impl Task for CopyTask {
    fn advance(&mut self, context: &mut Context<'_>, outcome: Option<Outcome>) -> Step {
        if let Some(failure) = self.failure.take() {
            return Step::Done(failure);
        }
        if let Some(Outcome::Copied { uid_validity, uids, ids }) = outcome {
            self.uid_validity = uid_validity;
            self.note_copied(context.selected.as_mut(), uids);
            self.copies.extend(ids);
        }
        if !self.queue.is_empty() {
            return Step::Perform(self.next_operation());
        }
        if self.copied.is_empty() && self.all_messages > 0 {
            return Step::Done(Completion::no("[EXPUNGEISSUED] ", "The messages no longer exist"));
        }
        if self.is_move {
            self.write_moved(context.out);
            return Step::Done(Completion::ok("MOVE completed"));
        }
        Step::Done(Completion::ok("COPY completed").with_code(self.code()))
    }

    fn refused(&mut self, context: &mut Context<'_>, refusal: &Refusal) -> Step {
        // The reason of the first failure is reported.
        let failure = self.failure.take().unwrap_or_else(|| reply::refusal(refusal));
        if self.is_move {
            self.write_moved(context.out);
            return Step::Done(failure);
        }
        let ids = std::mem::take(&mut self.copies);
        if ids.is_empty() {
            return Step::Done(failure);
        }
        self.failure = Some(failure);
        Step::Perform(Operation::RemoveCopies { ids, mailbox: self.mailbox.clone() })
    }
}

/// EXPUNGE, UID EXPUNGE and CLOSE.
#[derive(Debug)]
pub(super) struct ExpungeTask {
    /// The messages to remove, in descending order.
    ids: Vec<MessageId>,
    is_closing: bool,
}

impl ExpungeTask {
    /// Removes the messages that are marked as deleted: all, or those of a set of UIDs.
    pub(super) fn new(selected: &Selected, uids: Option<&SequenceSet>) -> Self {
        let all = 0..selected.entries().len();
        let ranges = uids.map_or_else(|| std::iter::once(all).collect(), |set| selected.resolve(set, true));
        let entries = ranges.into_iter().flatten().filter_map(|index| selected.entries().get(index));
        let deleted = entries.filter(|entry| entry.flags.contains(Flags::DELETED) && !entry.is_gone);
        let mut ids: Vec<MessageId> = deleted.map(|entry| entry.id).collect();
        ids.reverse();
        Self { ids, is_closing: false }
    }

    /// Removes the messages that are marked as deleted, and closes the mailbox.
    pub(super) fn closing(selected: &Selected) -> Self {
        Self { is_closing: true, ..Self::new(selected, None) }
    }
}

impl Task for ExpungeTask {
    fn advance(&mut self, context: &mut Context<'_>, outcome: Option<Outcome>) -> Step {
        if let (Some(selected), Some(Outcome::Removed(ids))) = (context.selected.as_mut(), outcome) {
            for id in ids {
                selected.remove(id);
            }
        }
        let rest = self.ids.len().saturating_sub(BATCH_MESSAGES);
        let batch = self.ids.split_off(rest);
        if !batch.is_empty() {
            return Step::Perform(Operation::Remove(batch));
        }
        if self.is_closing {
            *context.selected = None;
            *context.last_view = None;
            return Step::Done(Completion::ok("CLOSE completed"));
        }
        Step::Done(Completion::ok("EXPUNGE completed"))
    }
}

#[cfg(test)]
mod tests;
