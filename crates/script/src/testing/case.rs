//! One test: a state of its own, a world of its own, and a thread of its own, because a call that hangs in C can only be
//! left behind.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use mlua::{Function, Value};

use super::environment::{LogEntry, TestEnvironment};
use super::library;
use crate::engine::{Engine, Program};
use crate::limits::THREAD_STACK_BYTES;
use crate::loaded::ScriptError;
use crate::{Settings, objects};

/// How long a step may take beyond its limit. Lua code is stopped at the limit; this is for the rest.
const STEP_GRACE: Duration = Duration::from_secs(1);

/// What went wrong in a test.
pub(super) struct TestFailure {
    /// In one line, with its place.
    pub(super) text: String,
    /// What the script and the test have written to the log.
    pub(super) log: Vec<LogEntry>,
}

/// Runs a test.
pub(super) fn run(path: &Path, settings: &Settings, name: &str) -> Result<(), TestFailure> {
    let world = TestEnvironment::new(settings.naming);
    let (its_world, its_name) = (world.clone(), name.to_owned());
    let result = run_in_thread(path, settings, &world, move |engine| call_test(engine, &its_world, &its_name));
    let result = result.and_then(|said| said.map_err(ScriptError::permanent));
    result.map_err(|error| TestFailure { text: error.to_string(), log: world.log_after(0) })
}

/// Loads the script and does something with it, on a thread of its own and not for ever.
pub(super) fn run_in_thread<T: Send + 'static>(
    path: &Path,
    settings: &Settings,
    world: &Arc<TestEnvironment>,
    work: impl FnOnce(&mut Engine) -> T + Send + 'static,
) -> Result<T, ScriptError> {
    let program = Program::read(path, settings, world.services(), Arc::new(world.shared()))?;
    let (tell, hear) = mpsc::channel();
    let steps = move || run_steps(&program, work, &tell);
    let spawned = thread::Builder::new().name("script test".to_owned()).stack_size(THREAD_STACK_BYTES).spawn(steps);
    spawned.map_err(|error| ScriptError::transient(format!("cannot start a thread: {error}")))?;
    loop {
        match hear.recv_timeout(settings.timeout + STEP_GRACE) {
            Ok(Step::Loaded(result)) => result?,
            Ok(Step::Done(value)) => return Ok(value),
            Err(RecvTimeoutError::Timeout) => {
                let sentence = format!("{}: does not end within {:?}", path.display(), settings.timeout);
                return Err(ScriptError::transient(sentence));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(ScriptError::transient(format!("{}: ended in a panic", path.display())));
            }
        }
    }
}

/// How far the thread has come.
enum Step<T> {
    Loaded(Result<(), ScriptError>),
    Done(T),
}

/// Nobody listens any more when a step took too long.
fn run_steps<T>(program: &Program, work: impl FnOnce(&mut Engine) -> T, tell: &Sender<Step<T>>) {
    let mut engine = match program.engine() {
        Ok(engine) => engine,
        Err(error) => {
            let _ = tell.send(Step::Loaded(Err(error)));
            return;
        }
    };
    let _ = tell.send(Step::Loaded(Ok(())));
    let _ = tell.send(Step::Done(work(&mut engine)));
}

/// Calls the function of a test; errors say what has failed.
fn call_test(engine: &mut Engine, world: &Arc<TestEnvironment>, name: &str) -> Result<(), String> {
    let Some(Value::Function(test)) = engine.global(name) else {
        return Err(format!("{name} is no function any more"));
    };
    let library = library::install(engine.lua(), world).map_err(|error| error.to_string())?;
    // A test may well try another function for an event.
    objects::set_handlers_frozen(engine.lua(), false);
    let result = engine.call(Some(library::TEST_EVENT), &test, library).map_err(|mut error| {
        error.location = error.location.or_else(|| definition(&test));
        error.to_string()
    });
    result.and_then(|_| world.error().map_or(Ok(()), Err))
}

/// Where a function begins: better than no place at all.
fn definition(function: &Function) -> Option<(String, u32)> {
    let info = function.info();
    let file = info.source?.strip_prefix('@')?.to_owned();
    Some((file, u32::try_from(info.line_defined?).ok()?))
}
