//! Time and memory: nothing that a script does keeps a call going.

use std::panic::resume_unwind;
use std::thread;
use std::time::{Duration, Instant};

use super::Stage;
use super::calls::envelope;
use crate::engine::{Kind, STACK};
use crate::event::Event;

/// Ways to go on for ever; the first line is the one that is named.
const ENDLESS: &[&str] = &[
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
    "restante.sleep(3600)",
    "while true do pcall(restante.sleep, 1 / 0) end",
];

#[test]
fn nothing_goes_on_after_the_deadline() {
    on_the_stack_of_a_worker(|| {
        for script in ENDLESS {
            let mut stage = Stage::script(script);
            stage.settings.timeout = Duration::from_millis(30);
            let started = Instant::now();
            assert_eq!(stage.result(), "rules.lua:1: took longer than 30ms", "{script}");
            assert!(started.elapsed() < Duration::from_secs(10), "{script}");
        }
    });
}

/// Ways to nest calls on the stack of the thread, alone and together.
const NESTED: &[&str] = &[
    "local f f = function() coroutine.wrap(f)() end f()",
    "local f f = function() coroutine.wrap(f)() end while true do pcall(f) end",
    "local f f = function() coroutine.resume(coroutine.create(f)) end f()",
    "local f f = function() string.gsub('a', 'a', f) end f()",
    "local f f = function() string.gsub('a', 'a', coroutine.wrap(f)) end f()",
    "local f f = function() pcall(string.gsub, 'a', 'a', function() pcall(coroutine.wrap(f)) end) end while true do f() end",
    "local t t = setmetatable({}, {__tostring = function() require('logger').info(t) return '' end}) print(t)",
];

#[test]
fn calls_that_nest_without_end_do_not_end_the_process() {
    on_the_stack_of_a_worker(|| {
        for script in NESTED {
            let mut stage = Stage::script(script);
            stage.settings.timeout = Duration::from_mins(1);
            stage.settings.memory = 256 * 1024 * 1024;
            assert_eq!(stage.result(), "rules.lua:1: nests its calls too deeply", "{script}");
        }
    });
}

fn on_the_stack_of_a_worker(work: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(STACK).spawn(work).unwrap();
    if let Err(panic) = thread.join() {
        resume_unwind(panic);
    }
}

#[test]
fn the_line_of_an_endless_loop_is_named_and_the_state_is_spent() {
    let mut stage = Stage::script("function busy()\n  local i = 0\n  while true do\n    i = i + 1 end\nend");
    stage.settings.timeout = Duration::from_millis(30);
    let mut engine = stage.engine().unwrap();
    let busy = engine.lua().globals().get("busy").unwrap();
    assert!(!engine.is_spent());
    let error = engine.call(Some(Event::AfterStored), &busy, ()).unwrap_err();
    assert_eq!(error.kind, Kind::Time);
    let (file, line) = error.place.unwrap();
    assert!(file.ends_with("/rules.lua") && (3..=4).contains(&line), "{file}:{line}");
    assert!(engine.is_spent());
}

#[test]
fn other_threads_can_know_where_a_call_is() {
    let table = [
        ("function inbucket.before.mail_from_accepted() end", 2..=2, "it was over too soon to be seen"),
        (
            "function inbucket.before.mail_from_accepted()\n  local i = 0\n  while i < 1e4 do\n    i = i + 1 end\nend",
            4..=5,
            "where it was seen last",
        ),
    ];
    for (script, lines, why) in table {
        let stage = Stage::script(&format!("\n{script}"));
        let mut engine = stage.engine().unwrap();
        let whereabouts = engine.whereabouts();
        engine.mail_from(&envelope()).unwrap();
        let place = thread::spawn(move || whereabouts.place(Event::MailFrom)).join().unwrap();
        let (file, line) = place.unwrap();
        assert!(file.ends_with("/rules.lua") && lines.contains(&line), "{why}: {file}:{line}");
    }
    let engine = Stage::script("").engine().unwrap();
    assert_eq!(engine.whereabouts().place(Event::MailFrom), None);
}

/// Ways to fill the memory, in small pieces and in large ones, and what does not help against the limit.
const GREEDY: &[&str] = &[
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
fn no_state_holds_more_than_it_may() {
    for script in GREEDY {
        let result = Stage::script(script).result();
        assert!(result.ends_with("needs more than 16384 KiB of memory"), "{script}: {result}");
    }
}

#[test]
fn a_memory_error_that_was_caught_ends_the_call_with_the_line() {
    let stage = Stage::script("function f()\n  pcall(string.rep, 'x', 1e9)\n  return 1\nend");
    let mut engine = stage.engine().unwrap();
    let f = engine.lua().globals().get("f").unwrap();
    let error = engine.call(None, &f, ()).unwrap_err();
    assert_eq!(error.kind, Kind::Memory);
    assert_eq!(error.place.unwrap().1, 2);
    assert!(engine.is_spent());
}

#[test]
fn garbage_does_not_count() {
    let script = "local s for i = 1, 3000 do s = ('x'):rep(100000) .. i end collectgarbage('stop') \
                  for i = 1, 300000 do local t = {{}, {}} end result = #s";
    assert_eq!(Stage::script(script).result(), "100004");
}

#[test]
fn what_calls_leave_behind_is_collected_in_time() {
    let stage = Stage::script("function f() for i = 1, 10 do local from = smtp_session.new().from end end");
    let mut engine = stage.engine().unwrap();
    let f = engine.lua().globals().get("f").unwrap();
    for _ in 0..2000 {
        engine.call(Some(Event::AfterStored), &f, ()).unwrap();
        let used = engine.lua().used_memory();
        assert!(used < stage.settings.memory / 4, "{used}");
    }
}

#[test]
fn recursion_without_end_is_an_ordinary_error() {
    let stage = Stage::script("local function f() return 1 + f() end\nresult = select(2, pcall(f)) local g = f\ng()");
    let error = stage.result();
    assert!(error.starts_with("rules.lua:1: stack overflow"), "{error}");
}
