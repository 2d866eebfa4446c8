//! What a client knows about the selected mailbox: only what the server has announced.

use std::collections::BTreeSet;

/// Flags and keywords, without `\Recent`.
pub(crate) type FlagSet = BTreeSet<String>;

/// A message as a client knows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownMessage {
    pub(crate) uid: Option<u32>,
    pub(crate) flags: Option<FlagSet>,
    pub(crate) modseq: Option<u64>,
}

/// The content of a FETCH reply.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) sequence: usize,
    pub(crate) uid: Option<u32>,
    pub(crate) flags: Option<FlagSet>,
    pub(crate) modseq: Option<u64>,
}

/// The messages in the order of their sequence numbers.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) messages: Vec<KnownMessage>,
    /// The UIDs of messages that were expunged.
    expunged: BTreeSet<u32>,
}

impl View {
    /// Returns the number of messages before the first one without a known UID.
    pub(crate) fn identified(&self) -> usize {
        self.messages.iter().position(|message| message.uid.is_none()).unwrap_or(self.messages.len())
    }

    /// Applies `* N EXISTS`. Messages disappear only with EXPUNGE.
    pub(crate) fn exists(&mut self, count: usize) {
        assert!(count >= self.messages.len(), "EXISTS {count} after {} messages", self.messages.len());
        self.messages.resize(count, KnownMessage::default());
    }

    /// Applies `* N EXPUNGE`.
    pub(crate) fn expunge(&mut self, sequence: usize) {
        assert!((1..=self.messages.len()).contains(&sequence), "EXPUNGE {sequence} of {}", self.messages.len());
        self.expunged.extend(self.messages.remove(sequence - 1).uid);
    }

    /// Applies `* N FETCH`. The sequence number must belong to the UID, and the MODSEQ never falls.
    pub(crate) fn fetched(&mut self, fetched: &Fetched) {
        let Fetched { sequence, uid, flags, modseq } = fetched;
        assert!((1..=self.messages.len()).contains(sequence), "FETCH {sequence} of {}", self.messages.len());
        let index = sequence - 1;
        if let Some(uid) = *uid {
            let known = self.messages[index].uid;
            assert!(known.is_none_or(|known| known == uid), "{sequence} is UID {known:?}, not {uid}");
            assert!(!self.expunged.contains(&uid), "UID {uid} appears again");
            let (before, after) = self.messages.split_at(index);
            let lower = before.iter().rev().find_map(|message| message.uid);
            let higher = after[1..].iter().find_map(|message| message.uid);
            assert!(lower.is_none_or(|lower| lower < uid), "UID {uid} after {lower:?}");
            assert!(higher.is_none_or(|higher| uid < higher), "UID {uid} before {higher:?}");
        }
        let message = &mut self.messages[index];
        assert!(modseq.is_none() || *modseq >= message.modseq, "MODSEQ {modseq:?} after {:?}", message.modseq);
        message.uid = message.uid.or(*uid);
        message.modseq = modseq.or(message.modseq);
        if flags.is_some() {
            message.flags.clone_from(flags);
        }
    }
}
