//! STORE, and changes of flags in general. A change is computed from the flags that the session knows. If another client
//! has changed them meanwhile, the current flags are read and the change is computed again.

use std::io::Write as _;

use restante_mail::tags::{MAX_TAGS, Tags};

use super::command::{SequenceSet, StoreOperation};
use super::reply::{self, FlagsStyle, set_text};
use super::selected::{Entry, MAX_KEYWORD_SETS, Selected};
use super::task::{BATCH_MESSAGES, Completion, Context, Step, Task};
use super::{NewMarks, Operation, Outcome, Update, Updated};

/// How often changes are computed again without any of them being made.
const MAX_ROUNDS: usize = 20;

/// A change of flags for several messages.
#[derive(Debug)]
pub(super) struct FlagChanges {
    operation: StoreOperation,
    marks: NewMarks,
    /// Only messages whose MODSEQ is not higher.
    unchanged_since: Option<u64>,
    /// Whether the client does not get the new flags. It gets changes of other clients.
    is_silent: bool,
    /// The indices of messages to change, in descending order.
    queue: Vec<usize>,
    /// The messages of the current operation, and whether the client knows their flags from before it.
    sent: Vec<(usize, bool)>,
    /// The messages whose flags have to be read.
    stale: Vec<usize>,
    /// How often changes were computed again since the last one was made.
    rounds: usize,
    /// The messages that were not changed because their MODSEQ is higher.
    pub(super) modified: Vec<usize>,
    /// Why the keywords of some messages could not be changed. These messages are not changed at all.
    exceeded_limit: Option<KeywordLimit>,
    /// Whether too many other changes came between.
    pub(super) has_failed: bool,
}

impl FlagChanges {
    /// Creates a change for messages with these indices, in ascending order.
    pub(super) fn new(operation: StoreOperation, marks: NewMarks, indices: impl IntoIterator<Item = usize>) -> Self {
        let mut queue: Vec<usize> = indices.into_iter().collect();
        queue.reverse();
        Self {
            operation,
            marks,
            unchanged_since: None,
            is_silent: false,
            queue,
            sent: Vec::new(),
            stale: Vec::new(),
            rounds: 0,
            modified: Vec::new(),
            exceeded_limit: None,
            has_failed: false,
        }
    }

    /// Returns the next operation, or `None` if all messages are changed.
    pub(super) fn advance(&mut self, selected: &mut Selected, outcome: Option<Outcome>) -> Option<Operation> {
        match outcome {
            Some(Outcome::Updated(results)) => self.apply(selected, results),
            Some(Outcome::Properties(properties)) => {
                for (index, properties) in self.stale.drain(..).zip(properties) {
                    let Some(id) = selected.entries().get(index).map(|entry| entry.id) else { continue };
                    match properties {
                        Some(properties) => {
                            selected.mark(id, &properties.marks);
                            self.queue.push(index);
                        }
                        None => selected.remove(id),
                    }
                }
            }
            _ => {}
        }
        if !self.stale.is_empty() {
            self.rounds += 1;
            if self.rounds > MAX_ROUNDS {
                self.has_failed = true;
                return None;
            }
            let entries = selected.entries();
            return Some(Operation::Properties(
                self.stale.iter().filter_map(|&index| entries.get(index)).map(|entry| entry.id).collect(),
            ));
        }
        let updates = self.next_updates(selected);
        (!updates.is_empty()).then_some(Operation::Update(updates))
    }

    fn apply(&mut self, selected: &mut Selected, results: Vec<Updated>) {
        if results.iter().any(|result| *result != Updated::Conflict) {
            self.rounds = 0;
        }
        for ((index, has_known_flags), result) in self.sent.drain(..).zip(results) {
            let Some(id) = selected.entries().get(index).map(|entry| entry.id) else { continue };
            match result {
                Updated::Done(marks) => {
                    selected.mark(id, &marks);
                    // A higher MODSEQ is that of another client.
                    let has_other_flags =
                        selected.entries().get(index).is_some_and(|entry| entry.modseq > marks.modseq);
                    if self.is_silent && has_known_flags && !has_other_flags {
                        selected.flags_sent(index);
                    }
                }
                Updated::Missing => selected.remove(id),
                Updated::Conflict => self.stale.push(index),
            }
        }
    }

    fn next_updates(&mut self, selected: &Selected) -> Vec<Update> {
        let mut updates = Vec::new();
        while updates.len() < BATCH_MESSAGES
            && let Some(index) = self.queue.pop()
        {
            let Some(entry) = selected.entries().get(index).filter(|entry| !entry.is_gone) else { continue };
            if self.unchanged_since.is_some_and(|limit| entry.modseq > limit) {
                self.modified.push(index);
                continue;
            }
            match self.update(selected, entry) {
                // If nothing changes, the store checks that the known flags are the current ones.
                Ok(update) => {
                    updates.push(update);
                    self.sent.push((index, !entry.is_changed));
                }
                Err(limit) => self.exceeded_limit = Some(limit),
            }
        }
        updates
    }

    /// Returns the change of a message, with those values that do not stay the same.
    fn update(&self, selected: &Selected, entry: &Entry) -> Result<Update, KeywordLimit> {
        let NewMarks { seen, flags, tags } = &self.marks;
        let current = selected.tags(entry);
        if !tags.is_empty() && !entry.has_known_tags() {
            return Err(KeywordLimit::SetsPerMailbox);
        }
        let (seen, flags, tags) = match self.operation {
            StoreOperation::Replace => (*seen, *flags, replaced(current, tags)),
            StoreOperation::Add => {
                let all = current.union(tags);
                if !tags.iter().all(|tag| all.contains(tag)) {
                    return Err(KeywordLimit::KeywordsPerMessage);
                }
                (entry.is_seen || *seen, entry.flags.union(*flags), all)
            }
            StoreOperation::Remove => {
                let kept = Tags::from_valid(current.iter().filter(|tag| !tags.contains(tag)));
                (entry.is_seen && !seen, entry.flags.difference(*flags), kept)
            }
        };
        Ok(Update {
            id: entry.id,
            seen: (seen != entry.is_seen).then_some(seen),
            flags: (flags != entry.flags).then_some(flags),
            tags: (tags != *current).then_some(tags),
            if_modseq: entry.modseq,
        })
    }
}

/// A limit that prevents a change of keywords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeywordLimit {
    /// New keywords do not fit.
    KeywordsPerMessage,
    /// The keywords of the message are not known, because the mailbox has too many different sets of them.
    SetsPerMailbox,
}

impl KeywordLimit {
    fn completion(self) -> Completion {
        let text = match self {
            Self::KeywordsPerMessage => format!("A message has at most {MAX_TAGS} keywords, some were not changed"),
            Self::SetsPerMailbox => {
                format!("A session knows at most {MAX_KEYWORD_SETS} sets of keywords, some were not changed")
            }
        };
        Completion::no("[LIMIT] ", text)
    }
}

/// Returns the new tags. If they are the current ones in another order or case, those are kept.
fn replaced(current: &Tags, new: &Tags) -> Tags {
    let is_same = current.iter().count() == new.iter().count() && new.iter().all(|tag| current.contains(tag));
    if is_same { current.clone() } else { new.clone() }
}

/// The arguments of STORE besides the messages.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) operation: StoreOperation,
    pub(super) marks: NewMarks,
    pub(super) is_uid: bool,
    pub(super) is_silent: bool,
    pub(super) unchanged_since: Option<u64>,
}

/// STORE.
#[derive(Debug)]
pub(super) struct StoreTask {
    changes: FlagChanges,
    /// The messages to report, in ascending order.
    indices: std::vec::IntoIter<usize>,
    is_uid: bool,
    is_silent: bool,
    is_reporting: bool,
}

impl StoreTask {
    pub(super) fn new(selected: &Selected, set: &SequenceSet, change: Change) -> Self {
        let indices: Vec<usize> = selected.resolve(set, change.is_uid).into_iter().flatten().collect();
        let mut changes = FlagChanges::new(change.operation, change.marks, indices.iter().copied());
        (changes.unchanged_since, changes.is_silent) = (change.unchanged_since, change.is_silent);
        Self {
            changes,
            indices: indices.into_iter(),
            is_uid: change.is_uid,
            is_silent: change.is_silent,
            is_reporting: false,
        }
    }

    fn report(&self, selected: &mut Selected, out: &mut Vec<u8>, index: usize, has_modseq: bool) {
        let Some(entry) = selected.entries().get(index).filter(|entry| !entry.is_gone) else { return };
        let is_modified = self.changes.modified.binary_search(&index).is_ok();
        if !self.is_silent && !is_modified {
            reply::write_flags_update(out, selected, index, FlagsStyle { has_uid: self.is_uid, has_modseq });
            selected.flags_sent(index);
        } else if has_modseq && !is_modified && !entry.is_changed {
            let _ = write!(out, "* {} FETCH (UID {} MODSEQ ({}))\r\n", index + 1, entry.uid, entry.modseq);
        }
    }
}

impl Task for StoreTask {
    fn advance(&mut self, context: &mut Context<'_>, outcome: Option<Outcome>) -> Step {
        let style = context.style();
        let Some(selected) = context.selected.as_mut() else { return Step::Done(Completion::bad(reply::SELECT_FIRST)) };
        if !self.is_reporting {
            if let Some(operation) = self.changes.advance(selected, outcome) {
                return Step::Perform(operation);
            }
            self.changes.modified.sort_unstable();
            self.is_reporting = true;
        }
        while let Some(index) = self.indices.next() {
            self.report(selected, context.out, index, style.has_modseq || self.changes.unchanged_since.is_some());
            if context.out.len() >= super::task::MAX_REPLY_BYTES {
                return Step::Write;
            }
        }
        let modified = self.changes.modified.iter().filter_map(|&index| {
            let number = || u32::try_from(index + 1).ok();
            selected.entries().get(index).and_then(|entry| if self.is_uid { Some(entry.uid) } else { number() })
        });
        let completion = match (self.changes.exceeded_limit, self.changes.modified.is_empty()) {
            _ if self.changes.has_failed => {
                Completion::no("[INUSE] ", "Other clients change these messages, try again later")
            }
            (Some(limit), _) => limit.completion(),
            (None, true) => Completion::ok("STORE completed"),
            (None, false) => {
                let code = format!("[MODIFIED {}] ", set_text(modified));
                Completion::ok("Some messages were changed by other clients").with_code(code)
            }
        };
        Step::Done(completion)
    }
}

#[cfg(test)]
mod tests;
