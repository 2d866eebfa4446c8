//! How long a call may take and how much memory a state may hold. A hook looks every so many instructions; from the first
//! breach on it raises an error at every single one, so that nothing a script does can keep the call going. What runs in C
//! for long is not seen here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mlua::{Error, HookTriggers, Lua, Value, VmState};

use super::failure::{self, Kind, PRELUDE, Place};
use crate::settings::Settings;

/// How many instructions pass between two looks: some ten microseconds.
const INTERVAL: u32 = 1000;

/// How many frames are looked at to find a line of the script.
const FRAMES: usize = 16;

/// Watches over the calls of one state.
#[derive(Clone)]
pub(super) struct Watch {
    timeout: Duration,
    memory: usize,
    call: Arc<Mutex<Call>>,
}

/// What is known of the call under way, or of the last one.
struct Call {
    deadline: Instant,
    breach: Option<Breach>,
    /// The last line that was seen: an allocation that fails does not tell where.
    seen: Option<Place>,
}

/// A limit that was passed.
#[derive(Clone, Debug)]
pub(super) struct Breach {
    pub(super) kind: Kind,
    pub(super) place: Option<Place>,
}

impl Watch {
    pub(super) fn new(settings: &Settings) -> Self {
        let call = Call { deadline: Instant::now(), breach: None, seen: None };
        Self { timeout: settings.timeout, memory: settings.memory, call: Arc::new(Mutex::new(call)) }
    }

    /// Starts to watch. Single allocations may go beyond the limit until the hook looks, up to the double of it.
    pub(super) fn install(&self, lua: &Lua) -> mlua::Result<()> {
        lua.set_memory_limit(self.memory.saturating_mul(2))?;
        self.look_every(INTERVAL, lua)
    }

    /// A call begins; says when it has to be over.
    pub(super) fn begin(&self) -> Instant {
        let mut call = self.call();
        call.deadline = Instant::now() + self.timeout;
        call.breach = None;
        call.seen = None;
        call.deadline
    }

    /// The breach that the call has to end with, if there was one.
    pub(super) fn breach(&self) -> Option<Breach> {
        self.call().breach.clone()
    }

    /// The last line that was seen of the call.
    pub(super) fn seen(&self) -> Option<Place> {
        self.call().seen.clone()
    }

    /// Decides about an error that a script has caught: a breach is raised again, errors of the host become texts.
    pub(super) fn settle(&self, lua: &Lua, caught: Value) -> mlua::Result<Value> {
        if self.call().breach.is_some() {
            return Err(over());
        }
        let is_memory = match &caught {
            Value::String(text) => *text == "not enough memory",
            Value::Error(error) => failure::is_memory(error),
            _ => false,
        };
        if is_memory {
            self.breached(lua, Kind::Memory)?;
            return Err(over());
        }
        let Value::Error(error) = caught else {
            return Ok(caught);
        };
        let text = match failure::describe(&error) {
            (_, Some((file, line)), text) => format!("{file}:{line}: {text}"),
            (_, None, text) => text,
        };
        lua.create_string(text).map(Value::String)
    }

    /// What a breach is called in the log.
    pub(super) fn words(&self, kind: Kind) -> String {
        match kind {
            Kind::Time => format!("took longer than {:?}", self.timeout),
            _ => format!("needs more than {} KiB of memory", self.memory / 1024),
        }
    }

    fn look(&self, lua: &Lua) -> mlua::Result<VmState> {
        let (broken, deadline) = {
            let call = self.call();
            (call.breach.is_some(), call.deadline)
        };
        if broken {
            return Err(over());
        }
        let place = place(lua);
        if place.is_some() {
            self.call().seen = place;
        }
        if Instant::now() >= deadline {
            self.breached(lua, Kind::Time)?;
            return Err(over());
        }
        if lua.used_memory() > self.memory {
            lua.gc_collect()?;
            if lua.used_memory() > self.memory {
                self.breached(lua, Kind::Memory)?;
                return Err(over());
            }
        }
        Ok(VmState::Continue)
    }

    fn breached(&self, lua: &Lua, kind: Kind) -> mlua::Result<()> {
        let place = place(lua).or_else(|| self.seen());
        self.call().breach = Some(Breach { kind, place });
        self.look_every(1, lua)
    }

    fn look_every(&self, instructions: u32, lua: &Lua) -> mlua::Result<()> {
        let watch = self.clone();
        let triggers = HookTriggers::new().every_nth_instruction(instructions);
        lua.set_global_hook(triggers, move |lua, _| watch.look(lua))
    }

    fn call(&self) -> MutexGuard<'_, Call> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error that unwinds the script; what it says is seen by nobody.
fn over() -> Error {
    Error::runtime("the call is over")
}

/// The line of the script that is executed.
fn place(lua: &Lua) -> Option<Place> {
    (0..FRAMES).find_map(|level| {
        lua.inspect_stack(level, |frame| {
            let line = u32::try_from(frame.current_line()?).ok()?;
            let file = frame.source().short_src?;
            (file != PRELUDE).then(|| (file.into_owned(), line))
        })?
    })
}
