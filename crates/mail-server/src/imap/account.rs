//! What a client may do after the login, and its operations.

mod names;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;

use restante_auth::{Grant, Scope};
use restante_mail::message::{Flags, MessageId};
use restante_mail::naming::{MailboxName, Project};
use restante_mailroom::{
    CopyKey, CopyUpdate, DeletionCause, Import, MailboxPage, Mailroom, MessageSelector, Page, UpdateOutcome,
};
use restante_proto::imap::command::StatusItem;
use restante_proto::imap::{
    Folder, MailboxStatus, NewMarks, Operation, Outcome, Quota, Refusal, SEPARATOR, Update, Updated,
};
use restante_proto::sasl::Credentials;

use super::folders::{ALL_MAIL, FolderRef, INBOX, is_reserved, listed, mailbox_id};
use super::messages::state_of;
use super::open_mailbox::{Contents, OpenMailbox};
use super::{Failure, Server, messages};
use crate::AcceptedConnection;
use crate::mailbox_login::{LoginRefusal, LoginRequest};

/// The maximum number of mailboxes in a list.
const MAX_LISTED: usize = 10_000;
/// The number of mailboxes that are read from the store at once.
const MAILBOX_PAGE_SIZE: usize = 1000;
/// The number of messages that STATUS reads at once.
const MESSAGE_PAGE_SIZE: usize = 1000;

/// The mailbox of users and tokens whose name cannot be one, and of logins without a user.
const UNNAMED_MAILBOX: &str = "inbox";

/// What a client may do after the login.
pub(super) struct Account {
    /// The mailbox of the login.
    pub(super) mailbox: MailboxName,
    pub(super) grant: Grant,
    /// Whether the client sees mailboxes besides its own. Without accounts, the login is only the name of a mailbox.
    pub(super) sees_others: bool,
}

impl Account {
    /// Checks a login.
    pub(super) async fn log_in(
        server: &Server,
        connection: &mut AcceptedConnection<'_>,
        credentials: &Credentials,
        ip: Option<IpAddr>,
    ) -> Result<Self, Refusal> {
        let Server { context, login, .. } = server;
        let name = match credentials.authorization_id.as_str() {
            "" => &credentials.user,
            authorization_id => authorization_id,
        };
        let (name, user) = login.split_mailbox_and_user(name, &credentials.user);
        let request = LoginRequest { command: "LOGIN", mailbox: name, user, proof: (&credentials.proof).into(), ip };
        let session_name = connection.session_name;
        let logged_in = login.log_in(context, session_name, request, &mut connection.shutdown).await;
        let (mailbox, grant) = logged_in.map_err(|refusal| match refusal {
            LoginRefusal::WrongCredentials => Refusal::WrongCredentials,
            LoginRefusal::NotPermitted => Refusal::NotPermitted,
            LoginRefusal::InvalidName(reason) => Refusal::Cannot(format!("Bad mailbox name: {reason}")),
            LoginRefusal::Unavailable => Refusal::Unavailable,
        })?;
        // Without an account, the login is only the name of a mailbox.
        let sees_others = grant.name().is_some();
        let mailbox = mailbox_of_login(&context.mailroom, &grant, mailbox, name)?;
        Ok(Self { mailbox, grant, sees_others })
    }

    pub(super) fn may_read(&self, mailbox: &MailboxName) -> bool {
        self.grant.allows(Scope::Read, mailbox)
    }

    /// Performs an operation that needs no state of the connection.
    pub(super) async fn perform(
        &self,
        server: &Server,
        open: Option<&OpenMailbox>,
        operation: Operation,
    ) -> Result<Outcome, Failure> {
        let mailroom = &server.context.mailroom;
        match operation {
            Operation::List => Ok(Outcome::Folders(self.list(server).await?)),
            Operation::Status { mailbox, items } => {
                let folder = self.existing_folder(server, &mailbox).await?;
                Ok(Outcome::Status(self.status(server, &mailbox, folder, &items).await?))
            }
            Operation::Create(name) => self.create(server, &name).await,
            Operation::Delete(name) => self.delete(server, &name).await,
            Operation::Rename { from, to } => self.rename(server, &from, &to).await,
            Operation::Subscribe { mailbox, is_subscribed } => self.subscribe(server, &mailbox, is_subscribed).await,
            Operation::Quota(mailbox) => Ok(Outcome::Quota(self.quota(server, &mailbox).await?)),
            Operation::Append { append, marks } => {
                let mailbox = self.target(server, &append.mailbox).await?;
                let NewMarks { seen, flags, tags } = marks;
                let received = append.received.unwrap_or_else(jiff::Timestamp::now);
                let import = Import { mailbox, received, seen, flags, tags, message: append.message };
                // Read first: after the message is stored, an error would say that it is not.
                let uid_validity = mailroom.uid_validity().await?;
                let stored = mailroom.import(import).await?;
                Ok(Outcome::Appended { uid_validity, uid: stored.number })
            }
            operation => match open {
                Some(open) => self.perform_on_messages(server, open, operation).await,
                None => Err(Refusal::NoSuchMailbox.into()),
            },
        }
    }

    async fn perform_on_messages(
        &self,
        server: &Server,
        open: &OpenMailbox,
        operation: Operation,
    ) -> Result<Outcome, Failure> {
        let mailroom = &server.context.mailroom;
        match operation {
            Operation::Properties(ids) => open.properties(mailroom, &ids).await,
            Operation::Update(updates) => {
                let mailbox = self.writable(open)?;
                let updates = updates.into_iter().map(|update| copy_update(mailbox, update)).collect();
                let outcomes = mailroom.update_copies(updates).await?;
                Ok(Outcome::Updated(outcomes.into_iter().map(updated).collect()))
            }
            Operation::Remove(ids) => {
                let mailbox = self.writable(open)?;
                Ok(Outcome::Removed(messages::remove_deleted(mailroom, mailbox, ids).await?))
            }
            Operation::Copy { ids, mailbox, is_move, all_messages, all_bytes, bytes: _ } => {
                if is_move {
                    self.writable(open)?;
                }
                let target = self.target(server, &mailbox).await?;
                messages::check_limits(mailroom, &target, all_messages, all_bytes)?;
                let copies = open.copies(mailroom, &ids).await?;
                messages::copy(mailroom, copies, &target, is_move).await
            }
            Operation::RemoveCopies { ids, mailbox } => {
                let target = self.target(server, &mailbox).await?;
                let copies = ids.into_iter().map(|id| CopyKey { mailbox: target.clone(), id }).collect();
                mailroom.remove_copies(copies, DeletionCause::Request).await?;
                Ok(Outcome::Done)
            }
            _ => Err(Refusal::Cannot("This is not possible in this mailbox".to_owned()).into()),
        }
    }

    /// Returns the selected mailbox if the client may change it.
    fn writable<'a>(&self, open: &'a OpenMailbox) -> Result<&'a MailboxName, Refusal> {
        match &open.contents {
            Contents::Mailbox(mailbox) if self.grant.allows(Scope::Write, mailbox) => Ok(mailbox),
            _ => Err(Refusal::NotPermitted),
        }
    }

    /// Returns the mailbox of a name if the client may add messages to it. A folder must exist.
    async fn target(&self, server: &Server, name: &str) -> Result<MailboxName, Failure> {
        let folder = match self.existing_folder(server, name).await {
            Err(Failure::Refusal(Refusal::NoSuchMailbox)) => return Err(Refusal::TryCreate.into()),
            folder => folder?,
        };
        match folder {
            FolderRef::Mailbox(mailbox) if self.grant.allows(Scope::Write, &mailbox) => Ok(mailbox),
            _ => Err(Refusal::NotPermitted.into()),
        }
    }

    /// Returns what a name stands for, if it exists. A mailbox always exists, a folder only if it was created or has
    /// messages. From now on it exists in this process even without messages: a folder does not disappear when its last
    /// message is deleted.
    pub(super) async fn existing_folder(&self, server: &Server, name: &str) -> Result<FolderRef, Failure> {
        let folder = self.resolve(&server.context.mailroom, name)?;
        if let FolderRef::Mailbox(mailbox) = &folder
            && mailbox.folder().is_some()
            && server.folders.get(mailbox).is_none()
        {
            if !has_messages(&server.context.mailroom, mailbox).await? {
                return Err(Refusal::NoSuchMailbox.into());
            }
            // If there is no room, the folder exists as long as it has messages.
            let _ = server.folders.update(mailbox, |_| {});
        }
        Ok(folder)
    }

    async fn list(&self, server: &Server) -> Result<Vec<Folder>, Failure> {
        let mailroom = &server.context.mailroom;
        let mut folders = BTreeMap::new();
        let prefixes =
            if self.sees_others { self.grant.prefixes() } else { vec![format!("{},", self.mailbox.as_str())] };
        for prefix in prefixes {
            let mut page = MailboxPage { prefix: prefix.clone(), after: String::new(), limit: MAILBOX_PAGE_SIZE };
            while folders.len() < MAX_LISTED {
                let mailboxes = mailroom.mailboxes(page.clone()).await?;
                let Some(last) = mailboxes.last() else { break };
                page.after = last.name.to_string();
                for mailbox in mailboxes {
                    if let Some(name) = self.name_of(&mailbox.name) {
                        folders.insert(name.clone(), listed(name, self.is_subscribed(&mailbox.name, None)));
                    }
                }
            }
            for (mailbox, note) in server.folders.with_prefix(&prefix) {
                let Some(name) = self.name_of(&mailbox) else { continue };
                let is_subscribed = self.is_subscribed(&mailbox, Some(note));
                if mailbox.folder().is_some() || is_subscribed {
                    folders.insert(name.clone(), listed(name, is_subscribed));
                }
            }
        }
        let inbox_note = server.folders.get(&self.mailbox).filter(|_| self.may_read(&self.mailbox));
        folders.insert(INBOX.to_owned(), listed(INBOX.to_owned(), self.is_subscribed(&self.mailbox, inbox_note)));
        if self.all_mail().is_some() {
            folders.insert(ALL_MAIL.to_owned(), listed(ALL_MAIL.to_owned(), false));
        }
        Ok(folders.into_values().collect())
    }

    async fn status(
        &self,
        server: &Server,
        name: &str,
        folder: FolderRef,
        items: &[StatusItem],
    ) -> Result<MailboxStatus, Failure> {
        let mailroom = &server.context.mailroom;
        let uid_validity = mailroom.uid_validity().await?;
        let empty = MailboxStatus {
            uid_validity,
            next_uid: 1,
            highest_modseq: 1,
            mailbox_id: mailbox_id(name),
            ..MailboxStatus::default()
        };
        match folder {
            FolderRef::Nothing => Ok(empty),
            FolderRef::All(project) => {
                let overview = mailroom.overview(project.as_ref()).await?;
                let next_uid = u32::try_from(overview.messages).unwrap_or(u32::MAX).saturating_add(1);
                let (project, has) = (project.as_ref(), |item| items.contains(&item));
                Ok(MailboxStatus {
                    messages: overview.messages,
                    unseen: overview.unread,
                    deleted: if has(StatusItem::Deleted) { count_deleted(mailroom, project).await? } else { 0 },
                    bytes: if has(StatusItem::Size) { total_bytes(mailroom, project).await? } else { 0 },
                    next_uid,
                    uid_validity: server.next_session_uid_validity(),
                    // A session that selects it now assigns one MODSEQ to each message.
                    highest_modseq: overview.messages.max(1),
                    ..empty
                })
            }
            FolderRef::Mailbox(mailbox) => {
                let needs_list = items.contains(&StatusItem::Deleted) || items.contains(&StatusItem::Recent);
                let limit = if needs_list { MESSAGE_PAGE_SIZE } else { 0 };
                let mut index = mailroom.index(&mailbox, MessageId::ZERO, limit).await?;
                let first_recent = server.folders.first_recent_uid(&mailbox, index.next_number, true);
                let (mut recent, mut deleted) = (0, 0);
                while let Some(last) = index.entries.last().map(|entry| entry.id) {
                    for entry in &index.entries {
                        recent += u64::from(entry.number >= first_recent);
                        deleted += u64::from(entry.marks.flags.contains(Flags::DELETED));
                    }
                    index = mailroom.index(&mailbox, last, limit).await?;
                }
                let state = state_of(mailroom, &mailbox).await?;
                Ok(MailboxStatus {
                    recent,
                    messages: state.as_ref().map_or(0, |state| state.messages),
                    unseen: state.as_ref().map_or(0, |state| state.unseen),
                    bytes: state.as_ref().map_or(0, |state| state.bytes),
                    deleted,
                    next_uid: index.next_number,
                    highest_modseq: index.highest_modseq,
                    mailbox_id: mailbox_id(mailbox.as_str()),
                    ..empty
                })
            }
        }
    }

    async fn create(&self, server: &Server, name: &str) -> Result<Outcome, Failure> {
        // RFC 3501 section 6.3.3: a separator at the end announces mailboxes below.
        let name = name.strip_suffix('/').unwrap_or(name);
        let mailbox = self.new_folder(server, name)?;
        match self.existing_folder(server, name).await {
            Err(Failure::Refusal(Refusal::NoSuchMailbox)) => {}
            Ok(_) => return Err(Refusal::AlreadyExists.into()),
            Err(failure) => return Err(failure),
        }
        server.folders.create(&mailbox)?;
        Ok(Outcome::Done)
    }

    /// Returns the folder of a name if the client may create it.
    fn new_folder(&self, server: &Server, name: &str) -> Result<MailboxName, Refusal> {
        let mailbox = self.own_folder(server, name, Refusal::AlreadyExists)?;
        let top = mailbox.folder().and_then(|folder| folder.split(SEPARATOR).next());
        if top.is_some_and(is_reserved) {
            return Err(Refusal::Cannot("Other mailboxes have this name".to_owned()));
        }
        Ok(mailbox)
    }

    /// Returns the folder of a name if the client may change it. Mailboxes that are not folders always exist: they are
    /// refused with `refusal`.
    fn own_folder(&self, server: &Server, name: &str, refusal: Refusal) -> Result<MailboxName, Refusal> {
        match self.resolve(&server.context.mailroom, name)? {
            FolderRef::Mailbox(mailbox) if mailbox.folder().is_none() => Err(refusal),
            FolderRef::Mailbox(mailbox) if self.grant.allows(Scope::Write, &mailbox) => Ok(mailbox),
            FolderRef::Mailbox(_) => Err(Refusal::NotPermitted),
            FolderRef::All(_) | FolderRef::Nothing => Err(refusal),
        }
    }

    async fn delete(&self, server: &Server, name: &str) -> Result<Outcome, Failure> {
        let mailroom = &server.context.mailroom;
        let refusal = Refusal::Cannot("This mailbox cannot be deleted".to_owned());
        let mailbox = self.own_folder(server, name, refusal)?;
        match self.existing_folder(server, name).await {
            Err(Failure::Refusal(Refusal::NoSuchMailbox)) => {
                let has_children = !self.below(server, &mailbox).await?.is_empty();
                return Err(if has_children { Refusal::HasChildren } else { Refusal::NoSuchMailbox }.into());
            }
            other => other?,
        };
        mailroom.purge(&mailbox).await?;
        server.folders.remove(&mailbox);
        Ok(Outcome::Done)
    }

    /// Returns the folders below a folder.
    async fn below(&self, server: &Server, mailbox: &MailboxName) -> Result<Vec<MailboxName>, Failure> {
        let prefix = format!("{mailbox}/");
        let page = MailboxPage { prefix: prefix.clone(), after: String::new(), limit: MAX_LISTED };
        let mailboxes = server.context.mailroom.mailboxes(page).await?;
        let mut names: Vec<MailboxName> = mailboxes.into_iter().map(|state| state.name).collect();
        let notes = server.folders.with_prefix(&prefix);
        names.extend(notes.into_iter().map(|(name, _)| name));
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    async fn rename(&self, server: &Server, from: &str, to: &str) -> Result<Outcome, Failure> {
        let target = self.new_folder(server, to)?;
        if self.existing_folder(server, to).await.is_ok() {
            return Err(Refusal::AlreadyExists.into());
        }
        let refusal = Refusal::Cannot("This mailbox cannot be renamed".to_owned());
        if from == INBOX {
            // RFC 3501 section 6.3.5: the messages are moved, and INBOX stays.
            let FolderRef::Mailbox(inbox) = self.resolve(&server.context.mailroom, INBOX)? else {
                return Err(refusal.into());
            };
            if !self.grant.allows(Scope::Write, &inbox) {
                return Err(Refusal::NotPermitted.into());
            }
            server.folders.create(&target)?;
            return messages::move_all(&server.context.mailroom, &inbox, &target).await.map(|()| Outcome::Done);
        }
        let source = self.own_folder(server, from, refusal)?;
        let below = self.below(server, &source).await?;
        let exists = match self.existing_folder(server, from).await {
            Err(Failure::Refusal(Refusal::NoSuchMailbox)) if !below.is_empty() => false,
            other => other.map(|_| true)?,
        };
        let mut renamed: Vec<(MailboxName, MailboxName)> = Vec::new();
        if exists {
            renamed.push((source.clone(), target.clone()));
        }
        for child in below {
            let rest = child.as_str().strip_prefix(source.as_str()).unwrap_or_default();
            let folder = format!("{}{rest}", target.folder().unwrap_or_default());
            let name = target.owner().in_folder(&folder).map_err(|error| Refusal::Cannot(error.to_string()))?;
            renamed.push((child, name));
        }
        for (_, target) in &renamed {
            if server.folders.get(target).is_some() || has_messages(&server.context.mailroom, target).await? {
                return Err(Refusal::AlreadyExists.into());
            }
        }
        for (source, target) in renamed {
            server.folders.rename(&source, &target);
            messages::move_all(&server.context.mailroom, &source, &target).await?;
        }
        Ok(Outcome::Done)
    }

    async fn subscribe(&self, server: &Server, name: &str, is_subscribed: bool) -> Result<Outcome, Failure> {
        let folder = match self.existing_folder(server, name).await {
            // A folder that does not exist is not subscribed.
            Err(Failure::Refusal(Refusal::NoSuchMailbox)) if !is_subscribed => return Ok(Outcome::Done),
            folder => folder?,
        };
        match folder {
            FolderRef::Mailbox(mailbox) => {
                if self.is_subscribed(&mailbox, server.folders.get(&mailbox)) == is_subscribed {
                    return Ok(Outcome::Done);
                }
                if !self.grant.allows(Scope::Write, &mailbox) {
                    return Err(Refusal::NotPermitted.into());
                }
                let is_own = self.owns(&mailbox);
                server.folders.update(&mailbox, |note| {
                    if is_own {
                        note.is_unsubscribed = !is_subscribed;
                    } else {
                        note.is_subscribed_by_others = is_subscribed;
                    }
                })?;
                Ok(Outcome::Done)
            }
            // INBOX is subscribed, `All mail` is not.
            FolderRef::Nothing if is_subscribed => Ok(Outcome::Done),
            FolderRef::All(_) if !is_subscribed => Ok(Outcome::Done),
            FolderRef::All(_) | FolderRef::Nothing => {
                Err(Refusal::Cannot("The subscription to this mailbox cannot be changed".to_owned()).into())
            }
        }
    }

    /// Returns the use of a mailbox and its limits. Each mailbox and each folder has its own.
    async fn quota(&self, server: &Server, name: &str) -> Result<Quota, Failure> {
        let FolderRef::Mailbox(mailbox) = self.existing_folder(server, name).await? else {
            return Ok(Quota::default());
        };
        let mailroom = &server.context.mailroom;
        let limits = mailroom.mailbox_limits(&mailbox);
        let limit = |limit: u64| (limit != u64::MAX).then_some(limit);
        let state = state_of(mailroom, &mailbox).await?;
        Ok(Quota {
            bytes: state.as_ref().map_or(0, |state| state.bytes),
            max_bytes: limit(limits.bytes),
            messages: state.as_ref().map_or(0, |state| state.messages),
            max_messages: limit(limits.messages),
        })
    }
}

/// Returns the mailbox of a login: `permitted`, if the login may read the mailbox of this name. Otherwise it has no messages
/// for the client.
fn mailbox_of_login(
    mailroom: &Mailroom,
    grant: &Grant,
    permitted: Option<MailboxName>,
    name: &str,
) -> Result<MailboxName, Refusal> {
    let named = permitted.map_or_else(|| mailroom.mailbox_in(grant.home(), name), Ok);
    let mailbox = match named {
        // The name of a user or token need not be that of a mailbox.
        Err(_) if grant.name().is_some() || name.is_empty() => mailroom.mailbox_in(grant.home(), UNNAMED_MAILBOX),
        named => named,
    };
    let mailbox = mailbox.map_err(|error| Refusal::Cannot(format!("Bad mailbox name: {error}")))?;
    match mailbox.folder() {
        Some(_) => Err(Refusal::Cannot("Bad mailbox name: this is a folder, log in to its mailbox".to_owned())),
        None => Ok(mailbox),
    }
}

async fn has_messages(mailroom: &Mailroom, mailbox: &MailboxName) -> Result<bool, Failure> {
    Ok(mailroom.find(mailbox, MessageSelector::Latest).await?.is_some())
}

/// Returns the sum of the sizes of all mailboxes, or of those of a project.
async fn total_bytes(mailroom: &Mailroom, project: Option<&Project>) -> Result<u64, Failure> {
    let mut page = MailboxPage {
        prefix: project.map(Project::prefix).unwrap_or_default(),
        after: String::new(),
        limit: MAILBOX_PAGE_SIZE,
    };
    let mut bytes = 0;
    loop {
        let mailboxes = mailroom.mailboxes(page.clone()).await?;
        let Some(last) = mailboxes.last() else { return Ok(bytes) };
        page.after = last.name.to_string();
        bytes += mailboxes.iter().map(|state| state.bytes).sum::<u64>();
    }
}

/// Returns the number of messages that are marked as deleted, of all or of those of a project.
async fn count_deleted(mailroom: &Mailroom, project: Option<&Project>) -> Result<u64, Failure> {
    let (mut count, mut last) = (0, MessageId::ZERO);
    loop {
        let page = Page { limit: Some(MESSAGE_PAGE_SIZE), before: None, after: Some(last) };
        let messages = mailroom.messages(project, page).await?.messages;
        let Some(message) = messages.last() else { return Ok(count) };
        last = message.id();
        count += messages.iter().filter(|message| message.first().flags.contains(Flags::DELETED)).count() as u64;
    }
}

fn copy_update(mailbox: &MailboxName, update: Update) -> CopyUpdate {
    let Update { id, seen, flags, tags, if_modseq } = update;
    CopyUpdate { copy: CopyKey { mailbox: mailbox.clone(), id }, seen, flags, tags, if_modseq: Some(if_modseq) }
}

fn updated(outcome: UpdateOutcome) -> Updated {
    match outcome {
        UpdateOutcome::Updated(marks, _) => Updated::Done(marks),
        UpdateOutcome::Conflict => Updated::Conflict,
        UpdateOutcome::Missing => Updated::Missing,
    }
}
