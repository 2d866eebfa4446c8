//! Tests of globals: which persist and which are cleared.

use mlua::Function;

use super::{Fixture, check_results, global_text};
use crate::event::ScriptEvent;

#[test]
fn globals_of_a_call_are_cleared() {
    let fixture = Fixture::new(&[
        (
            "rules.lua",
            "count, kept = 10, 0
             function step()
               count = count + 1
               _G.fresh = (fresh or 0) + 1
               rawset(_G, 'raw', (rawget(_G, 'raw') or 0) + 1)
               loadstring('loaded = (loaded or 0) + 1')()
               coroutine.wrap(function() inner = (inner or 0) + 1 end)()
               bump()
               kept = kept
               return table.concat({count, fresh, raw, loaded, inner, bumped, late()}, ' ')
             end
             require('helper')",
        ),
        (
            "helper.lua",
            "function bump() bumped = (bumped or 0) + 1 end function late() return require('later') and later_on() end",
        ),
        ("later.lua", "function later_on() return 'later' end return true"),
    ]);
    let mut engine = fixture.engine().unwrap();
    let step: Function = engine.lua.globals().get("step").unwrap();
    for _ in 0..3 {
        let value = engine.call(Some(ScriptEvent::MailFrom), &step, ()).unwrap();
        assert_eq!(value.to_string().unwrap(), "11 1 1 1 1 1 later");
        assert_eq!((global_text(&engine, "count"), global_text(&engine, "fresh")), ("10".to_owned(), "nil".to_owned()));
    }
}

#[test]
fn globals_of_a_failed_call_are_cleared() {
    let fixture = Fixture::script("function f() if x then return 'seen' end x = 1 error('no') end");
    let mut engine = fixture.engine().unwrap();
    let f: Function = engine.lua.globals().get("f").unwrap();
    for _ in 0..2 {
        assert!(engine.call(Some(ScriptEvent::MailFrom), &f, ()).is_err());
    }
}

#[test]
fn locals_of_the_script_persist() {
    let fixture = Fixture::script("local n = 0 function f() n = n + 1 return n end");
    let mut engine = fixture.engine().unwrap();
    let f: Function = engine.lua.globals().get("f").unwrap();
    let values: Vec<_> =
        (0..3).map(|_| engine.call(Some(ScriptEvent::MailFrom), &f, ()).unwrap().to_string().unwrap()).collect();
    assert_eq!(values, ["1", "2", "3"]);
}

#[test]
fn finds_functions_by_name() {
    let fixture =
        Fixture::script("function test_b() end local function hidden() end test_a = function() end other = 1");
    let engine = fixture.engine().unwrap();
    assert_eq!(engine.functions, ["test_a", "test_b"]);
    assert!(engine.global("test_a").is_some_and(|value| value.is_function()));
    assert!(engine.global("hidden").is_none());
}

#[test]
fn globals_look_like_one_table() {
    check_results(&[
        ("x = 1 result = _G.x + getfenv().x + getfenv(0).x", "3"),
        ("result = _G._G == _G and require('_G') == _G", "true"),
        ("print = nil result = type(print)", "function"),
        ("result = rawget(_G, 'print') == print and rawget(_G, 'nothing') == nil", "true"),
        ("x = 1 result = rawget(_G, 'x') + rawget({x = 2}, 'x')", "3"),
        ("x = 1 local n = 0 for k in pairs(_G) do if k == 'x' or k == 'print' then n = n + 1 end end result = n", "2"),
        ("print = print local n = 0 for k in pairs(_G) do if k == 'print' then n = n + 1 end end result = n", "1"),
        ("local n = 0 for k, v in next, _G do if v == inbucket then n = n + 1 end end result = n", "2"),
        ("result = next(_G) ~= nil and next({}) == nil and next({7}) == 1", "true"),
        (
            "a, b, c = 1, 2, 3 for k, v in pairs(_G) do if type(v) == 'number' then _G[k] = nil end end result = a or b or c",
            "nil",
        ),
        ("next(_G, 'no such key')", "rules.lua:1: invalid key to 'next'"),
        ("for _ in pairs(nil) do end", "rules.lua:1: bad argument #1 to 'pairs' (table expected, got nil)"),
        ("getmetatable(_G).__index = nil result = type(print)", "function"),
    ]);
}

#[test]
fn inbucket_cannot_be_replaced() {
    let table = [
        (
            "inbucket = {before = {}}",
            "rules.lua: the script replaces the global inbucket by a table; set its fields instead",
        ),
        ("restante = 1", "rules.lua: the script replaces the global restante by a number; set its fields instead"),
        ("inbucket = inbucket or {} restante = inbucket result = 'well'", "well"),
    ];
    for (script, result) in table {
        assert_eq!(Fixture::script(script).result(), result, "{script}");
    }
}

#[test]
fn guards_against_misspelled_globals_work() {
    let guard = "local known = {} setmetatable(_G, {
        __newindex = function(t, k, v) if not known[k] and k ~= 'result' then error('unknown global ' .. k, 2) end rawset(t, k, v) end,
        __index = function(_, k) error('unknown global ' .. k, 2) end})\n";
    let table = [
        ("result = type(print) .. type(inbucket)", "functionuserdata"),
        ("result = prnt", "rules.lua:4: unknown global prnt"),
        ("counter = 1", "rules.lua:4: unknown global counter"),
        ("result = type(getmetatable(_G).__index)", "function"),
    ];
    for (script, result) in table {
        assert_eq!(Fixture::script(&format!("{guard}{script}")).result(), result, "{script}");
    }
}
