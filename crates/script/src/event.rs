//! The five events that a script can handle, and the context of a call.

use std::fmt;
use std::time::{Duration, Instant};

use mlua::Lua;

/// An event that a script can handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScriptEvent {
    /// A sender was given.
    MailFrom,
    /// A recipient was given.
    RcptTo,
    /// A message is about to be stored.
    BeforeStored,
    /// A message was stored.
    AfterStored,
    /// A message was deleted.
    AfterDeleted,
}

impl ScriptEvent {
    /// All events.
    pub const ALL: [Self; 5] =
        [Self::MailFrom, Self::RcptTo, Self::BeforeStored, Self::AfterStored, Self::AfterDeleted];

    /// Returns the name under which scripts define the function.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MailFrom => "before.mail_from_accepted",
            Self::RcptTo => "before.rcpt_to_accepted",
            Self::BeforeStored => "before.message_stored",
            Self::AfterStored => "after.message_stored",
            Self::AfterDeleted => "after.message_deleted",
        }
    }

    /// Returns whether a session waits for the result.
    pub const fn is_before(self) -> bool {
        matches!(self, Self::MailFrom | Self::RcptTo | Self::BeforeStored)
    }
}

impl fmt::Display for ScriptEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
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
