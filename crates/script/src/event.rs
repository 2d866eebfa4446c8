//! The five events that a script can have a function for, and the call that handles one.

use std::fmt;
use std::time::{Duration, Instant};

use mlua::Lua;

/// An event that a script can take part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Event {
    /// A sender was named.
    MailFrom,
    /// A recipient was named.
    RcptTo,
    /// A message is about to be stored.
    BeforeStored,
    /// A message was stored.
    AfterStored,
    /// A message was deleted.
    AfterDeleted,
}

impl Event {
    /// Every event.
    pub const ALL: [Self; 5] =
        [Self::MailFrom, Self::RcptTo, Self::BeforeStored, Self::AfterStored, Self::AfterDeleted];

    /// The name that scripts define its function under.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MailFrom => "before.mail_from_accepted",
            Self::RcptTo => "before.rcpt_to_accepted",
            Self::BeforeStored => "before.message_stored",
            Self::AfterStored => "after.message_stored",
            Self::AfterDeleted => "after.message_deleted",
        }
    }

    /// Whether somebody waits for what the script says.
    pub const fn is_before(self) -> bool {
        matches!(self, Self::MailFrom | Self::RcptTo | Self::BeforeStored)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The call that a Lua state is busy with. Functions that the script calls find it in the app data of the state.
#[derive(Clone, Debug)]
pub(crate) struct CallContext {
    /// The event that is handled; none while the script is loaded.
    pub(crate) event: Option<Event>,
    /// When the call has to be over.
    pub(crate) deadline: Instant,
}

impl CallContext {
    /// A call begins.
    pub(crate) fn set_current(self, lua: &Lua) {
        match lua.app_data_mut::<Self>() {
            Some(mut last) => *last = self,
            None => drop(lua.set_app_data(self)),
        }
    }

    /// The context of the call that this state is busy with.
    pub(crate) fn current(lua: &Lua) -> mlua::Result<Self> {
        lua.app_data_ref::<Self>()
            .map(|context| context.clone())
            .ok_or_else(|| mlua::Error::runtime("there is no call under way"))
    }

    /// How long the call may still take.
    pub(crate) fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}
