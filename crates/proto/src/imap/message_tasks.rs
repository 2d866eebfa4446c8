//! Commands that add and remove messages: APPEND, COPY, MOVE, EXPUNGE and CLOSE.

use restante_mail::message::{Flags, MessageId};

use super::command::{Append, SequenceSet};
use super::commands::marks_of;
use super::reply::set_text;
use super::selected::Selected;
use super::task::{BATCH_MESSAGES, Completion, Context, Step, Task};
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

/// COPY and MOVE.
#[derive(Debug)]
pub(super) struct CopyTask {
    mailbox: String,
    is_move: bool,
    /// The messages with their UIDs.
    messages: Vec<(MessageId, u32)>,
    stage: CopyStage,
    /// The response code COPYUID.
    code: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyStage {
    Start,
    Copying,
    Removing,
}

impl CopyTask {
    pub(super) fn new(selected: &Selected, set: &SequenceSet, is_uid: bool, mailbox: String, is_move: bool) -> Self {
        let indices = selected.resolve(set, is_uid).into_iter().flatten();
        let entries = indices.filter_map(|index| selected.entries().get(index)).filter(|entry| !entry.is_gone);
        let messages = entries.map(|entry| (entry.id, entry.uid)).collect();
        Self { mailbox, is_move, messages, stage: CopyStage::Start, code: String::new() }
    }

    fn ids(&self) -> Vec<MessageId> {
        self.messages.iter().map(|&(id, _)| id).collect()
    }

    fn completion(&mut self) -> Completion {
        let completion = Completion::ok(if self.is_move { "MOVE completed" } else { "COPY completed" });
        // RFC 6851 section 4.3: MOVE sends COPYUID before it removes the messages.
        if self.is_move { completion } else { completion.with_code(std::mem::take(&mut self.code)) }
    }
}

impl Task for CopyTask {
    fn advance(&mut self, context: &mut Context<'_>, outcome: Option<Outcome>) -> Step {
        if self.messages.is_empty() {
            return Step::Done(self.completion());
        }
        match (self.stage, outcome) {
            (CopyStage::Start, _) => {
                self.stage = CopyStage::Copying;
                Step::Perform(Operation::Copy { ids: self.ids(), mailbox: self.mailbox.clone() })
            }
            (CopyStage::Copying, Some(Outcome::Copied { uid_validity, uids })) => {
                let mut copied = Vec::new();
                let messages = std::mem::take(&mut self.messages);
                for ((id, uid), copy) in messages.into_iter().zip(uids) {
                    if let Some(copy) = copy {
                        copied.push((uid, copy));
                        self.messages.push((id, uid));
                    }
                }
                if copied.is_empty() {
                    return Step::Done(Completion::no("[EXPUNGEISSUED] ", "The messages no longer exist"));
                }
                let sources = set_text(copied.iter().map(|&(uid, _)| uid));
                let targets = set_text(copied.iter().map(|&(_, copy)| copy));
                self.code = format!("[COPYUID {uid_validity} {sources} {targets}] ");
                if !self.is_move {
                    return Step::Done(self.completion());
                }
                let code = std::mem::take(&mut self.code);
                context.out.extend_from_slice(format!("* OK {code}Copied\r\n").as_bytes());
                self.stage = CopyStage::Removing;
                Step::Perform(Operation::Remove(self.ids()))
            }
            (CopyStage::Removing, _) => {
                if let Some(selected) = context.selected.as_mut() {
                    self.ids().into_iter().for_each(|id| selected.remove(id));
                }
                Step::Done(self.completion())
            }
            (CopyStage::Copying, _) => Step::Done(self.completion()),
        }
    }
}

/// EXPUNGE, UID EXPUNGE and CLOSE.
#[derive(Debug)]
pub(super) struct ExpungeTask {
    /// The messages to remove, in descending order.
    ids: Vec<MessageId>,
    removing: Vec<MessageId>,
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
        Self { ids, removing: Vec::new(), is_closing: false }
    }

    /// Removes the messages that are marked as deleted, and closes the mailbox.
    pub(super) fn closing(selected: &Selected) -> Self {
        Self { is_closing: true, ..Self::new(selected, None) }
    }
}

impl Task for ExpungeTask {
    fn advance(&mut self, context: &mut Context<'_>, _: Option<Outcome>) -> Step {
        if let Some(selected) = context.selected.as_mut() {
            self.removing.drain(..).for_each(|id| selected.remove(id));
        }
        let rest = self.ids.len().saturating_sub(BATCH_MESSAGES);
        self.removing = self.ids.split_off(rest);
        if !self.removing.is_empty() {
            return Step::Perform(Operation::Remove(self.removing.clone()));
        }
        if self.is_closing {
            *context.selected = None;
            *context.last_view = None;
            return Step::Done(Completion::ok("CLOSE completed"));
        }
        Step::Done(Completion::ok("EXPUNGE completed"))
    }
}
