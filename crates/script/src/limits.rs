//! How long a call may take, how much memory a state may hold, and how deep its calls may nest. A hook looks every so many
//! instructions; from the first breach on it raises an error at every single one, so that nothing a script does can keep
//! the call going. What runs in C for long is not seen here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mlua::state::{GcIncParams, GcMode};
use mlua::{Error, HookTriggers, Lua, Value, VmState};

use crate::Settings;
use crate::call_error::{self, CallErrorKind, SourceLocation, current_location};

/// How many instructions pass between two looks: about a microsecond of plain ones, while a single one that calls a
/// function of C on a long text can take ten milliseconds.
const HOOK_INTERVAL: u32 = 100;

/// How many looks pass until one looks for the line too, which costs more than all the rest of a short call. The second
/// look is the first to do so.
const LOCATION_INTERVAL: u32 = 10;

/// How long a call may go on after its time is up. Lua code is stopped by then; what is left waits for something else.
pub(crate) const TIMEOUT_GRACE: Duration = Duration::from_millis(250);

/// The stack that a thread needs to run states.
pub(crate) const THREAD_STACK_BYTES: usize = 16 * 1024 * 1024;

/// How much of it a call may use. Coroutines within coroutines, and functions of Lua that are called from C, which are
/// called from Lua, nest on the stack of the thread, and nothing else stops them before it ends, and the process with it.
/// Between two looks such a call can take some hundred times the largest frame, which is far from the rest of the stack:
/// `prelude.lua` sees to it that there are instructions between any two frames, and [`look`] is for those of the host.
const MAX_STACK_BYTES: usize = 4 * 1024 * 1024;

/// When the collector begins anew, in percent of what the state held when it was last done. Most states hold little, and
/// with Lua's own measure of twice as much they would spend a quarter of their time on collecting.
const GC_PAUSE_PERCENT: i32 = 1000;

/// The same for a state that holds much, where so much garbage would come near the limit.
const GC_SHORT_PAUSE_PERCENT: i32 = 200;

/// What part of the memory that it may hold is much.
const LARGE_STATE_DIVISOR: usize = 8;

/// Watches over the calls of one state.
#[derive(Clone)]
pub(crate) struct Limiter {
    timeout: Duration,
    max_memory_bytes: usize,
    call: Arc<Mutex<CallState>>,
}

/// What is known of the call under way, or of the last one.
struct CallState {
    deadline: Instant,
    /// Where on the stack of its thread it has begun.
    stack_base: usize,
    exceeded: Option<LimitExceeded>,
    /// How many looks there were.
    checks: u32,
    /// The last line that was seen: neither an allocation that fails nor a call that is given up tells where.
    last_location: Option<SourceLocation>,
    /// Whether the state has held much since it was made.
    is_large: bool,
}

impl CallState {
    /// Remembers a line. Most of them are of the same file, whose name is not copied again.
    fn record_location(&mut self, file: &str, line: u32) {
        match &mut self.last_location {
            Some((known, last)) if known == file => *last = line,
            seen => *seen = Some((file.to_owned(), line)),
        }
    }
}

/// A limit that was passed.
#[derive(Clone, Debug)]
pub(crate) struct LimitExceeded {
    pub(crate) kind: CallErrorKind,
    pub(crate) location: Option<SourceLocation>,
}

impl Limiter {
    pub(crate) fn new(settings: &Settings) -> Self {
        let (deadline, bottom) = (Instant::now(), stack_position());
        let call =
            CallState { deadline, stack_base: bottom, exceeded: None, checks: 0, last_location: None, is_large: false };
        Self {
            timeout: settings.timeout,
            max_memory_bytes: settings.max_memory_bytes,
            call: Arc::new(Mutex::new(call)),
        }
    }

    /// Starts to watch.
    pub(crate) fn install(&self, lua: &Lua) -> mlua::Result<()> {
        set_collector_pause(lua, GC_PAUSE_PERCENT);
        lua.set_app_data(self.clone());
        self.set_hook_interval(HOOK_INTERVAL, lua)
    }

    /// A call begins; says when it has to be over. Single allocations may go beyond the limit until the hook looks, up to
    /// the double of it.
    pub(crate) fn start_call(&self, lua: &Lua) -> mlua::Result<Instant> {
        lua.set_memory_limit(self.max_memory_bytes.saturating_mul(2))?;
        let mut call = self.lock();
        call.deadline = Instant::now() + self.timeout;
        call.stack_base = stack_position();
        call.exceeded = None;
        call.checks = 0;
        call.last_location = None;
        Ok(call.deadline)
    }

    /// A call is over; says what breach it has to end with, if there was one. What is done in the state until the next one
    /// is bounded without a limit, and quicker.
    pub(crate) fn finish_call(&self, lua: &Lua) -> mlua::Result<Option<LimitExceeded>> {
        lua.set_memory_limit(0)?;
        self.adjust_collector(lua);
        Ok(self.lock().exceeded.clone())
    }

    /// The last line that was seen of the call.
    pub(crate) fn last_location(&self) -> Option<SourceLocation> {
        self.lock().last_location.clone()
    }

    /// Decides about an error that a script has caught: a breach is raised again, errors of the host become texts.
    pub(crate) fn convert_caught(&self, lua: &Lua, caught: Value) -> mlua::Result<Value> {
        if self.lock().exceeded.is_some() {
            return Err(call_over());
        }
        let is_memory = match &caught {
            Value::String(text) => *text == "not enough memory",
            Value::Error(error) => call_error::is_out_of_memory(error),
            _ => false,
        };
        if is_memory {
            self.set_exceeded(lua, CallErrorKind::Memory)?;
            return Err(call_over());
        }
        let Value::Error(error) = caught else {
            return Ok(caught);
        };
        let text = match call_error::describe(&error) {
            (_, Some((file, line)), text) => format!("{file}:{line}: {text}"),
            (_, None, text) => text,
        };
        lua.create_string(text).map(Value::String)
    }

    /// What a breach is called in the log.
    pub(crate) fn describe(&self, kind: CallErrorKind) -> String {
        match kind {
            CallErrorKind::Timeout => format!("took longer than {:?}", self.timeout),
            CallErrorKind::Depth => "nests its calls too deeply".to_owned(),
            _ => format!("needs more than {} KiB of memory", self.max_memory_bytes / 1024),
        }
    }

    fn check(&self, lua: &Lua) -> mlua::Result<()> {
        let (deadline, bottom) = {
            let mut call = self.lock();
            if call.exceeded.is_some() {
                return Err(call_over());
            }
            if call.checks % LOCATION_INTERVAL == 1 {
                call_error::with_current_location(lua, |file, line| call.record_location(file, line));
            }
            call.checks = call.checks.wrapping_add(1);
            (call.deadline, call.stack_base)
        };
        if Instant::now() >= deadline {
            self.set_exceeded(lua, CallErrorKind::Timeout)?;
            return Err(call_over());
        }
        if bottom.abs_diff(stack_position()) > MAX_STACK_BYTES {
            self.set_exceeded(lua, CallErrorKind::Depth)?;
            return Err(call_over());
        }
        self.adjust_collector(lua);
        if lua.used_memory() > self.max_memory_bytes {
            lua.gc_collect()?;
            if lua.used_memory() > self.max_memory_bytes {
                self.set_exceeded(lua, CallErrorKind::Memory)?;
                return Err(call_over());
            }
        }
        Ok(())
    }

    /// Sees to it that a state that has come to hold much is collected more often, from now on.
    fn adjust_collector(&self, lua: &Lua) {
        if lua.used_memory() <= self.max_memory_bytes / LARGE_STATE_DIVISOR {
            return;
        }
        let mut call = self.lock();
        if !call.is_large {
            call.is_large = true;
            set_collector_pause(lua, GC_SHORT_PAUSE_PERCENT);
            lua.gc_restart();
        }
    }

    fn set_exceeded(&self, lua: &Lua, kind: CallErrorKind) -> mlua::Result<()> {
        let place = current_location(lua).or_else(|| self.last_location());
        self.lock().exceeded = Some(LimitExceeded { kind, location: place });
        self.set_hook_interval(1, lua)
    }

    fn set_hook_interval(&self, instructions: u32, lua: &Lua) -> mlua::Result<()> {
        let watch = self.clone();
        let triggers = HookTriggers::new().every_nth_instruction(instructions);
        lua.set_global_hook(triggers, move |lua, _| watch.check(lua).map(|()| VmState::Continue))
    }

    fn lock(&self) -> MutexGuard<'_, CallState> {
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks after the limits of the call that is under way, for functions of the host that call Lua in turn or take long.
pub(crate) fn check_limits(lua: &Lua) -> mlua::Result<()> {
    let watch = lua.app_data_ref::<Limiter>().map(|watch| watch.clone());
    watch.map_or(Ok(()), |watch| watch.check(lua))
}

fn set_collector_pause(lua: &Lua, percent: i32) {
    lua.gc_set_mode(GcMode::Incremental(GcIncParams::default().pause(percent)));
}

/// The error that unwinds the script; what it says is seen by nobody.
fn call_over() -> Error {
    Error::runtime("the call is over")
}

/// How far the stack of this thread has come.
#[inline(never)]
fn stack_position() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}
