//! How long a call may take, how much memory a state may hold, and how deep its calls may nest. A hook looks every so many
//! instructions; from the first breach on it raises an error at every single one, so that nothing a script does can keep
//! the call going. What runs in C for long is not seen here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mlua::state::{GcIncParams, GcMode};
use mlua::{Error, HookTriggers, Lua, Value, VmState};

use crate::Settings;
use crate::failure::{self, Kind, Place, place};

/// How many instructions pass between two looks: about a microsecond of plain ones, while a single one that calls a
/// function of C on a long text can take ten milliseconds.
const INTERVAL: u32 = 100;

/// How many looks pass until one looks for the line too, which costs more than all the rest of a short call. The second
/// look is the first to do so.
const LINE_INTERVAL: u32 = 10;

/// How long a call may go on after its time is up. Lua code is stopped by then; what is left waits for something else.
pub(crate) const GRACE: Duration = Duration::from_millis(250);

/// The stack that a thread needs to run states.
pub(crate) const STACK: usize = 16 * 1024 * 1024;

/// How much of it a call may use. Coroutines within coroutines, and functions of Lua that are called from C, which are
/// called from Lua, nest on the stack of the thread, and nothing else stops them before it ends, and the process with it.
/// Between two looks such a call can take some hundred times the largest frame, which is far from the rest of the stack:
/// `prelude.lua` sees to it that there are instructions between any two frames, and [`look`] is for those of the host.
const MAX_DEPTH: usize = 4 * 1024 * 1024;

/// When the collector begins anew, in percent of what the state held when it was last done. Most states hold little, and
/// with Lua's own measure of twice as much they would spend a quarter of their time on collecting.
const PAUSE: i32 = 1000;

/// The same for a state that holds much, where so much garbage would come near the limit.
const SHORT_PAUSE: i32 = 200;

/// What part of the memory that it may hold is much.
const MUCH: usize = 8;

/// Watches over the calls of one state.
#[derive(Clone)]
pub(crate) struct Watch {
    timeout: Duration,
    memory: usize,
    call: Arc<Mutex<Call>>,
}

/// What is known of the call under way, or of the last one.
struct Call {
    deadline: Instant,
    /// Where on the stack of its thread it has begun.
    bottom: usize,
    breach: Option<Breach>,
    /// How many looks there were.
    looks: u32,
    /// The last line that was seen: neither an allocation that fails nor a call that is given up tells where.
    seen: Option<Place>,
    /// Whether the state has held much since it was made.
    holds_much: bool,
}

impl Call {
    /// Remembers a line. Most of them are of the same file, whose name is not copied again.
    fn see(&mut self, file: &str, line: u32) {
        match &mut self.seen {
            Some((known, last)) if known == file => *last = line,
            seen => *seen = Some((file.to_owned(), line)),
        }
    }
}

/// A limit that was passed.
#[derive(Clone, Debug)]
pub(crate) struct Breach {
    pub(crate) kind: Kind,
    pub(crate) place: Option<Place>,
}

impl Watch {
    pub(crate) fn new(settings: &Settings) -> Self {
        let (deadline, bottom) = (Instant::now(), stack_place());
        let call = Call { deadline, bottom, breach: None, looks: 0, seen: None, holds_much: false };
        Self { timeout: settings.timeout, memory: settings.memory, call: Arc::new(Mutex::new(call)) }
    }

    /// Starts to watch.
    pub(crate) fn install(&self, lua: &Lua) -> mlua::Result<()> {
        pause(lua, PAUSE);
        lua.set_app_data(self.clone());
        self.look_every(INTERVAL, lua)
    }

    /// A call begins; says when it has to be over. Single allocations may go beyond the limit until the hook looks, up to
    /// the double of it.
    pub(crate) fn begin(&self, lua: &Lua) -> mlua::Result<Instant> {
        lua.set_memory_limit(self.memory.saturating_mul(2))?;
        let mut call = self.call();
        call.deadline = Instant::now() + self.timeout;
        call.bottom = stack_place();
        call.breach = None;
        call.looks = 0;
        call.seen = None;
        Ok(call.deadline)
    }

    /// A call is over; says what breach it has to end with, if there was one. What is done in the state until the next one
    /// is bounded without a limit, and quicker.
    pub(crate) fn end(&self, lua: &Lua) -> mlua::Result<Option<Breach>> {
        lua.set_memory_limit(0)?;
        self.mind_garbage(lua);
        Ok(self.call().breach.clone())
    }

    /// The last line that was seen of the call.
    pub(crate) fn seen(&self) -> Option<Place> {
        self.call().seen.clone()
    }

    /// Decides about an error that a script has caught: a breach is raised again, errors of the host become texts.
    pub(crate) fn settle(&self, lua: &Lua, caught: Value) -> mlua::Result<Value> {
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
    pub(crate) fn words(&self, kind: Kind) -> String {
        match kind {
            Kind::Time => format!("took longer than {:?}", self.timeout),
            Kind::Depth => "nests its calls too deeply".to_owned(),
            _ => format!("needs more than {} KiB of memory", self.memory / 1024),
        }
    }

    fn look(&self, lua: &Lua) -> mlua::Result<()> {
        let (deadline, bottom) = {
            let mut call = self.call();
            if call.breach.is_some() {
                return Err(over());
            }
            if call.looks % LINE_INTERVAL == 1 {
                failure::at_place(lua, |file, line| call.see(file, line));
            }
            call.looks = call.looks.wrapping_add(1);
            (call.deadline, call.bottom)
        };
        if Instant::now() >= deadline {
            self.breached(lua, Kind::Time)?;
            return Err(over());
        }
        if bottom.abs_diff(stack_place()) > MAX_DEPTH {
            self.breached(lua, Kind::Depth)?;
            return Err(over());
        }
        self.mind_garbage(lua);
        if lua.used_memory() > self.memory {
            lua.gc_collect()?;
            if lua.used_memory() > self.memory {
                self.breached(lua, Kind::Memory)?;
                return Err(over());
            }
        }
        Ok(())
    }

    /// Sees to it that a state that has come to hold much is collected more often, from now on.
    fn mind_garbage(&self, lua: &Lua) {
        if lua.used_memory() <= self.memory / MUCH {
            return;
        }
        let mut call = self.call();
        if !call.holds_much {
            call.holds_much = true;
            pause(lua, SHORT_PAUSE);
            lua.gc_restart();
        }
    }

    fn breached(&self, lua: &Lua, kind: Kind) -> mlua::Result<()> {
        let place = place(lua).or_else(|| self.seen());
        self.call().breach = Some(Breach { kind, place });
        self.look_every(1, lua)
    }

    fn look_every(&self, instructions: u32, lua: &Lua) -> mlua::Result<()> {
        let watch = self.clone();
        let triggers = HookTriggers::new().every_nth_instruction(instructions);
        lua.set_global_hook(triggers, move |lua, _| watch.look(lua).map(|()| VmState::Continue))
    }

    fn call(&self) -> MutexGuard<'_, Call> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks after the limits of the call that is under way, for functions of the host that call Lua in turn or take long.
pub(crate) fn look(lua: &Lua) -> mlua::Result<()> {
    let watch = lua.app_data_ref::<Watch>().map(|watch| watch.clone());
    watch.map_or(Ok(()), |watch| watch.look(lua))
}

fn pause(lua: &Lua, percent: i32) {
    lua.gc_set_mode(GcMode::Incremental(GcIncParams::default().pause(percent)));
}

/// The error that unwinds the script; what it says is seen by nobody.
fn over() -> Error {
    Error::runtime("the call is over")
}

/// How far the stack of this thread has come.
#[inline(never)]
fn stack_place() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}
