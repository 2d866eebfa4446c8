//! The five events that a script can handle, the arguments and results of their functions, and the context of a call.

use std::time::{Duration, Instant};

use mlua::Lua;
use restante_mail::address::Address;
use restante_mail::envelope::Envelope;
use restante_mail::message::Summary;
use restante_mail::named_enum;
use restante_mailroom::hooks::{IncomingMessage, Verdict};

named_enum! {
    /// An event that a script can handle.
    #[derive(PartialOrd, Ord)]
    pub enum ScriptEvent {
        /// A sender was given.
        MailFrom = "before.mail_from_accepted",
        /// A recipient was given.
        RcptTo = "before.rcpt_to_accepted",
        /// A message is about to be stored.
        BeforeStored = "before.message_stored",
        /// A message was stored.
        AfterStored = "after.message_stored",
        /// A message was deleted.
        AfterDeleted = "after.message_deleted",
    }
}

impl ScriptEvent {
    /// Returns whether a session waits for the result.
    pub const fn is_before(self) -> bool {
        matches!(self, Self::MailFrom | Self::RcptTo | Self::BeforeStored)
    }
}

/// An event with the arguments of its function.
pub(crate) enum Call {
    MailFrom(Envelope),
    RcptTo(Envelope, Address),
    BeforeStored(IncomingMessage),
    AfterStored(Summary),
    AfterDeleted(Summary),
}

impl Call {
    /// Returns the event.
    pub(crate) fn event(&self) -> ScriptEvent {
        match self {
            Self::MailFrom(_) => ScriptEvent::MailFrom,
            Self::RcptTo(..) => ScriptEvent::RcptTo,
            Self::BeforeStored(_) => ScriptEvent::BeforeStored,
            Self::AfterStored(_) => ScriptEvent::AfterStored,
            Self::AfterDeleted(_) => ScriptEvent::AfterDeleted,
        }
    }
}

/// The result of a call.
#[derive(Debug)]
pub(crate) enum Reply {
    Verdict(Verdict),
    /// The changed message, or `None` if nothing changed.
    Message(Option<IncomingMessage>),
    Nothing,
}

/// The call that a Lua state is executing. Functions that the script calls find it in the app data of the state.
#[derive(Clone, Debug)]
pub(crate) struct CallContext {
    /// The event; `None` while the script is loaded.
    pub(crate) event: Option<ScriptEvent>,
    /// When the call must have ended.
    pub(crate) deadline: Instant,
}

impl CallContext {
    /// Makes this the current call of `lua`.
    pub(crate) fn set_current(self, lua: &Lua) {
        match lua.app_data_mut::<Self>() {
            Some(mut current) => *current = self,
            None => drop(lua.set_app_data(self)),
        }
    }

    /// Returns the current call of `lua`.
    pub(crate) fn current(lua: &Lua) -> mlua::Result<Self> {
        lua.app_data_ref::<Self>()
            .map(|context| context.clone())
            .ok_or_else(|| mlua::Error::runtime("no call is running"))
    }

    /// Returns the time until the deadline.
    pub(crate) fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}
