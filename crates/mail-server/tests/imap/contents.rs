//! The messages of a mailbox in the store, and whether they are what the operations of all clients should have made.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use restante_mail::message::{Flags, MessageId, Summary};
use restante_mail::naming::MailboxName;
use restante_mailroom::{Mailroom, Page};

use crate::session::{AddedMessage, ConditionalChange, Effects};
use crate::view::{FlagSet, KnownMessage, View};

/// The maximum number of changes of which all orders are tried.
const MAX_PERMUTED_CHANGES: usize = 5;

/// The contents of a mailbox.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// By UID.
    pub(crate) messages: BTreeMap<u32, StoredMessage>,
    pub(crate) uid_validity: u32,
    pub(crate) next_uid: u32,
    pub(crate) highest_modseq: u64,
}

/// A message in the store.
#[derive(Debug)]
pub(crate) struct StoredMessage {
    pub(crate) id: MessageId,
    pub(crate) flags: FlagSet,
    pub(crate) modseq: u64,
    subject: String,
}

/// What is known about all messages that there ever were.
#[derive(Debug, Default)]
pub(crate) struct History {
    subjects: HashMap<u32, String>,
    /// The UIDs of messages that may have had `\Deleted`.
    deleted: BTreeSet<u32>,
    /// The flags of messages at each MODSEQ.
    flags_at: BTreeMap<(u32, u64), FlagSet>,
}

/// What is known about the operations between two states.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// Whether there was only one operation. Then its effects are known exactly.
    pub(crate) is_single: bool,
    /// Whether a session can know less than the store, because another node has changed it.
    pub(crate) is_shared: bool,
    /// The maximum number of messages.
    pub(crate) cap: usize,
}

impl Contents {
    pub(crate) async fn read(mailroom: &Mailroom, mailbox: &MailboxName) -> Self {
        let listing = mailroom.list(mailbox, Page::ALL).await.unwrap();
        let index = mailroom.index(mailbox, MessageId::ZERO, usize::MAX).await.unwrap();
        let listed: Vec<_> =
            listing.messages.iter().map(|message| (message.id, message.number, message.marks())).collect();
        let indexed: Vec<_> = index.entries.into_iter().map(|entry| (entry.id, entry.number, entry.marks)).collect();
        assert_eq!(listed, indexed, "the index has other messages than the list");
        Self {
            messages: listing.messages.into_iter().map(|message| (message.number, message.into())).collect(),
            uid_validity: mailroom.uid_validity().await.unwrap(),
            next_uid: index.next_number,
            highest_modseq: index.highest_modseq,
        }
    }

    /// Returns a description of the first difference if a client does not know all messages, or knows wrong flags.
    pub(crate) fn difference(&self, view: &View) -> Option<String> {
        let (known, stored) = (view.messages.len(), self.messages.len());
        if known != stored {
            return Some(format!("The client knows {known} messages, and there are {stored}."));
        }
        let differs = |(known, (uid, stored)): &(&KnownMessage, (&u32, &StoredMessage))| {
            known.uid.is_some_and(|known| known != **uid)
                || known.flags.as_ref().is_some_and(|flags| *flags != stored.flags)
        };
        let different = view.messages.iter().zip(&self.messages).find(differs);
        different
            .map(|(known, (uid, stored))| format!("The client knows {known:?}, and there is UID {uid}, {stored:?}."))
    }

    /// Panics if a client does not know all UIDs and flags, and the MODSEQs if it gets them.
    pub(crate) fn assert_equals(&self, view: &View, has_modseq: bool) {
        let stored: Vec<_> = self
            .messages
            .iter()
            .map(|(&uid, message)| (Some(uid), Some(&message.flags), has_modseq.then_some(message.modseq)))
            .collect();
        let known: Vec<_> = view
            .messages
            .iter()
            .map(|known| (known.uid, known.flags.as_ref(), known.modseq.filter(|_| has_modseq)))
            .collect();
        assert_eq!(known, stored, "the client and the store differ");
    }
}

impl From<Summary> for StoredMessage {
    fn from(summary: Summary) -> Self {
        let system = [
            ("\\Flagged", Flags::FLAGGED),
            ("\\Answered", Flags::ANSWERED),
            ("\\Deleted", Flags::DELETED),
            ("\\Draft", Flags::DRAFT),
        ];
        let system = system.into_iter().filter(|(_, flag)| summary.flags.contains(*flag)).map(|(name, _)| name);
        let seen = summary.seen.then_some("\\Seen");
        Self {
            id: summary.id,
            flags: system.chain(seen).chain(summary.tags.iter()).map(str::to_owned).collect(),
            modseq: summary.modseq,
            subject: summary.headline.subject().to_owned(),
        }
    }
}

impl History {
    /// Checks the state after a round of operations: each change is the effect of one of them, and what the server has said
    /// is true.
    pub(crate) fn check_round(&mut self, before: &Contents, after: &Contents, effects: &[Effects], round: Round) {
        self.note(after, effects);
        assert_eq!(after.uid_validity, before.uid_validity);
        assert!(after.highest_modseq >= before.highest_modseq, "HIGHESTMODSEQ falls");
        check_added(before, after, effects, round);
        self.check_removed(before, after, effects, round);
        check_flags(before, after, effects, round);
        for effects in effects {
            check_statements(before, after, effects);
            if round.is_single {
                check_selection(before, effects, round);
            }
        }
    }

    /// Notes subjects and flags, and checks that they agree with earlier ones.
    fn note(&mut self, after: &Contents, effects: &[Effects]) {
        // A copy has a higher UID than its source.
        let mut added: Vec<_> = effects.iter().flat_map(|effects| effects.added.keys()).collect();
        added.sort_unstable();
        for uid in added {
            let subject = match effects.iter().find_map(|effects| effects.added.get(uid)) {
                Some(AddedMessage::Delivered { subject } | AddedMessage::Appended { subject, .. }) => subject.clone(),
                Some(AddedMessage::CopyOf(source)) => self.subjects[source].clone(),
                None => continue,
            };
            assert!(self.subjects.insert(*uid, subject).is_none(), "UID {uid} is assigned again");
        }
        let stored = after.messages.iter().map(|(&uid, message)| (uid, &message.subject));
        let fetched = effects.iter().flat_map(|effects| &effects.subjects).map(|(uid, subject)| (*uid, subject));
        for (uid, subject) in stored.chain(fetched) {
            assert_eq!(Some(subject), self.subjects.get(&uid), "UID {uid} is another message");
        }
        let stored = after.messages.iter().map(|(&uid, message)| ((uid, message.modseq), &message.flags));
        let reported = effects.iter().flat_map(|effects| &effects.flags_at).map(|(key, flags)| (*key, flags));
        for ((uid, modseq), flags) in stored.chain(reported) {
            let known = self.flags_at.entry((uid, modseq)).or_insert_with(|| flags.clone());
            assert_eq!(known, flags, "UID {uid} has two sets of flags at MODSEQ {modseq}");
            if flags.contains("\\Deleted") {
                self.deleted.insert(uid);
            }
        }
        let changed = effects.iter().flat_map(|effects| &effects.flag_changes);
        let deleted = changed.filter(|(_, conditional)| conditional.change.flags.contains("\\Deleted"));
        self.deleted.extend(deleted.map(|(uid, _)| uid));
    }

    fn check_removed(&self, before: &Contents, after: &Contents, effects: &[Effects], round: Round) {
        let added: usize = effects.iter().map(|effects| effects.added.len()).sum();
        let evicted = (before.messages.len() + added).saturating_sub(round.cap);
        let evicted: BTreeSet<u32> = before.messages.keys().take(evicted).copied().collect();
        for uid in before.messages.keys().filter(|uid| !after.messages.contains_key(uid)) {
            let is_allowed = |effects: &Effects| {
                effects.removed.contains(uid) && (!effects.removes_only_deleted || self.deleted.contains(uid))
            };
            assert!(evicted.contains(uid) || effects.iter().any(is_allowed), "UID {uid} has disappeared");
        }
        for effects in effects {
            for uid in effects.removed.iter().filter(|uid| after.messages.contains_key(uid)) {
                let had_flag = before.messages.get(uid).is_some_and(|message| message.flags.contains("\\Deleted"));
                let may_stay = effects.removes_only_deleted && (!had_flag || !round.is_single || round.is_shared);
                assert!(may_stay, "UID {uid} still exists");
            }
        }
        if let (true, [effects]) = (round.is_single, effects) {
            for (uid, message) in before.messages.iter().filter(|(uid, _)| !after.messages.contains_key(uid)) {
                let may_disappear = !effects.removes_only_deleted || message.flags.contains("\\Deleted");
                assert!(may_disappear, "UID {uid} is expunged without \\Deleted");
            }
        }
    }
}

/// Checks the flags of the messages that existed before.
fn check_flags(before: &Contents, after: &Contents, effects: &[Effects], round: Round) {
    for (uid, new) in &after.messages {
        assert!(new.modseq <= after.highest_modseq, "HIGHESTMODSEQ is too low");
        let Some(old) = before.messages.get(uid) else { continue };
        let changes: Vec<_> = effects.iter().filter_map(|effects| effects.flag_changes.get(uid)).collect();
        if changes.is_empty() {
            assert_eq!((old.modseq, &old.flags), (new.modseq, &new.flags), "UID {uid} was changed by no operation");
        } else {
            let is_newer = new.modseq > before.highest_modseq;
            assert!(is_newer || (old.modseq == new.modseq && old.flags == new.flags), "UID {uid} has an old MODSEQ");
        }
        match changes.as_slice() {
            [] => {}
            [conditional] => check_change(*uid, old, new, conditional, effects),
            _ if round.is_shared || changes.len() > MAX_PERMUTED_CHANGES => {}
            changes => {
                let expected = results_in_any_order(&old.flags, changes);
                assert!(expected.contains(&new.flags), "the flags of UID {uid} after {changes:?}: {:?}", new.flags);
            }
        }
    }
}

/// Checks the only change of the flags of a message.
fn check_change(
    uid: u32,
    old: &StoredMessage,
    new: &StoredMessage,
    conditional: &ConditionalChange,
    effects: &[Effects],
) {
    let is_modified = conditional.unchanged_since.is_some_and(|limit| old.modseq > limit);
    let is_reported = effects.iter().any(|effects| effects.modified.contains(&uid));
    assert_eq!(is_modified, is_reported, "UID {uid} with MODSEQ {} in MODIFIED", old.modseq);
    let expected = if is_modified { old.flags.clone() } else { conditional.change.apply(&old.flags) };
    assert_eq!(new.flags, expected, "the flags of UID {uid} after {conditional:?}");
}

/// Returns the flags after these changes in any order. A change with a condition may be left out.
fn results_in_any_order(flags: &FlagSet, changes: &[&ConditionalChange]) -> BTreeSet<FlagSet> {
    let mut results = BTreeSet::new();
    if changes.iter().all(|change| change.unchanged_since.is_some()) {
        results.insert(flags.clone());
    }
    for index in 0..changes.len() {
        let mut rest = changes.to_vec();
        let first = rest.remove(index);
        results.extend(results_in_any_order(&first.change.apply(flags), &rest));
    }
    results
}

fn check_added(before: &Contents, after: &Contents, effects: &[Effects], round: Round) {
    let added: BTreeMap<u32, &AddedMessage> =
        effects.iter().flat_map(|effects| &effects.added).map(|(&uid, added)| (uid, added)).collect();
    for uid in after.messages.keys().filter(|uid| !before.messages.contains_key(uid)) {
        assert!(added.contains_key(uid), "no operation has added UID {uid}");
    }
    for (uid, added) in added {
        assert!((before.next_uid..after.next_uid).contains(&uid), "UID {uid}, but UIDNEXT was {}", before.next_uid);
        let Some(message) = after.messages.get(&uid) else {
            assert!(!round.is_single, "UID {uid} was not added");
            continue;
        };
        let flags = match added {
            AddedMessage::Delivered { .. } => &FlagSet::default(),
            AddedMessage::Appended { flags, .. } => flags,
            AddedMessage::CopyOf(source) => match before.messages.get(source) {
                Some(source) => &source.flags,
                None => continue,
            },
        };
        assert!(!round.is_single || message.flags == *flags, "UID {uid} has {:?}, not {flags:?}", message.flags);
        assert!(message.modseq > before.highest_modseq, "UID {uid} has an old MODSEQ");
    }
}

/// Checks the numbers of the mailbox that the server has stated.
fn check_statements(before: &Contents, after: &Contents, effects: &Effects) {
    assert!(effects.uid_validities.iter().all(|stated| *stated == after.uid_validity), "UIDVALIDITY changes");
    let next_uids = before.next_uid..=after.next_uid;
    assert!(effects.next_uids.iter().all(|stated| next_uids.contains(stated)), "{:?}", effects.next_uids);
    let modseqs = before.highest_modseq..=after.highest_modseq;
    assert!(effects.highest_modseqs.iter().all(|stated| modseqs.contains(stated)), "{:?}", effects.highest_modseqs);
}

/// Checks which messages a single command has found, copied or reported.
fn check_selection(before: &Contents, effects: &Effects, round: Round) {
    assert!(effects.counts.iter().all(|stated| *stated == before.messages.len()), "{:?} messages", effects.counts);
    let Some(selection) = &effects.selection else { return };
    for uid in &selection.named {
        let Some(message) = before.messages.get(uid) else { continue };
        let is_expected = selection.key.matches(&message.flags, message.modseq);
        let is_matched = selection.matched.contains(uid);
        // A session can have old flags of a message.
        let is_known = matches!(selection.key, crate::command::SearchKey::All) || !round.is_shared;
        assert!(!is_known || is_matched == is_expected, "UID {uid} and {:?}: {is_matched}", selection.key);
    }
    let mut unknown = selection.matched.difference(&selection.named);
    assert!(unknown.next().is_none(), "messages that the command does not name: {:?}", selection.matched);
}
