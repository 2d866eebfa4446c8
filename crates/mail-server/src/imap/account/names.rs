//! The names of mailboxes as a client sees them. INBOX is the mailbox of the login, and its folders are at the top level.
//! Other mailboxes that the login may read are below `Other Users`. `All mail` contains all messages.

use restante_auth::Scope;
use restante_mail::naming::MailboxName;
use restante_mailroom::Mailroom;
use restante_proto::imap::{OTHER_USERS, Refusal, SEPARATOR};

use super::Account;
use crate::imap::folders::{ALL_MAIL, FolderNote, FolderRef, INBOX};

impl Account {
    /// Returns what a name stands for. It need not exist, but the login may read it.
    pub(super) fn resolve(&self, mailroom: &Mailroom, name: &str) -> Result<FolderRef, Refusal> {
        let mailbox = if name == INBOX {
            if !self.may_read(&self.mailbox) {
                return Ok(FolderRef::Nothing);
            }
            self.mailbox.clone()
        } else if name == ALL_MAIL
            && let Some(all_mail) = self.all_mail()
        {
            return Ok(all_mail);
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

    /// Returns whether a mailbox is subscribed: that of the login and its folders unless a client has ended the
    /// subscription, others only if a client has subscribed.
    pub(super) fn is_subscribed(&self, mailbox: &MailboxName, note: Option<FolderNote>) -> bool {
        let note = note.unwrap_or_default();
        if self.owns(mailbox) { !note.is_unsubscribed } else { note.is_subscribed_by_others }
    }

    /// Returns whether this is the mailbox of the login or a folder of it.
    pub(super) fn owns(&self, mailbox: &MailboxName) -> bool {
        mailbox.owner_name() == self.mailbox.as_str()
    }

    /// Returns what `All mail` stands for. `None` if the login may not read all messages of its project.
    pub(super) fn all_mail(&self) -> Option<FolderRef> {
        (self.sees_others && self.grant.covers_home()).then(|| FolderRef::All(self.grant.home().cloned()))
    }

    /// Returns whether the client may change a mailbox.
    pub(in crate::imap) fn may_write(&self, folder: &FolderRef) -> bool {
        matches!(folder, FolderRef::Mailbox(mailbox) if self.grant.allows(Scope::Write, mailbox))
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
