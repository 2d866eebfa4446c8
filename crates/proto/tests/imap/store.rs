//! An in-memory store for the driver: mailboxes with messages, flags, keywords, UIDs and MODSEQ. The n-th message of the
//! store has the id n and was received on the n-th day of 2024, at 10:00:00 UTC.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use restante_mail::message::{Flags, Marks, MessageId};
use restante_mail::tags::Tags;
use restante_proto::imap::{
    Change, Folder, Listed, ListedMessage, Mailbox, MailboxStatus, NewMarks, Operation, Outcome, Properties, Quota,
    Refusal, Update, Updated,
};

/// The UIDVALIDITY of all mailboxes.
const UID_VALIDITY: u32 = 7;

/// The system flags except for `\Seen`.
const SYSTEM_FLAGS: [(&str, Flags); 4] = [
    ("\\Answered", Flags::ANSWERED),
    ("\\Deleted", Flags::DELETED),
    ("\\Draft", Flags::DRAFT),
    ("\\Flagged", Flags::FLAGGED),
];

#[derive(Debug)]
pub(crate) struct Store {
    mailboxes: BTreeMap<String, StoredMailbox>,
    last_message: u64,
    last_mailbox: u64,
    /// Whether the login may not change mailboxes.
    pub(crate) is_read_only: bool,
    /// Whether UIDs are valid after the session.
    pub(crate) has_sticky_uids: bool,
    pub(crate) max_bytes: Option<u64>,
    pub(crate) max_messages: Option<u64>,
    /// All changes that no session got, with their mailboxes.
    pub(crate) changes: Vec<(String, Change)>,
}

#[derive(Debug, Default)]
struct StoredMailbox {
    id: String,
    exists: bool,
    is_subscribed: bool,
    special_use: Option<&'static str>,
    messages: Vec<StoredMessage>,
    last_uid: u32,
    highest_modseq: u64,
    /// The UID up to which messages are not recent.
    listed_uid: u32,
}

#[derive(Clone, Debug)]
struct StoredMessage {
    id: MessageId,
    /// The message of which this one is a copy.
    message: MessageId,
    uid: u32,
    received: Timestamp,
    source: Bytes,
    marks: Marks,
}

impl Store {
    /// Creates a store with an empty INBOX.
    pub(crate) fn new() -> Self {
        let mut store = Self {
            mailboxes: BTreeMap::new(),
            last_message: 0,
            last_mailbox: 0,
            is_read_only: false,
            has_sticky_uids: true,
            max_bytes: None,
            max_messages: None,
            changes: Vec::new(),
        };
        store.add_mailbox("INBOX", None);
        store.mailboxes.get_mut("INBOX").unwrap().is_subscribed = true;
        store
    }

    /// Adds a mailbox that is not subscribed.
    pub(crate) fn add_mailbox(&mut self, name: &str, special_use: Option<&'static str>) {
        self.last_mailbox += 1;
        let mailbox = self.mailboxes.entry(name.to_owned()).or_default();
        (mailbox.id, mailbox.exists) = (format!("F{}", self.last_mailbox), true);
        mailbox.special_use = special_use;
        mailbox.highest_modseq = mailbox.highest_modseq.max(1);
    }

    /// Stores a message. Returns its UID.
    pub(crate) fn deliver(&mut self, mailbox: &str, source: &[u8]) -> u32 {
        self.add(mailbox, Bytes::copy_from_slice(source), NewMarks::default(), None, None)
    }

    /// Replaces the flags of a message in INBOX.
    pub(crate) fn mark(&mut self, uid: u32, flags: &[&str]) {
        let (mut seen, mut system_flags, mut tags) = (false, Flags::default(), Vec::new());
        for flag in flags {
            match SYSTEM_FLAGS.iter().find(|(name, _)| name == flag) {
                Some((_, system)) => system_flags = system_flags.union(*system),
                None if *flag == "\\Seen" => seen = true,
                None => tags.push(*flag),
            }
        }
        let (flags, tags) = (Some(system_flags), Some(Tags::new(tags).unwrap()));
        let message = self.mailboxes["INBOX"].messages.iter().find(|message| message.uid == uid).expect("the message");
        let update = Update { id: message.id, seen: Some(seen), flags, tags, if_modseq: message.marks.modseq };
        assert!(matches!(self.update("INBOX", update), Updated::Done(_)));
    }

    /// Removes a message from INBOX.
    pub(crate) fn remove(&mut self, uid: u32) {
        let message = self.mailboxes["INBOX"].messages.iter().find(|message| message.uid == uid).expect("the message");
        let id = message.id;
        self.remove_ids("INBOX", &[id]);
    }

    /// Returns the number of messages in a mailbox.
    pub(crate) fn count(&self, mailbox: &str) -> usize {
        self.mailboxes.get(mailbox).map_or(0, |mailbox| mailbox.messages.len())
    }

    /// Returns the UIDs of a mailbox.
    pub(crate) fn uids(&self, mailbox: &str) -> Vec<u32> {
        self.mailboxes[mailbox].messages.iter().map(|message| message.uid).collect()
    }

    /// Returns the flags and keywords of the messages in a mailbox.
    pub(crate) fn flags(&self, mailbox: &str) -> Vec<BTreeSet<String>> {
        self.mailboxes[mailbox].messages.iter().map(StoredMessage::flags).collect()
    }

    /// Opens a mailbox.
    pub(crate) fn open(&mut self, name: &str, is_read_only: bool) -> Result<Mailbox, Refusal> {
        let mailbox = self.existing(name)?;
        let is_read_only = is_read_only || self.is_read_only;
        let opened = Mailbox {
            uid_validity: UID_VALIDITY,
            has_sticky_uids: self.has_sticky_uids,
            is_read_only,
            mailbox_id: mailbox.id.clone(),
            listing: mailbox.listing(),
        };
        if !is_read_only {
            self.listed(name);
        }
        Ok(opened)
    }

    /// Returns all messages of a mailbox.
    pub(crate) fn listing(&self, mailbox: &str) -> Listed {
        self.mailboxes[mailbox].listing()
    }

    /// Notes that a session has listed all messages of a mailbox. They are not recent in other sessions.
    pub(crate) fn listed(&mut self, mailbox: &str) {
        if let Some(mailbox) = self.mailboxes.get_mut(mailbox) {
            mailbox.listed_uid = mailbox.last_uid;
        }
    }

    /// Performs an operation other than [`Operation::Open`].
    pub(crate) fn perform(&mut self, selected: Option<&str>, operation: Operation) -> Result<Outcome, Refusal> {
        match operation {
            Operation::List => Ok(Outcome::Folders(self.folders())),
            Operation::Status { mailbox, .. } => Ok(Outcome::Status(self.existing(&mailbox)?.status())),
            Operation::Create(name) => self.create(name.strip_suffix('/').unwrap_or(&name)),
            Operation::Delete(name) => self.delete(&name),
            Operation::Rename { from, to } => self.rename(&from, &to),
            Operation::Subscribe { mailbox, is_subscribed } => {
                let known = self.mailboxes.get_mut(&mailbox).ok_or(Refusal::NoSuchMailbox)?;
                known.is_subscribed = is_subscribed;
                self.mailboxes.retain(|_, mailbox| mailbox.exists || mailbox.is_subscribed);
                Ok(Outcome::Done)
            }
            Operation::Append { append, marks } => {
                self.existing(&append.mailbox).map_err(|_| Refusal::TryCreate)?;
                let uid = self.add(&append.mailbox, append.message, marks, append.received, None);
                Ok(Outcome::Appended { uid_validity: UID_VALIDITY, uid })
            }
            Operation::Quota(mailbox) => {
                let MailboxStatus { bytes, messages, .. } = self.existing(&mailbox)?.status();
                let (max_bytes, max_messages) = (self.max_bytes, self.max_messages);
                Ok(Outcome::Quota(Quota { bytes, max_bytes, messages, max_messages }))
            }
            Operation::Open { .. } => panic!("the driver opens mailboxes"),
            operation => self.perform_on_messages(selected.expect("a selected mailbox"), operation),
        }
    }

    fn perform_on_messages(&mut self, selected: &str, operation: Operation) -> Result<Outcome, Refusal> {
        let mailbox = self.existing(selected)?;
        Ok(match operation {
            Operation::Sources { ids, bytes } => {
                let sources: Vec<_> = ids.iter().map(|&id| Some(mailbox.find(id)?.source.clone())).collect();
                assert!(sources.iter().flatten().map(Bytes::len).sum::<usize>() as u64 <= bytes);
                Outcome::Sources(sources)
            }
            Operation::Properties(ids) => {
                Outcome::Properties(ids.iter().map(|&id| Some(mailbox.find(id)?.properties())).collect())
            }
            Operation::Update(updates) => {
                Outcome::Updated(updates.into_iter().map(|update| self.update(selected, update)).collect())
            }
            Operation::Remove(ids) => {
                assert!(!ids.is_empty());
                let is_kept = |message: &StoredMessage| !message.marks.flags.contains(Flags::DELETED);
                let removed = ids.into_iter().filter(|&id| !mailbox.find(id).is_some_and(is_kept));
                let removed: Vec<MessageId> = removed.collect();
                self.remove_ids(selected, &removed);
                Outcome::Removed(removed)
            }
            Operation::Copy { ids, mailbox: target, is_move, .. } => {
                self.existing(&target).map_err(|_| Refusal::TryCreate)?;
                let (uids, copies) = self.copy(selected, &ids, &target);
                if is_move {
                    self.remove_ids(selected, &ids);
                }
                Outcome::Copied { uids, ids: copies, uid_validity: UID_VALIDITY }
            }
            Operation::RemoveCopies { ids, mailbox } => {
                self.existing(&mailbox)?;
                self.remove_ids(&mailbox, &ids);
                Outcome::Done
            }
            other => panic!("{other:?}"),
        })
    }

    fn existing(&self, name: &str) -> Result<&StoredMailbox, Refusal> {
        self.mailboxes.get(name).filter(|mailbox| mailbox.exists).ok_or(Refusal::NoSuchMailbox)
    }

    fn folders(&self) -> Vec<Folder> {
        let folder = |(name, mailbox): (&String, &StoredMailbox)| Folder {
            name: name.clone(),
            is_selectable: mailbox.exists,
            is_subscribed: mailbox.is_subscribed,
            special_use: mailbox.special_use,
        };
        self.mailboxes.iter().map(folder).collect()
    }

    fn create(&mut self, name: &str) -> Result<Outcome, Refusal> {
        if self.existing(name).is_ok() {
            return Err(Refusal::AlreadyExists);
        }
        self.add_mailbox(name, None);
        Ok(Outcome::Done)
    }

    fn delete(&mut self, name: &str) -> Result<Outcome, Refusal> {
        if name == "INBOX" {
            return Err(Refusal::Cannot("This mailbox cannot be deleted".to_owned()));
        }
        if self.existing(name).is_err() {
            let prefix = format!("{name}/");
            let has_children = self.mailboxes.keys().any(|other| other.starts_with(&prefix));
            return Err(if has_children { Refusal::HasChildren } else { Refusal::NoSuchMailbox });
        }
        self.remove_all(name);
        let is_subscribed = self.mailboxes[name].is_subscribed;
        self.mailboxes.insert(name.to_owned(), StoredMailbox { is_subscribed, ..StoredMailbox::default() });
        self.mailboxes.retain(|_, mailbox| mailbox.exists || mailbox.is_subscribed);
        Ok(Outcome::Done)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<Outcome, Refusal> {
        self.existing(from)?;
        self.create(to)?;
        if from == "INBOX" {
            let ids: Vec<_> = self.mailboxes[from].messages.iter().map(|message| message.id).collect();
            self.copy(from, &ids, to);
            self.remove_all(from);
            return Ok(Outcome::Done);
        }
        let prefix = format!("{from}/");
        let is_renamed = |name: &&String| *name == from || name.starts_with(&prefix);
        let names: Vec<String> = self.mailboxes.keys().filter(is_renamed).cloned().collect();
        for name in names {
            let messages = self.mailboxes[&name].messages.clone();
            self.remove_all(&name);
            let mailbox = StoredMailbox { messages, ..self.mailboxes.remove(&name).unwrap() };
            self.mailboxes.insert(format!("{to}{}", &name[from.len()..]), mailbox);
        }
        Ok(Outcome::Done)
    }

    /// Copies messages. Returns the UIDs of the copies, in the order of `ids`, and their ids.
    fn copy(&mut self, from: &str, ids: &[MessageId], to: &str) -> (Vec<Option<u32>>, Vec<MessageId>) {
        let (mut uids, mut copies) = (Vec::new(), Vec::new());
        for &id in ids {
            let copy = self.mailboxes[from].find(id).cloned();
            uids.push(copy.map(|StoredMessage { message, received, source, marks, .. }| {
                let marks = NewMarks { seen: marks.seen, flags: marks.flags, tags: marks.tags };
                let uid = self.add(to, source, marks, Some(received), Some(message));
                copies.push(MessageId::from(self.last_message));
                uid
            }));
        }
        (uids, copies)
    }

    fn add(
        &mut self,
        name: &str,
        source: Bytes,
        marks: NewMarks,
        received: Option<Timestamp>,
        message: Option<MessageId>,
    ) -> u32 {
        self.last_message += 1;
        let id = MessageId::from(self.last_message);
        let mailbox = self.mailboxes.get_mut(name).unwrap();
        (mailbox.last_uid, mailbox.highest_modseq) = (mailbox.last_uid + 1, mailbox.highest_modseq + 1);
        let NewMarks { seen, flags, tags } = marks;
        let stored = StoredMessage {
            id,
            message: message.unwrap_or(id),
            uid: mailbox.last_uid,
            received: received.unwrap_or_else(|| received_at(self.last_message)),
            source,
            marks: Marks { seen, flags, tags, modseq: mailbox.highest_modseq },
        };
        let added = Listed { messages: Arc::new(vec![stored.listed()]), ..mailbox.listing() };
        mailbox.messages.push(stored);
        let (uid, next_uid) = (mailbox.last_uid, mailbox.last_uid + 1);
        self.changes.push((name.to_owned(), Change::Added(Listed { next_uid, ..added })));
        uid
    }

    fn update(&mut self, name: &str, update: Update) -> Updated {
        let mailbox = self.mailboxes.get_mut(name).unwrap();
        let Some(message) = mailbox.messages.iter_mut().find(|message| message.id == update.id) else {
            return Updated::Missing;
        };
        if message.marks.modseq != update.if_modseq {
            return Updated::Conflict;
        }
        let Marks { seen, flags, tags, modseq } = message.marks.clone();
        let (seen, flags) = (update.seen.unwrap_or(seen), update.flags.unwrap_or(flags));
        let marks = Marks { seen, flags, tags: update.tags.unwrap_or(tags), modseq };
        if marks == message.marks {
            return Updated::Done(marks);
        }
        mailbox.highest_modseq += 1;
        message.marks = Marks { modseq: mailbox.highest_modseq, ..marks };
        self.changes.push((name.to_owned(), Change::Marked(update.id, message.marks.clone())));
        Updated::Done(message.marks.clone())
    }

    fn remove_all(&mut self, name: &str) {
        let ids: Vec<_> = self.mailboxes[name].messages.iter().map(|message| message.id).collect();
        self.remove_ids(name, &ids);
    }

    fn remove_ids(&mut self, name: &str, ids: &[MessageId]) {
        self.mailboxes.get_mut(name).unwrap().messages.retain(|message| !ids.contains(&message.id));
        self.changes.extend(ids.iter().map(|&id| (name.to_owned(), Change::Removed(id))));
    }
}

impl StoredMailbox {
    fn find(&self, id: MessageId) -> Option<&StoredMessage> {
        self.messages.iter().find(|message| message.id == id)
    }

    fn listing(&self) -> Listed {
        Listed {
            next_uid: self.last_uid + 1,
            highest_modseq: self.highest_modseq,
            first_recent_uid: self.listed_uid + 1,
            messages: Arc::new(self.messages.iter().map(StoredMessage::listed).collect()),
        }
    }

    fn status(&self) -> MailboxStatus {
        let count = |is_counted: fn(&StoredMessage) -> bool| {
            self.messages.iter().filter(|message| is_counted(message)).count() as u64
        };
        MailboxStatus {
            messages: self.messages.len() as u64,
            unseen: count(|message| !message.marks.seen),
            deleted: count(|message| message.marks.flags.contains(Flags::DELETED)),
            recent: self.messages.iter().filter(|message| message.uid > self.listed_uid).count() as u64,
            bytes: self.messages.iter().map(|message| message.source.len() as u64).sum(),
            next_uid: self.last_uid + 1,
            uid_validity: UID_VALIDITY,
            highest_modseq: self.highest_modseq,
            mailbox_id: self.id.clone(),
        }
    }
}

impl StoredMessage {
    fn listed(&self) -> ListedMessage {
        ListedMessage {
            id: self.id,
            uid: self.uid,
            received: self.received,
            size: self.source.len() as u64,
            marks: self.marks.clone(),
        }
    }

    fn flags(&self) -> BTreeSet<String> {
        let Marks { seen, flags, tags, .. } = &self.marks;
        let system = SYSTEM_FLAGS.iter().filter(|(_, flag)| flags.contains(*flag)).map(|(name, _)| *name);
        system.chain(seen.then_some("\\Seen")).chain(tags.iter()).map(str::to_owned).collect()
    }

    /// The preview is the text after the header, in one line.
    fn properties(&self) -> Properties {
        let text = String::from_utf8_lossy(&self.source).into_owned();
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let preview = body.split_whitespace().collect::<Vec<_>>().join(" ");
        Properties { message: self.message, marks: self.marks.clone(), preview }
    }
}

fn received_at(message: u64) -> Timestamp {
    let first: Timestamp = "2024-01-01T10:00:00Z".parse().unwrap();
    first + SignedDuration::from_hours(24 * i64::try_from(message - 1).unwrap())
}
