//! What is known about the call that a Lua state is busy with, for the functions that scripts call meanwhile. It lies in
//! the state's app data: `lua.app_data_ref::<Context>()`.

use std::time::{Duration, Instant};

use mlua::Lua;

use crate::event::Event;

/// The call that is under way.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// The event that is handled; none while the script is loaded.
    pub(crate) event: Option<Event>,
    /// When the call has to be over.
    pub(crate) deadline: Instant,
}

impl Context {
    /// A call begins.
    pub(crate) fn put(self, lua: &Lua) {
        match lua.app_data_mut::<Self>() {
            Some(mut last) => *last = self,
            None => drop(lua.set_app_data(self)),
        }
    }

    /// The context of the call that this state is busy with.
    pub(crate) fn of(lua: &Lua) -> mlua::Result<Self> {
        lua.app_data_ref::<Self>()
            .map(|context| context.clone())
            .ok_or_else(|| mlua::Error::runtime("there is no call under way"))
    }

    /// How long the call may still take.
    pub(crate) fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}
