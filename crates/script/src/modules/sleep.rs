//! `restante.sleep`: delays the script, for scripts that simulate a slow server. It sleeps at most until the deadline
//! of the call.

use std::sync::Arc;
use std::time::Duration;

use mlua::{Function, Lua};

use crate::call_error::PRELUDE_NAME;
use crate::event::CallContext;
use crate::services::Clock;

/// When the deadline has passed, this loops until the limit of the call raises its error. The chunk name keeps its
/// lines out of error messages.
const SLEEP_CHUNK: &str = "local sleep = ... return function(seconds) while sleep(seconds) do end end";

/// Creates the function.
pub(super) fn function(lua: &Lua, clock: &Arc<dyn Clock>) -> mlua::Result<Function> {
    let clock = Arc::clone(clock);
    let sleep = lua.create_function(move |lua, seconds: f64| sleep(lua, &*clock, seconds))?;
    // Scripts can get the environment of the function, so it must not be that of the host.
    lua.load(SLEEP_CHUNK).set_name(format!("={PRELUDE_NAME}")).set_environment(lua.create_table()?).call(sleep)
}

/// Sleeps. Returns whether the deadline of the call passed first.
fn sleep(lua: &Lua, clock: &dyn Clock, seconds: f64) -> mlua::Result<bool> {
    if seconds.is_nan() || seconds < 0.0 {
        return Err(mlua::Error::runtime("restante.sleep takes a number of seconds, 0 or more"));
    }
    let context = CallContext::current(lua)?;
    let left = context.remaining();
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if time < left => {
            clock.sleep(time);
            Ok(false)
        }
        _ => {
            clock.sleep(left);
            // Only a simulated clock returns before the deadline.
            if context.remaining().is_zero() {
                return Ok(true);
            }
            Err(mlua::Error::runtime("restante.sleep: the call would take longer than it may"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};
    use std::time::Instant;

    use super::*;

    /// A clock that records the requested durations.
    #[derive(Default)]
    struct RecordingClock(Mutex<Vec<Duration>>);

    impl Clock for RecordingClock {
        fn sleep(&self, time: Duration) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(time);
        }
    }

    /// Runs code with the given time left. Returns its error and how long it slept.
    fn slept(left: Duration, code: &str) -> (String, Duration) {
        let (lua, notes) = (Lua::new(), Arc::new(RecordingClock::default()));
        let clock: Arc<dyn Clock> = Arc::clone(&notes) as Arc<dyn Clock>;
        lua.set_app_data(CallContext { event: None, deadline: Instant::now() + left });
        lua.globals().set("sleep", function(&lua, &clock).unwrap()).unwrap();
        let said: String =
            lua.load(format!("return tostring((select(2, pcall(function() {code} end))))")).eval().unwrap();
        let slept = notes.0.lock().unwrap().iter().sum();
        (said, slept)
    }

    #[test]
    fn time_passes_as_long_as_the_call_may_take() {
        let table = [
            ("sleep(3)", "nil", 3),
            ("sleep(0) sleep(1.5) sleep('1.5')", "nil", 3),
            ("sleep(-1)", "restante.sleep takes a number of seconds, 0 or more", 0),
            ("sleep(0/0)", "restante.sleep takes a number of seconds, 0 or more", 0),
            ("sleep('long')", "number", 0),
            ("sleep()", "number", 0),
        ];
        for (code, said, seconds) in table {
            let (found, slept) = slept(Duration::from_mins(10), code);
            assert!(found.contains(said), "{code}: {found}");
            assert_eq!(slept, Duration::from_secs(seconds), "{code}");
        }
    }

    #[test]
    fn nobody_sleeps_beyond_the_end_of_the_call() {
        for code in ["sleep(601)", "sleep(1e300)", "sleep(1/0)"] {
            let (said, slept) = slept(Duration::from_mins(10), code);
            assert!(said.contains("the call would take longer than it may"), "{code}: {said}");
            assert!(slept <= Duration::from_mins(10), "{code}: {slept:?}");
        }
    }
}
