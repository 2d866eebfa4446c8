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
    let remaining = context.remaining();
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if duration < remaining => {
            clock.sleep(duration);
            Ok(false)
        }
        _ => {
            clock.sleep(remaining);
            // Only a simulated clock returns before the deadline.
            if context.remaining().is_zero() {
                return Ok(true);
            }
            Err(mlua::Error::runtime("restante.sleep: the call would exceed its time limit"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use parking_lot::Mutex;

    use super::*;

    /// A clock that records the requested durations.
    #[derive(Default)]
    struct RecordingClock(Mutex<Vec<Duration>>);

    impl Clock for RecordingClock {
        fn sleep(&self, duration: Duration) {
            self.0.lock().push(duration);
        }
    }

    /// Runs code with the given time left. Returns its error and how long it slept.
    fn slept(remaining: Duration, code: &str) -> (String, Duration) {
        let (lua, clock) = (Lua::new(), Arc::new(RecordingClock::default()));
        let dyn_clock: Arc<dyn Clock> = Arc::clone(&clock) as Arc<dyn Clock>;
        lua.set_app_data(CallContext { event: None, deadline: Instant::now() + remaining });
        lua.globals().set("sleep", function(&lua, &dyn_clock).unwrap()).unwrap();
        let result: String =
            lua.load(format!("return tostring((select(2, pcall(function() {code} end))))")).eval().unwrap();
        let slept = clock.0.lock().iter().sum();
        (result, slept)
    }

    #[test]
    fn sleeps_for_the_given_time() {
        let table = [
            ("sleep(3)", "nil", 3),
            ("sleep(0) sleep(1.5) sleep('1.5')", "nil", 3),
            ("sleep(-1)", "restante.sleep takes a number of seconds, 0 or more", 0),
            ("sleep(0/0)", "restante.sleep takes a number of seconds, 0 or more", 0),
            ("sleep('long')", "number", 0),
            ("sleep()", "number", 0),
        ];
        for (code, expected, seconds) in table {
            let (result, slept) = slept(Duration::from_mins(10), code);
            assert!(result.contains(expected), "{code}: {result}");
            assert_eq!(slept, Duration::from_secs(seconds), "{code}");
        }
    }

    #[test]
    fn sleep_ends_at_the_deadline() {
        for code in ["sleep(601)", "sleep(1e300)", "sleep(1/0)"] {
            let (result, slept) = slept(Duration::from_mins(10), code);
            assert!(result.contains("the call would exceed its time limit"), "{code}: {result}");
            assert!(slept <= Duration::from_mins(10), "{code}: {slept:?}");
        }
    }
}
