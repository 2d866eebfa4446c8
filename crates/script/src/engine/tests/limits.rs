//! Tests of the limits on time, memory and call depth.

use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use super::Fixture;
use super::calls::envelope;
use crate::call_error::CallErrorKind;
use crate::event::ScriptEvent;
use crate::limits::THREAD_STACK_BYTES;

/// Scripts that never end. The error names line 1.
const ENDLESS_SCRIPTS: &[&str] = &[
    "while true do end",
    "while true do pcall(function() while true do end end) end",
    "local function again() pcall(again) end while true do again() end",
    "while true do pcall(error, 'x') end",
    "while true do xpcall(function() while true do end end, function() while true do end end) end",
    "while true do xpcall(error, function() while true do end end) end",
    "while true do xpcall(error, function() error('again') end) end",
    "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
    "while true do pcall(coroutine.wrap(function() while true do pcall(function() while true do end end) end end)) end",
    "local t = setmetatable({}, {__index = function() while true do end end}) while true do pcall(function() return t.x end) end",
    "local t = setmetatable({}, {__tostring = function() while true do end end}) while true do pcall(tostring, t) end",
    "error(setmetatable({}, {__tostring = function() while true do end end}))",
    "while true do pcall(string.gsub, 'aaaa', 'a', function() while true do end end) end",
    "while true do pcall(table.sort, {3, 2, 1}, function() while true do end end) end",
    "while true do pcall(loadstring('while true do end', '=rules.lua')) end",
    "while true do pcall(load, function() while true do end end) end",
    "while true do pcall(print, setmetatable({}, {__tostring = function() while true do end end})) end",
    "while true do pcall(require, 'nothing') end",
    "repeat local ok = pcall(function() repeat until false end) until ok",
    "::again:: pcall(function() ::again:: goto again end) goto again",
    "local t = setmetatable({}, {__tostring = tostring}) tostring(t)",
    "local t = setmetatable({}, {__tostring = tostring}) print(t)",
    "local t = setmetatable({}, {__tostring = tostring}) string.format('%s', t)",
    "local t = setmetatable({}, {__tostring = tostring}) require('logger').info(t)",
    // Few tables, but exponentially many calls.
    "local meta = {__lt = tostring, __tostring = table.sort} local t = setmetatable({}, meta) \
     for i = 1, 40 do t = setmetatable({t, t, t}, meta) end tostring(t)",
    "os.execute('sleep 3600')",
    "while true do pcall(os.execute, 'sleep 3600 & wait') end",
    "restante.sleep(3600)",
    "while true do pcall(restante.sleep, 1 / 0) end",
];

#[test]
fn endless_scripts_stop_at_the_deadline() {
    run_on_worker_stack(|| {
        for script in ENDLESS_SCRIPTS {
            let mut fixture = Fixture::script(script);
            fixture.settings.timeout = Duration::from_millis(30);
            let started = Instant::now();
            assert_eq!(fixture.result(), "rules.lua:1: took longer than 30ms", "{script}");
            assert!(started.elapsed() < Duration::from_mins(1), "{script}");
        }
    });
}

/// Scripts that nest calls on the stack of the thread, alone and combined.
const NESTING_SCRIPTS: &[&str] = &[
    "local f f = function() coroutine.wrap(f)() end f()",
    "local f f = function() coroutine.wrap(f)() end while true do pcall(f) end",
    "local f f = function() coroutine.resume(coroutine.create(f)) end f()",
    "local f f = function() string.gsub('a', 'a', f) end f()",
    "local f f = function() string.gsub('a', 'a', coroutine.wrap(f)) end f()",
    "local f f = function() pcall(string.gsub, 'a', 'a', function() pcall(coroutine.wrap(f)) end) end while true do f() end",
    "local t t = setmetatable({}, {__tostring = function() require('logger').info(t) return '' end}) print(t)",
    "local log = require('logger') local t = setmetatable({}, {__tostring = log.info}) log.info(t)",
    "local get = require('http').get local t = setmetatable({}, {__tostring = get}) get(t)",
    "local post = require('http').post local t = setmetatable({}, {__tostring = post}) post('', {headers = {a = t}})",
];

#[test]
fn endless_nesting_is_an_error() {
    run_on_worker_stack(|| {
        for script in NESTING_SCRIPTS {
            let mut fixture = Fixture::script(script);
            fixture.settings.timeout = Duration::from_mins(1);
            fixture.settings.max_memory_bytes = 256 * 1024 * 1024;
            assert_eq!(fixture.result(), "rules.lua:1: nests its calls too deeply", "{script}");
        }
    });
}

/// C functions that call other functions, each with a way to get from one object to the next.
const LINKS: &[&str] = &[
    "{__tostring = WRAP(tostring)}",
    "{__tostring = WRAP(table.sort), __lt = WRAP(tostring)}",
    "{__tostring = WRAP(os.time), __index = WRAP(tostring)}",
    "{__tostring = WRAP(require('logger').info)}",
    "{__tostring = WRAP(function(t) return ('%s'):format(t[1]) end)}",
    "{__tostring = WRAP(function(t) return (('a'):gsub('a', function() return tostring(t[1]) end)) end)}",
    "{__tostring = WRAP(function(t) return (('a'):gsub('a', setmetatable({}, {__index = function() return tostring(t[1]) end}))) end)}",
    "{__call = WRAP(tostring), __tostring = WRAP(pcall)}",
    "{__concat = WRAP(tostring), __tostring = function(t) return t .. t[1] end}",
    "{__eq = WRAP(tostring), __tostring = function(t) return tostring(t[1] == t[2]) .. tostring(t[1]) end}",
    "{__len = WRAP(tostring), __unm = WRAP(tostring), __tostring = function(t) return -t[1] end}",
    "{__newindex = WRAP(tostring), __tostring = function(t) t[1].x = 1 return '' end}",
    "{__tostring = WRAP(xpcall), __call = WRAP(tostring)}",
    "{__tostring = WRAP(require('http').get)}",
    "{__tostring = WRAP(print)}",
];

/// A long chain of objects, in which each object calls the next.
const CHAIN: &str = "local t = setmetatable({}, {__tostring = function() return 'end' end}) \
                     for i = 1, 100000 do t = setmetatable({t, t}, LINK) end \
                     pcall(tostring, t) table.sort({t, t}, tostring) result = 'over'";

/// The possible results. If a wrapped function calls itself, Lua raises an error because the coroutine is running.
const POSSIBLE_RESULTS: &[&str] =
    &["over", "stack overflow", "nests its calls too deeply", "took longer than 1s", "cannot resume dead coroutine"];

#[test]
fn long_chains_of_c_functions_do_not_crash() {
    run_on_worker_stack(|| {
        for wrap in ["", "coroutine.wrap"] {
            for link in LINKS {
                let link = link.replace("WRAP", wrap);
                let mut fixture = Fixture::script(&CHAIN.replace("LINK", &link));
                fixture.settings.timeout = Duration::from_secs(1);
                fixture.settings.max_memory_bytes = 1024 * 1024 * 1024;
                let result = fixture.result();
                assert!(POSSIBLE_RESULTS.iter().any(|end| result.ends_with(end)), "{link}: {result}");
            }
        }
    });
}

fn run_on_worker_stack(work: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(THREAD_STACK_BYTES).spawn(work).unwrap();
    if let Err(panic) = thread.join() {
        resume_unwind(panic);
    }
}

#[test]
fn endless_loop_names_its_line_and_makes_the_state_unusable() {
    let mut fixture = Fixture::script("function busy()\n  local i = 0\n  while true do\n    i = i + 1 end\nend");
    // Enough time to load the script on a busy machine.
    fixture.settings.timeout = Duration::from_secs(3);
    let mut engine = fixture.engine().unwrap();
    let busy = engine.lua.globals().get("busy").unwrap();
    assert!(!engine.is_spent);
    let error = engine.call(Some(ScriptEvent::AfterStored), &busy, ()).unwrap_err();
    assert_eq!(error.kind, CallErrorKind::Timeout);
    let (file, line) = error.location.unwrap();
    assert!(file.ends_with("/rules.lua") && (3..=4).contains(&line), "{file}:{line}");
    assert!(engine.is_spent);
}

#[test]
fn other_threads_can_read_the_location() {
    let table = [
        ("function inbucket.before.mail_from_accepted() end", 2..=2, "the definition, because no line was recorded"),
        (
            "function inbucket.before.mail_from_accepted()\n  local i = 0\n  while i < 1e4 do\n    i = i + 1 end\nend",
            4..=5,
            "the last recorded line",
        ),
    ];
    for (script, lines, reason) in table {
        let fixture = Fixture::script(&format!("\n{script}"));
        let mut engine = fixture.engine().unwrap();
        let location = engine.location();
        engine.before_mail_from(&envelope()).unwrap();
        let found = thread::spawn(move || location.best_known(ScriptEvent::MailFrom)).join().unwrap();
        let (file, line) = found.unwrap();
        assert!(file.ends_with("/rules.lua") && lines.contains(&line), "{reason}: {file}:{line}");
    }
    let engine = Fixture::script("").engine().unwrap();
    assert_eq!(engine.location().best_known(ScriptEvent::MailFrom), None);
}

/// Scripts that fill the memory with small or large allocations, and attempts to bypass the limit.
const GREEDY_SCRIPTS: &[&str] = &[
    "local t = {} while true do t[#t + 1] = {} end",
    "local s = 'x' while true do s = s .. s end",
    "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end",
    "local t = {} while true do pcall(function() while true do t[#t + 1] = {} end end) end",
    "local t = {} while true do xpcall(function() while true do t[#t + 1] = {} end end, function() end) end",
    "local t = {} while true do coroutine.resume(coroutine.create(function() while true do t[#t + 1] = {} end end)) end",
    "collectgarbage('stop') local t = {} while true do t[#t + 1] = {} end",
    "local s = ('x'):rep(1e9)",
    "pcall(string.rep, 'x', 1e9) result = 'went on'",
    "xpcall(function() return ('x'):rep(1e9) end, function() return 1 end) result = 'went on'",
    "coroutine.resume(coroutine.create(function() return ('x'):rep(1e9) end)) result = 'went on'",
    "while true do pcall(string.rep, 'x', 1e9) end",
    "local from = smtp_session.new().from pcall(string.rep, 'x', 1e9) result = 'went on'",
    "local t = {} for i = 1, 100 do t[i] = ('x'):rep(1e6) .. i end",
    "local t = {} for i = 1, 1e9 do t[i] = coroutine.create(print) end",
    "local t = {} while true do t[#t + 1] = loadstring('return function() return ' .. #t .. ' end') end",
];

#[test]
fn memory_limit_is_enforced() {
    for script in GREEDY_SCRIPTS {
        let result = Fixture::script(script).result();
        assert!(result.ends_with("needs more than 16384 KiB of memory"), "{script}: {result}");
    }
}

#[test]
fn caught_memory_error_ends_the_call() {
    let fixture = Fixture::script("function f()\n  pcall(string.rep, 'x', 1e9)\n  return 1\nend");
    let mut engine = fixture.engine().unwrap();
    let f = engine.lua.globals().get("f").unwrap();
    let error = engine.call(None, &f, ()).unwrap_err();
    assert_eq!(error.kind, CallErrorKind::Memory);
    assert_eq!(error.location.unwrap().1, 2);
    assert!(engine.is_spent);
}

#[test]
fn raising_the_memory_error_text_is_harmless() {
    let table = [
        "pcall(error, 'not enough memory')",
        "pcall(assert, false, 'not enough memory')",
        "xpcall(function() error('boom') end, function() return 'not enough memory' end)",
    ];
    for script in table {
        let fixture = Fixture::script(&format!("local ok, why = {script} result = why"));
        assert_eq!(fixture.result(), "not enough memory.", "{script}");
    }
}

#[test]
fn garbage_does_not_count() {
    let script = "local s for i = 1, 3000 do s = ('x'):rep(100000) .. i end collectgarbage('stop') \
                  for i = 1, 300000 do local t = {{}, {}} end result = #s";
    assert_eq!(Fixture::script(script).result(), "100004");
}

#[test]
fn garbage_of_calls_is_collected_in_time() {
    let fixture = Fixture::script("function f() for i = 1, 10 do local from = smtp_session.new().from end end");
    let mut engine = fixture.engine().unwrap();
    let f = engine.lua.globals().get("f").unwrap();
    for _ in 0..2000 {
        engine.call(Some(ScriptEvent::AfterStored), &f, ()).unwrap();
        let used = engine.lua.used_memory();
        assert!(used < fixture.settings.max_memory_bytes / 4, "{used}");
    }
}

#[test]
fn endless_recursion_is_an_ordinary_error() {
    let fixture =
        Fixture::script("local function f() return 1 + f() end\nresult = select(2, pcall(f)) local g = f\ng()");
    let error = fixture.result();
    assert!(error.starts_with("rules.lua:1: stack overflow"), "{error}");
}
