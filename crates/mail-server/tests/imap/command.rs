//! Commands of clients, and how they are chosen at random.

use std::fmt::Write as _;
use std::ops::Range;

use crate::random::Random;
use crate::view::{FlagSet, View};

/// The flags and keywords that clients set.
const FLAGS: [&str; 7] = ["\\Seen", "\\Deleted", "\\Deleted", "\\Flagged", "\\Answered", "red", "blue"];
/// The mailbox that all clients select, and the other one that they copy messages to.
pub(crate) const INBOX: &str = "INBOX";
pub(crate) const ARCHIVE: &str = "Archive";

/// A command on the selected mailbox.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    Noop,
    Idle,
    /// The end of IDLE.
    Done,
    Select,
    Status,
    Append {
        subject: String,
        flags: FlagSet,
    },
    Fetch {
        set: MessageSet,
        items: &'static str,
        changed_since: Option<u64>,
    },
    Search {
        key: SearchKey,
        is_uid: bool,
    },
    Store {
        set: MessageSet,
        change: FlagChange,
        is_silent: bool,
        unchanged_since: Option<u64>,
    },
    /// EXPUNGE, or UID EXPUNGE of a set.
    Expunge(Option<MessageSet>),
    Copy {
        set: MessageSet,
        mailbox: &'static str,
        is_move: bool,
    },
}

/// The messages of a command: a range of sequence numbers, or of the UIDs of the same messages.
#[derive(Clone, Debug)]
pub(crate) struct MessageSet {
    pub(crate) indices: Range<usize>,
    pub(crate) is_uid: bool,
    text: String,
}

/// A change of flags.
#[derive(Clone, Debug)]
pub(crate) struct FlagChange {
    pub(crate) operation: FlagOperation,
    pub(crate) flags: FlagSet,
}

/// How the flags of a command are combined with those of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlagOperation {
    Replace,
    Add,
    Remove,
    /// Keywords are replaced, and system flags stay.
    ReplaceKeywords,
}

/// What a search looks for.
#[derive(Clone, Debug)]
pub(crate) enum SearchKey {
    All,
    Seen,
    Deleted,
    Red,
    ModSeq(u64),
}

impl Command {
    /// Returns the command as a client sends it. The message of APPEND follows as a literal.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Noop => "NOOP".to_owned(),
            Self::Idle => "IDLE".to_owned(),
            Self::Done => "DONE".to_owned(),
            Self::Select => format!("SELECT {INBOX}"),
            Self::Status => format!("STATUS {INBOX} (MESSAGES UIDNEXT UIDVALIDITY HIGHESTMODSEQ)"),
            Self::Append { subject, flags } => {
                let message = message_of(subject);
                format!("APPEND {INBOX} {} {{{}+}}\r\n{message}", list(flags), message.len())
            }
            Self::Fetch { set, items, changed_since } => {
                let mut text = format!("{} ({items})", set.command("FETCH"));
                if let Some(modseq) = changed_since {
                    let _ = write!(text, " (CHANGEDSINCE {modseq})");
                }
                text
            }
            Self::Search { key, is_uid } => format!("{}SEARCH {}", if *is_uid { "UID " } else { "" }, key.text()),
            Self::Store { set, change, is_silent, unchanged_since } => {
                let mut text = set.command("STORE");
                if let Some(modseq) = unchanged_since {
                    let _ = write!(text, " (UNCHANGEDSINCE {modseq})");
                }
                let sign = match change.operation {
                    FlagOperation::Replace | FlagOperation::ReplaceKeywords => "",
                    FlagOperation::Add => "+",
                    FlagOperation::Remove => "-",
                };
                let silent = if *is_silent { ".SILENT" } else { "" };
                text + &format!(" {sign}FLAGS{silent} {}", list(&change.flags))
            }
            Self::Expunge(None) => "EXPUNGE".to_owned(),
            Self::Expunge(Some(set)) => set.command("EXPUNGE"),
            Self::Copy { set, mailbox, is_move } => {
                format!("{} {mailbox}", set.command(if *is_move { "MOVE" } else { "COPY" }))
            }
        }
    }

    /// Returns whether the server may announce EXPUNGE during this command (RFC 3501 section 7.4.1).
    pub(crate) fn may_renumber(&self) -> bool {
        match self {
            Self::Fetch { set, .. } | Self::Store { set, .. } => set.is_uid,
            Self::Search { is_uid, .. } => *is_uid,
            _ => true,
        }
    }

    /// Returns whether the command enables CONDSTORE (RFC 7162 section 3.1).
    pub(crate) fn enables_condstore(&self) -> bool {
        match self {
            Self::Fetch { items, changed_since, .. } => changed_since.is_some() || items.contains("MODSEQ"),
            Self::Search { key, .. } => matches!(key, SearchKey::ModSeq(_)),
            Self::Store { unchanged_since, .. } => unchanged_since.is_some(),
            Self::Status => true,
            _ => false,
        }
    }

    /// Chooses a command of a client with this view.
    pub(crate) fn random(random: &mut Random, view: &View, uses_condstore: bool, subject: String) -> Self {
        let (known, count) = (view.identified(), view.messages.len());
        if known < count && !random.one_in(3) {
            let set = MessageSet::of_indices(known..count);
            return Self::Fetch { set, items: random_items(random, uses_condstore), changed_since: None };
        }
        let modseq = || view.messages.iter().filter_map(|message| message.modseq);
        let choice = random.below(100);
        let needs_messages = (0..65).contains(&choice);
        match choice {
            _ if needs_messages && known == 0 => Self::Append { subject, flags: random_flags(random) },
            0..12 => {
                let set = MessageSet::random(random, view);
                Self::Fetch { set, items: random_items(random, uses_condstore), changed_since: None }
            }
            12..17 => Self::Fetch {
                set: MessageSet::random(random, view),
                items: random.choose(&["UID BODY.PEEK[HEADER.FIELDS (SUBJECT)]", "UID BODY[]", "BODY[] FLAGS UID"]),
                changed_since: None,
            },
            17..21 if uses_condstore => Self::Fetch {
                set: MessageSet::random(random, view),
                items: "UID FLAGS",
                changed_since: Some(modseq().nth(random.below(known)).unwrap_or(1)),
            },
            17..45 => Self::Store {
                set: MessageSet::random(random, view),
                change: FlagChange {
                    operation: random.choose(&[FlagOperation::Replace, FlagOperation::Add, FlagOperation::Remove]),
                    flags: random_flags(random),
                },
                is_silent: random.one_in(2),
                unchanged_since: (uses_condstore && random.one_in(3))
                    .then(|| if random.one_in(2) { modseq().max() } else { modseq().nth(random.below(known)) })
                    .map(|modseq| modseq.unwrap_or(1)),
            },
            45..51 if known == count => Self::Expunge(None),
            45..54 => Self::Expunge(Some(MessageSet::of_uids(view, random.part_of(0..known)))),
            54..65 => Self::Copy {
                set: MessageSet::random(random, view),
                mailbox: random.choose(&[INBOX, ARCHIVE]),
                is_move: random.one_in(2),
            },
            65..75 => Self::Append { subject, flags: random_flags(random) },
            75..83 => {
                let keys = [SearchKey::All, SearchKey::Seen, SearchKey::Deleted, SearchKey::Red];
                let key = if uses_condstore && random.one_in(4) {
                    SearchKey::ModSeq(modseq().max().unwrap_or(1))
                } else {
                    random.choose(&keys)
                };
                Self::Search { key, is_uid: random.one_in(2) }
            }
            83..86 if uses_condstore => Self::Status,
            86..90 => Self::Select,
            90..96 => Self::Idle,
            _ => Self::Noop,
        }
    }
}

impl MessageSet {
    /// Returns a set of messages whose UIDs are known.
    fn random(random: &mut Random, view: &View) -> Self {
        let indices = random.part_of(0..view.identified());
        let is_uid = random.one_in(2);
        let mut set = if is_uid { Self::of_uids(view, indices) } else { Self::of_indices(indices) };
        if set.indices.end == view.messages.len() && random.one_in(2) {
            let first = set.text.split(':').next().unwrap_or_default();
            set.text = format!("{first}:*");
        }
        set
    }

    pub(crate) fn of_indices(indices: Range<usize>) -> Self {
        let text = format!("{}:{}", indices.start + 1, indices.end);
        Self { indices, is_uid: false, text }
    }

    fn of_uids(view: &View, indices: Range<usize>) -> Self {
        let uid = |index: usize| view.messages[index].uid.expect("the UIDs are known");
        let text = format!("{}:{}", uid(indices.start), uid(indices.end - 1));
        Self { indices, is_uid: true, text }
    }

    fn command(&self, name: &str) -> String {
        format!("{}{name} {}", if self.is_uid { "UID " } else { "" }, self.text)
    }
}

impl FlagChange {
    /// Returns the flags of a message after the change.
    pub(crate) fn apply(&self, flags: &FlagSet) -> FlagSet {
        match self.operation {
            FlagOperation::Replace => self.flags.clone(),
            FlagOperation::Add => flags | &self.flags,
            FlagOperation::Remove => flags - &self.flags,
            FlagOperation::ReplaceKeywords => {
                flags.iter().filter(|flag| flag.starts_with('\\')).chain(&self.flags).cloned().collect()
            }
        }
    }
}

impl SearchKey {
    fn text(&self) -> String {
        match self {
            Self::All => "ALL".to_owned(),
            Self::Seen => "SEEN".to_owned(),
            Self::Deleted => "DELETED".to_owned(),
            Self::Red => "KEYWORD red".to_owned(),
            Self::ModSeq(modseq) => format!("MODSEQ {modseq}"),
        }
    }

    /// Returns whether a message matches.
    pub(crate) fn matches(&self, flags: &FlagSet, modseq: u64) -> bool {
        match self {
            Self::All => true,
            Self::Seen => flags.contains("\\Seen"),
            Self::Deleted => flags.contains("\\Deleted"),
            Self::Red => flags.contains("red"),
            Self::ModSeq(lowest) => modseq >= *lowest,
        }
    }
}

/// Returns the source of a message.
pub(crate) fn message_of(subject: &str) -> String {
    format!("From: ann@x.org\r\nSubject: {subject}\r\n\r\nHello\r\n")
}

/// Returns random flags, rarely none.
pub(crate) fn random_flags(random: &mut Random) -> FlagSet {
    let count = random.below(4).min(2);
    (0..count).map(|_| random.choose(&FLAGS).to_owned()).collect()
}

fn random_items(random: &mut Random, uses_condstore: bool) -> &'static str {
    if uses_condstore && random.one_in(2) { "UID FLAGS MODSEQ" } else { "UID FLAGS" }
}

fn list(flags: &FlagSet) -> String {
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    format!("({})", flags.join(" "))
}
