//! Limits on the duration of a call, the memory of a state and the depth of calls. A hook checks them after every
//! [`HOOK_INTERVAL`] instructions. After a limit was exceeded, the hook raises an error at every instruction, so that a
//! script cannot keep the call going. Long-running C functions are not interrupted here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mlua::state::{GcIncParams, GcMode};
use mlua::{Error, HookTriggers, Lua, Value, VmState};
use parking_lot::Mutex;

use crate::Settings;
use crate::call_error::{self, CallErrorKind, SourceLocation, current_location};

/// The number of instructions between two checks. That is about a microsecond of simple instructions, but one
/// instruction that calls a C function on a long text can take ten milliseconds.
const HOOK_INTERVAL: u32 = 100;

/// The number of checks between two recordings of the current line. Recording costs more than the rest of a short call.
/// The second check records for the first time.
const LOCATION_INTERVAL: u32 = 10;

/// How long a call may continue after its timeout before it is abandoned. Lua code has been stopped by then; what
/// remains is blocked in C code.
pub(crate) const TIMEOUT_GRACE: Duration = Duration::from_millis(250);

/// The stack size of threads that run Lua states.
pub(crate) const THREAD_STACK_BYTES: usize = 16 * 1024 * 1024;

/// The maximum part of the stack that a call may use. Nested coroutines, and Lua functions that are called from C
/// functions, nest on the stack of the thread. Without this limit they could overflow it, which kills the process.
/// Between two checks such a call can use a few hundred times the largest frame, which is much less than the rest of
/// the stack: `prelude.lua` makes sure that there are instructions between any two frames, and host functions call
/// [`check_limits`].
const MAX_STACK_BYTES: usize = 4 * 1024 * 1024;

/// The memory use at which the garbage collector starts a new cycle, in percent of the use after the last cycle. Most
/// states are small. With Lua's default of 200 they would spend a quarter of their time on collection.
const GC_PAUSE_PERCENT: i32 = 1000;

/// The same for large states, in which that much garbage would exceed the memory limit.
const GC_SHORT_PAUSE_PERCENT: i32 = 200;

/// A state is large if it uses more than this fraction of its memory limit.
const LARGE_STATE_DIVISOR: usize = 8;

/// Enforces the limits of one state.
#[derive(Clone)]
pub(crate) struct Limiter {
    timeout: Duration,
    max_memory_bytes: usize,
    call: Arc<Mutex<CallState>>,
}

/// The state of the current call, or of the last one.
struct CallState {
    deadline: Instant,
    /// The position on the stack of the thread at which the call started.
    stack_base: usize,
    exceeded: Option<LimitExceeded>,
    /// The number of checks.
    checks: u32,
    /// The last recorded line. Failed allocations and abandoned calls do not report where they happened.
    last_location: Option<SourceLocation>,
    /// Whether the state has ever been large.
    is_large: bool,
}

impl CallState {
    /// Records a line. Usually the file is the same as before, and its name is not copied again.
    fn record_location(&mut self, file: &str, line: u32) {
        match &mut self.last_location {
            Some((last_file, last)) if last_file == file => *last = line,
            location => *location = Some((file.to_owned(), line)),
        }
    }
}

/// A limit that was exceeded.
#[derive(Clone, Debug)]
pub(crate) struct LimitExceeded {
    pub(crate) kind: CallErrorKind,
    pub(crate) location: Option<SourceLocation>,
}

impl Limiter {
    pub(crate) fn new(settings: &Settings) -> Self {
        let (deadline, stack_base) = (Instant::now(), stack_position());
        let call = CallState { deadline, stack_base, exceeded: None, checks: 0, last_location: None, is_large: false };
        Self {
            timeout: settings.timeout,
            max_memory_bytes: settings.max_memory_bytes,
            call: Arc::new(Mutex::new(call)),
        }
    }

    /// Installs the hook in `lua`.
    pub(crate) fn install(&self, lua: &Lua) -> mlua::Result<()> {
        set_collector_pause(lua, GC_PAUSE_PERCENT);
        lua.set_app_data(self.clone());
        self.set_hook_interval(HOOK_INTERVAL, lua)
    }

    /// Starts a call. Returns its deadline. Single allocations may exceed the memory limit, up to twice its value,
    /// until the next check.
    pub(crate) fn start_call(&self, lua: &Lua) -> mlua::Result<Instant> {
        lua.set_memory_limit(self.max_memory_bytes.saturating_mul(2))?;
        let mut call = self.call.lock();
        call.deadline = Instant::now() + self.timeout;
        call.stack_base = stack_position();
        call.exceeded = None;
        call.checks = 0;
        call.last_location = None;
        Ok(call.deadline)
    }

    /// Ends a call. Returns the limit that was exceeded, if any. The memory limit is off until the next call: work
    /// between calls is bounded, and faster without it.
    pub(crate) fn finish_call(&self, lua: &Lua) -> mlua::Result<Option<LimitExceeded>> {
        lua.set_memory_limit(0)?;
        self.adjust_collector(lua);
        Ok(self.call.lock().exceeded.clone())
    }

    /// Returns the last recorded line of the call.
    pub(crate) fn last_location(&self) -> Option<SourceLocation> {
        self.call.lock().last_location.clone()
    }

    /// Handles an error that a script has caught. Raises it again if a limit was exceeded. Converts errors of the host
    /// into strings.
    pub(crate) fn convert_caught(&self, lua: &Lua, caught: Value) -> mlua::Result<Value> {
        if self.call.lock().exceeded.is_some() {
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

    /// Returns the text for an exceeded limit.
    pub(crate) fn describe(&self, kind: CallErrorKind) -> String {
        match kind {
            CallErrorKind::Timeout => format!("took longer than {:?}", self.timeout),
            CallErrorKind::Depth => "nests its calls too deeply".to_owned(),
            _ => format!("needs more than {} KiB of memory", self.max_memory_bytes / 1024),
        }
    }

    fn check(&self, lua: &Lua) -> mlua::Result<()> {
        let (deadline, stack_base) = {
            let mut call = self.call.lock();
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
        if stack_base.abs_diff(stack_position()) > MAX_STACK_BYTES {
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

    /// Makes the collector of a state that has become large run more often from now on.
    fn adjust_collector(&self, lua: &Lua) {
        if lua.used_memory() <= self.max_memory_bytes / LARGE_STATE_DIVISOR {
            return;
        }
        let mut call = self.call.lock();
        if !call.is_large {
            call.is_large = true;
            set_collector_pause(lua, GC_SHORT_PAUSE_PERCENT);
            lua.gc_restart();
        }
    }

    fn set_exceeded(&self, lua: &Lua, kind: CallErrorKind) -> mlua::Result<()> {
        let location = current_location(lua).or_else(|| self.last_location());
        self.call.lock().exceeded = Some(LimitExceeded { kind, location });
        self.set_hook_interval(1, lua)
    }

    fn set_hook_interval(&self, instructions: u32, lua: &Lua) -> mlua::Result<()> {
        let limiter = self.clone();
        let triggers = HookTriggers::new().every_nth_instruction(instructions);
        lua.set_global_hook(triggers, move |lua, _| limiter.check(lua).map(|()| VmState::Continue))
    }
}

/// Checks the limits of the current call. For host functions that call Lua or take long.
pub(crate) fn check_limits(lua: &Lua) -> mlua::Result<()> {
    let limiter = lua.app_data_ref::<Limiter>().map(|limiter| limiter.clone());
    limiter.map_or(Ok(()), |limiter| limiter.check(lua))
}

fn set_collector_pause(lua: &Lua, percent: i32) {
    lua.gc_set_mode(GcMode::Incremental(GcIncParams::default().pause(percent)));
}

/// Returns the error that unwinds the script. Its text is never shown.
fn call_over() -> Error {
    Error::runtime("the call is over")
}

/// Returns the current position on the stack of this thread.
#[inline(never)]
fn stack_position() -> usize {
    let marker = 0_u8;
    std::ptr::from_ref(&marker).addr()
}
