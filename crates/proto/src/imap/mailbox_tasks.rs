//! Commands about mailboxes: SELECT, STATUS, changes of mailboxes, and quotas.

use std::io::Write as _;

use super::command::StatusItem;
use super::list::SEPARATOR;
use super::reply::{SYSTEM_FLAGS, write_keywords, write_mailbox};
use super::selected::Selected;
use super::task::{Completion, Context, Step, Task};
use super::{Mailbox, MailboxStatus, Operation, Outcome, Settings};

/// A command whose only operation has no result: DELETE, RENAME, SUBSCRIBE and UNSUBSCRIBE.
#[derive(Debug)]
pub(super) struct ChangeTask {
    operation: Option<Operation>,
    text: &'static str,
}

impl ChangeTask {
    pub(super) fn new(operation: Operation, text: &'static str) -> Self {
        Self { operation: Some(operation), text }
    }
}

impl Task for ChangeTask {
    fn advance(&mut self, _: &mut Context<'_>, _: Option<Outcome>) -> Step {
        self.operation.take().map_or_else(|| Step::Done(Completion::ok(self.text)), Step::Perform)
    }
}

/// CREATE. The reply contains the identity of the mailbox (RFC 8474 section 4.1).
#[derive(Debug)]
pub(super) struct CreateTask {
    /// The name as sent.
    name: String,
    stage: CreateStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CreateStage {
    Start,
    Creating,
    /// The identity is requested.
    Identifying,
}

impl CreateTask {
    pub(super) fn new(name: String) -> Self {
        Self { name, stage: CreateStage::Start }
    }
}

impl Task for CreateTask {
    fn advance(&mut self, _: &mut Context<'_>, outcome: Option<Outcome>) -> Step {
        match self.stage {
            CreateStage::Start => {
                self.stage = CreateStage::Creating;
                Step::Perform(Operation::Create(self.name.clone()))
            }
            CreateStage::Creating => {
                self.stage = CreateStage::Identifying;
                let mailbox = self.name.strip_suffix(SEPARATOR).unwrap_or(&self.name).to_owned();
                Step::Perform(Operation::Status { mailbox, items: vec![StatusItem::MailboxId] })
            }
            CreateStage::Identifying => {
                let completion = Completion::ok("CREATE completed");
                Step::Done(match outcome {
                    Some(Outcome::Status(MailboxStatus { mailbox_id, .. })) => {
                        completion.with_code(format!("[MAILBOXID ({mailbox_id})] "))
                    }
                    _ => completion,
                })
            }
        }
    }

    /// The mailbox exists, even if its identity is not available.
    fn continues_after_refusal(&self) -> bool {
        self.stage == CreateStage::Identifying
    }
}

/// SELECT and EXAMINE.
#[derive(Debug)]
pub(super) struct SelectTask {
    mailbox: String,
    is_read_only: bool,
}

impl SelectTask {
    pub(super) fn new(mailbox: String, is_read_only: bool) -> Self {
        Self { mailbox, is_read_only }
    }
}

impl Task for SelectTask {
    fn advance(&mut self, context: &mut Context<'_>, outcome: Option<Outcome>) -> Step {
        let Some(Outcome::Opened(mailbox)) = outcome else {
            let (mailbox, is_read_only) = (self.mailbox.clone(), self.is_read_only);
            return Step::Perform(Operation::Open { mailbox, is_read_only });
        };
        let Mailbox { uid_validity, has_sticky_uids, is_read_only, mailbox_id, listing } = mailbox;
        let selected = Selected::new(&listing, is_read_only, !context.enabled.rev2);
        write_selected(context.out, &selected, context.enabled.rev2);
        let _ = write!(context.out, "* OK [UIDVALIDITY {uid_validity}] UIDs are valid\r\n");
        let _ = write!(context.out, "* OK [MAILBOXID ({mailbox_id})] The id of the mailbox\r\n");
        if !has_sticky_uids {
            context.out.extend_from_slice(b"* NO [UIDNOTSTICKY] UIDs are valid in this session only\r\n");
        }
        *context.selected = Some(selected);
        if context.enabled.rev2 {
            context.out.extend_from_slice(b"* LIST () \"/\" ");
            write_mailbox(context.out, &self.mailbox, true);
            context.out.extend_from_slice(b"\r\n");
        }
        let code = if is_read_only { "[READ-ONLY] " } else { "[READ-WRITE] " };
        Step::Done(
            Completion::ok(if self.is_read_only { "EXAMINE completed" } else { "SELECT completed" }).with_code(code),
        )
    }
}

/// Writes the replies to SELECT about the messages.
fn write_selected(out: &mut Vec<u8>, selected: &Selected, is_rev2: bool) {
    let mut flags = Vec::new();
    flags.extend_from_slice(b"\\Seen");
    for (name, _) in SYSTEM_FLAGS {
        let _ = write!(flags, " {name}");
    }
    write_keywords(&mut flags, selected.known_tags());
    out.extend_from_slice(b"* FLAGS (");
    out.extend_from_slice(&flags);
    out.extend_from_slice(b")\r\n* OK [PERMANENTFLAGS (");
    if !selected.is_read_only {
        out.extend_from_slice(&flags);
        out.extend_from_slice(b" \\*");
    }
    out.extend_from_slice(b")] These flags are stored\r\n");
    let _ = write!(out, "* {} EXISTS\r\n", selected.count());
    if !is_rev2 {
        let _ = write!(out, "* {} RECENT\r\n", selected.recent_count());
        if let Some(first) = selected.entries().iter().position(|entry| !entry.is_seen) {
            let _ = write!(out, "* OK [UNSEEN {}] The first message that is not seen\r\n", first + 1);
        }
    }
    let _ = write!(out, "* OK [UIDNEXT {}] The next UID\r\n", selected.next_uid());
    let _ = write!(out, "* OK [HIGHESTMODSEQ {}] The highest MODSEQ\r\n", selected.highest_modseq());
}

/// STATUS.
#[derive(Debug)]
pub(super) struct StatusTask {
    mailbox: String,
    items: Vec<StatusItem>,
}

impl StatusTask {
    pub(super) fn new(mailbox: String, items: Vec<StatusItem>) -> Self {
        Self { mailbox, items }
    }
}

impl Task for StatusTask {
    fn advance(&mut self, context: &mut Context<'_>, outcome: Option<Outcome>) -> Step {
        let Some(Outcome::Status(status)) = outcome else {
            return Step::Perform(Operation::Status { mailbox: self.mailbox.clone(), items: self.items.clone() });
        };
        let is_utf8 = context.enabled.has_utf8_names();
        write_status(context.out, &self.mailbox, &self.items, &status, context.settings, is_utf8);
        Step::Done(Completion::ok("STATUS completed"))
    }
}

/// Writes the reply to STATUS.
pub(super) fn write_status(
    out: &mut Vec<u8>,
    mailbox: &str,
    items: &[StatusItem],
    status: &MailboxStatus,
    settings: &Settings,
    is_utf8: bool,
) {
    out.extend_from_slice(b"* STATUS ");
    write_mailbox(out, mailbox, is_utf8);
    out.extend_from_slice(b" (");
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            out.push(b' ');
        }
        let _ = match item {
            StatusItem::Messages => write!(out, "MESSAGES {}", status.messages),
            StatusItem::Recent => write!(out, "RECENT {}", status.recent),
            StatusItem::UidNext => write!(out, "UIDNEXT {}", status.next_uid),
            StatusItem::UidValidity => write!(out, "UIDVALIDITY {}", status.uid_validity),
            StatusItem::Unseen => write!(out, "UNSEEN {}", status.unseen),
            StatusItem::Deleted => write!(out, "DELETED {}", status.deleted),
            StatusItem::Size => write!(out, "SIZE {}", status.bytes),
            StatusItem::HighestModSeq => write!(out, "HIGHESTMODSEQ {}", status.highest_modseq),
            StatusItem::AppendLimit => write!(out, "APPENDLIMIT {}", settings.max_message_bytes),
            StatusItem::MailboxId => write!(out, "MAILBOXID ({})", status.mailbox_id),
        };
    }
    out.extend_from_slice(b")\r\n");
}

/// GETQUOTA and GETQUOTAROOT. A mailbox with limits has a quota root of its own, with the name of the mailbox.
#[derive(Debug)]
pub(super) struct QuotaTask {
    mailbox: String,
    /// Whether the command is GETQUOTAROOT.
    writes_root: bool,
}

impl QuotaTask {
    pub(super) fn new(mailbox: String, writes_root: bool) -> Self {
        Self { mailbox, writes_root }
    }
}

impl Task for QuotaTask {
    fn advance(&mut self, context: &mut Context<'_>, outcome: Option<Outcome>) -> Step {
        let Some(Outcome::Quota(quota)) = outcome else {
            return Step::Perform(Operation::Quota(self.mailbox.clone()));
        };
        // RFC 9208 section 5.1: storage is counted in units of 1024 octets.
        let storage = quota.max_bytes.map(|max| format!("STORAGE {} {}", quota.bytes.div_ceil(1024), max / 1024));
        let messages = quota.max_messages.map(|max| format!("MESSAGE {} {max}", quota.messages));
        let resources: Vec<String> = storage.into_iter().chain(messages).collect();
        let is_utf8 = context.enabled.has_utf8_names();
        let has_root = !resources.is_empty();
        if self.writes_root {
            context.out.extend_from_slice(b"* QUOTAROOT ");
            write_mailbox(context.out, &self.mailbox, is_utf8);
            if has_root {
                context.out.push(b' ');
                write_mailbox(context.out, &self.mailbox, is_utf8);
            }
            context.out.extend_from_slice(b"\r\n");
        }
        if has_root {
            context.out.extend_from_slice(b"* QUOTA ");
            write_mailbox(context.out, &self.mailbox, is_utf8);
            let _ = write!(context.out, " ({})\r\n", resources.join(" "));
        } else if !self.writes_root {
            return Step::Done(Completion::no("[NONEXISTENT] ", "There is no such quota root"));
        }
        Step::Done(Completion::ok(if self.writes_root { "GETQUOTAROOT completed" } else { "GETQUOTA completed" }))
    }
}
