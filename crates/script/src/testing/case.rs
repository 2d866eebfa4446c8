//! Runs one test, in its own state, environment and thread. The thread is needed because a call that hangs in C code
//! can only be abandoned.

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

/// How long a step may take after its timeout. Lua code is stopped at the timeout; this is for C code.
const STEP_GRACE: Duration = Duration::from_secs(1);

/// The failure of a test.
pub(super) struct TestFailure {
    /// The error in one line, with its location.
    pub(super) text: String,
    /// The log lines of the script and the test.
    pub(super) log: Vec<LogEntry>,
}

/// Runs a test.
pub(super) fn run(path: &Path, settings: &Settings, name: &str) -> Result<(), TestFailure> {
    let environment = TestEnvironment::new(settings.naming);
    let (test_environment, test_name) = (environment.clone(), name.to_owned());
    let result =
        run_in_thread(path, settings, &environment, move |engine| call_test(engine, &test_environment, &test_name));
    let result = result.and_then(|result| result.map_err(ScriptError::permanent));
    result.map_err(|error| TestFailure { text: error.to_string(), log: environment.log_after(0) })
}

/// Loads the script on a separate thread and calls `work` with it. Fails if that takes too long.
pub(super) fn run_in_thread<T: Send + 'static>(
    path: &Path,
    settings: &Settings,
    environment: &Arc<TestEnvironment>,
    work: impl FnOnce(&mut Engine) -> T + Send + 'static,
) -> Result<T, ScriptError> {
    let program = Program::read(path, settings, environment.services(), Arc::new(environment.shared()))?;
    let (sender, receiver) = mpsc::channel();
    let run = move || run_steps(&program, work, &sender);
    let spawned = thread::Builder::new().name("script test".to_owned()).stack_size(THREAD_STACK_BYTES).spawn(run);
    spawned.map_err(|error| ScriptError::transient(format!("cannot start a thread: {error}")))?;
    loop {
        match receiver.recv_timeout(settings.timeout + STEP_GRACE) {
            Ok(Step::Loaded(result)) => result?,
            Ok(Step::Done(value)) => return Ok(value),
            Err(RecvTimeoutError::Timeout) => {
                let message = format!("{}: does not end within {:?}", path.display(), settings.timeout);
                return Err(ScriptError::transient(message));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(ScriptError::transient(format!("{}: ended in a panic", path.display())));
            }
        }
    }
}

/// The progress of the thread.
enum Step<T> {
    Loaded(Result<(), ScriptError>),
    Done(T),
}

/// Sends each step to `sender`. The receiver is gone if a step took too long.
fn run_steps<T>(program: &Program, work: impl FnOnce(&mut Engine) -> T, sender: &Sender<Step<T>>) {
    let mut engine = match program.engine() {
        Ok(engine) => engine,
        Err(error) => {
            let _ = sender.send(Step::Loaded(Err(error)));
            return;
        }
    };
    let _ = sender.send(Step::Loaded(Ok(())));
    let _ = sender.send(Step::Done(work(&mut engine)));
}

/// Calls the function of a test.
fn call_test(engine: &mut Engine, environment: &Arc<TestEnvironment>, name: &str) -> Result<(), String> {
    let Some(Value::Function(test)) = engine.global(name) else {
        return Err(format!("{name} is no longer a function"));
    };
    let library = library::install(&engine.lua, environment).map_err(|error| error.to_string())?;
    // A test may define other functions for events.
    objects::set_handlers_frozen(&engine.lua, false);
    let result = engine.call(Some(library::TEST_EVENT), &test, library).map_err(|mut error| {
        error.location = error.location.or_else(|| definition(&test));
        error.to_string()
    });
    result.and_then(|_| environment.state.lock().error.take().map_or(Ok(()), Err))
}

/// Returns where a function is defined.
fn definition(function: &Function) -> Option<(String, u32)> {
    let info = function.info();
    let file = info.source?.strip_prefix('@')?.to_owned();
    Some((file, u32::try_from(info.line_defined?).ok()?))
}
