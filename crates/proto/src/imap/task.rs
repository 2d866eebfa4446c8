//! Commands that need data from the driver, as tasks that continue with each result.

use std::borrow::Cow;
use std::fmt;

use restante_mail::message::MessageId;

use super::reply::{self, FlagsStyle};
use super::selected::Selected;
use super::view::MessageView;
use super::{Operation, Outcome, Refusal, Settings};

/// If the queued replies reach this size, they are written before more are queued.
pub(super) const MAX_REPLY_BYTES: usize = 64 * 1024;
/// The maximum number of messages in one operation.
pub(super) const BATCH_MESSAGES: usize = 500;
/// The number of octets of sources at which an operation contains no further message.
pub(super) const BATCH_BYTES: u64 = 1024 * 1024;

/// A command that is being executed.
pub(super) trait Task: fmt::Debug + Send {
    /// Continues until data is needed, many replies are queued, or the command is complete. Gets the result of the operation
    /// that it asked for before.
    fn advance(&mut self, context: &mut Context<'_>, outcome: Option<Outcome>) -> Step;

    /// Returns whether the command continues if the driver refuses the current operation. Then there is no result.
    fn continues_after_refusal(&self) -> bool {
        false
    }

    /// Continues after the driver has refused the operation. Without an own implementation, the command fails.
    fn refused(&mut self, context: &mut Context<'_>, refusal: &Refusal) -> Step {
        if self.continues_after_refusal() { self.advance(context, None) } else { Step::Done(reply::refusal(refusal)) }
    }

    /// Returns whether the replies contain parts of messages. Transcripts contain only their length.
    fn contains_mail(&self) -> bool {
        false
    }

    /// Returns the octets of messages in memory.
    fn memory_bytes(&self) -> usize {
        0
    }
}

/// What a task works with.
pub(super) struct Context<'a> {
    pub(super) settings: &'a Settings,
    pub(super) enabled: Enabled,
    pub(super) selected: &'a mut Option<Selected>,
    /// The message of the last partial fetch.
    pub(super) last_view: &'a mut Option<(MessageId, MessageView)>,
    /// The untagged replies.
    pub(super) out: &'a mut Vec<u8>,
}

impl Context<'_> {
    pub(super) fn style(&self) -> FlagsStyle {
        self.enabled.style()
    }

    /// Returns whether the replies should be written before more are queued.
    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= MAX_REPLY_BYTES
    }
}

/// The extensions that the client has enabled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Enabled {
    pub(super) condstore: bool,
    pub(super) utf8: bool,
    pub(super) rev2: bool,
}

impl Enabled {
    /// Returns whether names are written in UTF-8.
    pub(super) fn has_utf8_names(self) -> bool {
        self.utf8 || self.rev2
    }

    /// Returns how FLAGS are reported without being requested.
    pub(super) fn style(self) -> FlagsStyle {
        FlagsStyle { has_uid: false, has_modseq: self.condstore }
    }
}

/// What comes next in a task.
#[derive(Debug)]
pub(super) enum Step {
    /// Perform the operation.
    Perform(Operation),
    /// Write the replies.
    Write,
    /// The command is complete.
    Done(Completion),
}

/// The last reply to a command.
#[derive(Debug)]
pub(super) struct Completion {
    pub(super) status: Status,
    /// The response code with its brackets and a space after it, or nothing.
    pub(super) code: Cow<'static, str>,
    pub(super) text: Cow<'static, str>,
}

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ok,
    No,
    Bad,
}

impl Completion {
    pub(super) fn ok(text: &'static str) -> Self {
        Self { status: Status::Ok, code: Cow::Borrowed(""), text: Cow::Borrowed(text) }
    }

    pub(super) fn no(code: impl Into<Cow<'static, str>>, text: impl Into<Cow<'static, str>>) -> Self {
        Self { status: Status::No, code: code.into(), text: text.into() }
    }

    pub(super) fn bad(text: impl Into<Cow<'static, str>>) -> Self {
        Self { status: Status::Bad, code: Cow::Borrowed(""), text: text.into() }
    }

    #[must_use]
    pub(super) fn with_code(self, code: impl Into<Cow<'static, str>>) -> Self {
        Self { code: code.into(), ..self }
    }
}
