//! What a name of a mailbox stands for, and what is known about mailboxes besides their messages.
//!
//! A folder without messages does not exist in the store. Such folders, and changed subscriptions, are kept in memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use data_encoding::HEXLOWER;
use md5::{Digest as _, Md5};
use parking_lot::Mutex;
use restante_mail::naming::{MailboxName, Project};
use restante_proto::imap::{Folder, OTHER_USERS, Refusal, SEPARATOR};

/// The name of the mailbox of the login.
pub(super) const INBOX: &str = "INBOX";
/// The mailbox with all messages.
pub(super) const ALL_MAIL: &str = "All mail";
/// The number of folders and subscriptions that are kept in memory.
const MAX_NOTES: usize = 10_000;
/// The number of folders of one mailbox that are kept in memory.
const MAX_NOTES_PER_OWNER: usize = 1_000;
/// Folders with a special use (RFC 6154).
const SPECIAL_USES: [(&str, &str); 5] =
    [("Archive", "\\Archive"), ("Drafts", "\\Drafts"), ("Junk", "\\Junk"), ("Sent", "\\Sent"), ("Trash", "\\Trash")];

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FolderRef {
    /// A mailbox, or a folder of one.
    Mailbox(MailboxName),
    /// All messages, or those of a project.
    All(Option<Project>),
    /// INBOX of a login that may not read the mailbox of its name.
    Nothing,
}

/// What is known about mailboxes besides their messages, in this process.
#[derive(Debug, Default)]
pub struct FolderNotes {
    notes: Mutex<Notes>,
    /// The UIDs up to which messages were listed in a session. They are not recent any more.
    listed_uids: Mutex<BTreeMap<MailboxName, u32>>,
}

#[derive(Debug, Default)]
struct Notes {
    by_mailbox: BTreeMap<MailboxName, FolderNote>,
    /// The number of notes that were ever added.
    count: u64,
}

/// What is known about a mailbox. A folder with a note exists, even without messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FolderNote {
    /// Whether a client has created it. Otherwise it had messages.
    is_created: bool,
    /// Whether clients of its own login have ended the subscription.
    pub(super) is_unsubscribed: bool,
    /// Whether clients of other logins have subscribed.
    pub(super) is_subscribed_by_others: bool,
    /// Ascends with the time at which the note was added.
    number: u64,
}

impl FolderNote {
    /// Returns whether the note can be dropped without a change that a client would notice while the folder has messages.
    fn is_spare(&self) -> bool {
        !self.is_created && !self.is_unsubscribed && !self.is_subscribed_by_others
    }
}

impl Notes {
    /// Drops notes until there is room for one of this mailbox.
    fn make_room(&mut self, mailbox: &MailboxName) -> Result<(), Refusal> {
        let folders = format!("{},", mailbox.owner_name());
        if range_of(&self.by_mailbox, &folders).count() >= MAX_NOTES_PER_OWNER {
            let spare = range_of(&self.by_mailbox, &folders).find(|(_, note)| note.is_spare());
            let Some(spare) = spare.map(|(name, _)| name.clone()) else {
                return Err(Refusal::Limit("There are too many folders without messages".to_owned()));
            };
            self.by_mailbox.remove(&spare);
        }
        if self.by_mailbox.len() >= MAX_NOTES {
            let oldest = self.by_mailbox.iter().min_by_key(|(_, note)| (!note.is_spare(), note.number));
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.by_mailbox.remove(&oldest);
            }
        }
        Ok(())
    }
}

impl FolderNotes {
    /// Returns what is known about a mailbox.
    pub(super) fn get(&self, mailbox: &MailboxName) -> Option<FolderNote> {
        self.notes.lock().by_mailbox.get(mailbox).copied()
    }

    /// Returns the mailboxes whose names start with this text.
    pub(super) fn with_prefix(&self, prefix: &str) -> Vec<(MailboxName, FolderNote)> {
        range_of(&self.notes.lock().by_mailbox, prefix).map(|(name, note)| (name.clone(), *note)).collect()
    }

    /// Adds a folder that a client creates. It is not subscribed.
    pub(super) fn create(&self, folder: &MailboxName) -> Result<(), Refusal> {
        self.update(folder, |note| (note.is_created, note.is_unsubscribed) = (true, true))
    }

    /// Changes what is known about a mailbox. A note is added if there is none. If there are too many, others are dropped:
    /// first those of folders with messages, then the oldest ones.
    pub(super) fn update(&self, mailbox: &MailboxName, change: impl FnOnce(&mut FolderNote)) -> Result<(), Refusal> {
        let mut notes = self.notes.lock();
        if !notes.by_mailbox.contains_key(mailbox) {
            notes.make_room(mailbox)?;
            notes.count += 1;
        }
        let number = notes.count;
        change(notes.by_mailbox.entry(mailbox.clone()).or_insert(FolderNote { number, ..FolderNote::default() }));
        Ok(())
    }

    /// Moves what is known about a folder to its new name.
    pub(super) fn rename(&self, from: &MailboxName, to: &MailboxName) {
        let mut notes = self.notes.lock();
        if let Some(note) = notes.by_mailbox.remove(from) {
            notes.by_mailbox.insert(to.clone(), note);
        }
    }

    /// Returns the UID from which on messages of a mailbox are recent. If the session may change the mailbox, they are not
    /// recent in other sessions any more.
    pub(super) fn first_recent_uid(&self, mailbox: &MailboxName, next_uid: u32, is_read_only: bool) -> u32 {
        let mut listed = self.listed_uids.lock();
        let first = listed.get(mailbox).map_or(1, |&last| last.saturating_add(1));
        if !is_read_only && next_uid > first {
            if listed.len() >= MAX_NOTES {
                listed.pop_first();
            }
            listed.insert(mailbox.clone(), next_uid - 1);
        }
        first
    }

    /// Forgets a folder.
    pub(super) fn remove(&self, mailbox: &MailboxName) {
        self.notes.lock().by_mailbox.remove(mailbox);
    }
}

/// Returns the notes of the mailboxes whose names start with this text.
fn range_of<'a>(
    notes: &'a BTreeMap<MailboxName, FolderNote>,
    prefix: &'a str,
) -> impl Iterator<Item = (&'a MailboxName, &'a FolderNote)> {
    let from = (Bound::Included(prefix), Bound::Unbounded);
    notes.range::<str, _>(from).take_while(move |(name, _)| name.as_str().starts_with(prefix))
}

/// Returns the special use of a mailbox.
fn special_use(name: &str) -> Option<&'static str> {
    if name == ALL_MAIL {
        return Some("\\All");
    }
    SPECIAL_USES.into_iter().find(|(folder, _)| *folder == name).map(|(_, special_use)| special_use)
}

/// Returns whether this name of a folder at the top level would hide other mailboxes, or be hidden by them.
pub(super) fn is_reserved(name: &str) -> bool {
    name == ALL_MAIL || OTHER_USERS.strip_suffix(SEPARATOR) == Some(name)
}

/// Returns a mailbox for a list.
pub(super) fn listed(name: String, is_subscribed: bool) -> Folder {
    Folder { special_use: special_use(&name), is_selectable: true, is_subscribed, name }
}

/// Returns the identity of a mailbox (RFC 8474): a text of letters and digits.
pub(super) fn mailbox_id(name: &str) -> String {
    format!("F{}", HEXLOWER.encode(&Md5::digest(name.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mailbox(name: &str) -> MailboxName {
        name.to_owned().into()
    }

    #[test]
    fn notes_of_an_owner_are_limited() {
        let notes = FolderNotes::default();
        notes.update(&mailbox("bob,Seen"), |_| {}).unwrap();
        for number in 1..MAX_NOTES_PER_OWNER {
            notes.create(&mailbox(&format!("bob,x{number}"))).unwrap();
        }
        // A note of a folder with messages is dropped first.
        notes.create(&mailbox("bob,last")).unwrap();
        assert_eq!(notes.get(&mailbox("bob,Seen")), None);
        let refused = notes.create(&mailbox("bob,more"));
        assert!(matches!(refused, Err(Refusal::Limit(_))), "{refused:?}");
        notes.create(&mailbox("ann,more")).unwrap();
        notes.create(&mailbox("bob,last")).unwrap();
        notes.remove(&mailbox("bob,last"));
        notes.create(&mailbox("bob,more")).unwrap();
    }

    #[test]
    fn oldest_notes_are_dropped() {
        let notes = FolderNotes::default();
        let created = |number: usize| mailbox(&format!("user{},{number}", number % 20));
        for number in 1..MAX_NOTES {
            notes.create(&created(number)).unwrap();
        }
        notes.update(&mailbox("bob,Seen"), |_| {}).unwrap();
        notes.create(&mailbox("bob,one")).unwrap();
        assert!(notes.get(&mailbox("bob,Seen")).is_none() && notes.get(&created(1)).is_some());
        notes.create(&mailbox("bob,two")).unwrap();
        assert!(notes.get(&created(1)).is_none() && notes.get(&created(2)).is_some());
        assert_eq!(notes.with_prefix("").len(), MAX_NOTES);
    }
}
