//! The names of mailboxes as a client sees them. INBOX is the mailbox of the login, and its folders are at the top level.
//! Other mailboxes that the login may read are below `Other Users`. `All mail` contains all messages.
//!
//! A folder without messages does not exist in the store. Such folders, and subscriptions, are kept in memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use data_encoding::HEXLOWER;
use md5::{Digest as _, Md5};
use parking_lot::Mutex;
use restante_mail::naming::{MailboxName, Project};
use restante_proto::imap::{Folder, OTHER_USERS, Refusal, SEPARATOR};

use super::account::Account;

/// The name of the mailbox of the login.
pub(super) const INBOX: &str = "INBOX";
/// The mailbox with all messages.
pub(super) const ALL_MAIL: &str = "All mail";
/// The number of folders that are kept in memory.
const MAX_NOTES: usize = 10_000;
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
    folders: Mutex<BTreeMap<MailboxName, FolderNote>>,
    /// The UIDs up to which messages were listed in a session. They are not recent any more.
    listed_uids: Mutex<BTreeMap<MailboxName, u32>>,
}

/// What is known about a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FolderNote {
    /// Whether it exists, even without messages.
    pub(super) exists: bool,
    /// Whether it is subscribed.
    pub(super) is_subscribed: bool,
}

impl FolderNotes {
    /// Returns what is known about a folder.
    pub(super) fn get(&self, mailbox: &MailboxName) -> Option<FolderNote> {
        self.folders.lock().get(mailbox).copied()
    }

    /// Returns the folders whose names start with this text.
    pub(super) fn with_prefix(&self, prefix: &str) -> Vec<(MailboxName, FolderNote)> {
        let notes = self.folders.lock();
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let matching = notes.range::<str, _>(from).take_while(|(name, _)| name.as_str().starts_with(prefix));
        matching.map(|(name, note)| (name.clone(), *note)).collect()
    }

    /// Changes what is known about a folder.
    pub(super) fn update(&self, mailbox: &MailboxName, change: impl FnOnce(&mut FolderNote)) -> Result<(), Refusal> {
        let mut notes = self.folders.lock();
        if !notes.contains_key(mailbox) && notes.len() >= MAX_NOTES {
            return Err(Refusal::Limit("There are too many folders without messages".to_owned()));
        }
        change(notes.entry(mailbox.clone()).or_insert(FolderNote { exists: false, is_subscribed: false }));
        Ok(())
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
        self.folders.lock().remove(mailbox);
    }
}

impl Account {
    /// Returns what a name stands for. It need not exist, but the login may read it.
    pub(super) fn resolve(&self, mailroom: &restante_mailroom::Mailroom, name: &str) -> Result<FolderRef, Refusal> {
        let mailbox = if name == INBOX {
            match self.may_read(&self.mailbox) {
                true => self.mailbox.clone(),
                false => return Ok(FolderRef::Nothing),
            }
        } else if name == ALL_MAIL
            && let Some(project) = self.all_mail()
        {
            return Ok(FolderRef::All(project));
        } else if let Some(name) = name.strip_prefix(OTHER_USERS) {
            let (owner, folder) = match name.split_once(SEPARATOR) {
                Some((owner, folder)) => (owner, Some(folder)),
                None => (name, None),
            };
            let owner = owner_of_text(owner);
            let mailbox = mailroom.mailbox_in(self.grant.home(), &owner).map_err(|_| Refusal::NoSuchMailbox)?;
            if mailbox.shown() != owner || mailbox.folder().is_some() || !self.sees_others {
                return Err(Refusal::NoSuchMailbox);
            }
            in_folder(mailbox, folder)?
        } else {
            in_folder(self.mailbox.clone(), Some(name))?
        };
        if self.may_read(&mailbox) { Ok(FolderRef::Mailbox(mailbox)) } else { Err(Refusal::NoSuchMailbox) }
    }

    /// Returns the name of a mailbox for the client. `None` if the client does not see it.
    pub(super) fn name_of(&self, mailbox: &MailboxName) -> Option<String> {
        if !self.may_read(mailbox) {
            return None;
        }
        let owner = mailbox.owner();
        match (owner == self.mailbox, mailbox.folder()) {
            (true, None) => Some(INBOX.to_owned()),
            (true, Some(folder)) => Some(folder.to_owned()),
            (false, _) if !self.sees_others => None,
            (false, folder) => {
                let owner = text_of_owner(owner.shown_in(self.grant.home()));
                Some(match folder {
                    Some(folder) => format!("{OTHER_USERS}{owner}{SEPARATOR}{folder}"),
                    None => format!("{OTHER_USERS}{owner}"),
                })
            }
        }
    }

    /// Returns the project of `All mail`, or `None` inside if it contains all messages. `None` if the login may not read
    /// all of them.
    pub(super) fn all_mail(&self) -> Option<Option<Project>> {
        (self.sees_others && self.grant.covers_home()).then(|| self.grant.home().cloned())
    }
}

fn in_folder(owner: MailboxName, folder: Option<&str>) -> Result<MailboxName, Refusal> {
    let Some(folder) = folder else { return Ok(owner) };
    owner.in_folder(folder).map_err(|error| Refusal::Cannot(error.to_string()))
}

/// A slash in the name of a mailbox would separate levels, so the client sees a backslash, which no mailbox has in its
/// name.
fn text_of_owner(owner: &str) -> String {
    owner.replace(SEPARATOR, "\\")
}

fn owner_of_text(text: &str) -> String {
    text.replace('\\', "/")
}

/// Returns the special use of a mailbox.
fn special_use(name: &str) -> Option<&'static str> {
    if name == ALL_MAIL {
        return Some("\\All");
    }
    SPECIAL_USES.into_iter().find(|(folder, _)| *folder == name).map(|(_, special_use)| special_use)
}

/// Returns a mailbox for a list.
pub(super) fn listed(name: String, note: Option<FolderNote>) -> Folder {
    let (exists, is_subscribed) = note.map_or((true, true), |note| (note.exists, note.is_subscribed));
    Folder { special_use: special_use(&name), is_selectable: exists, is_subscribed, name }
}

/// Returns the identity of a mailbox (RFC 8474): a text of letters and digits.
pub(super) fn mailbox_id(name: &str) -> String {
    format!("F{}", HEXLOWER.encode(&Md5::digest(name.as_bytes())))
}
