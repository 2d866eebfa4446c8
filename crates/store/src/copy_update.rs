//! Changes of the marks of copies, and their results.

use restante_mail::message::{Flags, Marks};
use restante_mail::tags::Tags;

use crate::CopyKey;

/// A change of the marks of a copy. `None` keeps the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyUpdate {
    /// The copy.
    pub copy: CopyKey,
    /// Whether it is marked as read.
    pub seen: Option<bool>,
    /// The flags.
    pub flags: Option<Flags>,
    /// The tags.
    pub tags: Option<Tags>,
    /// The update is made only if the copy still has this MODSEQ.
    pub if_modseq: Option<u64>,
}

impl CopyUpdate {
    /// Creates an update that changes nothing.
    pub fn new(copy: CopyKey) -> Self {
        Self { copy, seen: None, flags: None, tags: None, if_modseq: None }
    }

    /// Makes the change in these marks of the copy. If it changes anything, they get the MODSEQ that `next_modseq` returns.
    /// Returns what has changed. `None` if the copy has another MODSEQ than the one required.
    pub(crate) fn apply(&self, marks: &mut Marks, next_modseq: impl FnOnce() -> u64) -> Option<ChangedMarks> {
        if self.if_modseq.is_some_and(|modseq| modseq != marks.modseq) {
            return None;
        }
        let seen = self.seen.unwrap_or(marks.seen);
        let flags = self.flags.unwrap_or(marks.flags);
        let tags = self.tags.as_ref().unwrap_or(&marks.tags);
        let changed = ChangedMarks { seen: seen != marks.seen, flags: flags != marks.flags, tags: *tags != marks.tags };
        if !changed.is_empty() {
            *marks = Marks { seen, flags, tags: tags.clone(), modseq: next_modseq() };
        }
        Some(changed)
    }
}

/// The marks that an update has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangedMarks {
    /// Whether the read mark was changed.
    pub seen: bool,
    /// Whether the flags were changed.
    pub flags: bool,
    /// Whether the tags were changed.
    pub tags: bool,
}

impl ChangedMarks {
    /// Returns whether nothing was changed.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// The result of a [`CopyUpdate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateOutcome {
    /// The copy has these marks now, and these of them were changed.
    Updated(Marks, ChangedMarks),
    /// The copy has another MODSEQ than [`CopyUpdate::if_modseq`]. It was not changed.
    Conflict,
    /// The copy does not exist.
    Missing,
}

impl UpdateOutcome {
    /// Returns the marks of a copy that was updated.
    pub fn updated(&self) -> Option<&Marks> {
        match self {
            Self::Updated(marks, _) => Some(marks),
            Self::Conflict | Self::Missing => None,
        }
    }
}
