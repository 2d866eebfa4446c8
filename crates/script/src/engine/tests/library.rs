//! Tests of the standard library, with and without the sandbox.

use mlua::Value;

use super::{Fixture, check_results};
use crate::services::Level;

#[test]
fn common_library_functions_work() {
    check_results(&[
        ("result = _VERSION", "Lua 5.1"),
        ("for i = 1, 3 do if i == 2 then goto done end result = i ::done:: end", "3"),
        ("result = #arg == 0", "rules.lua:1: attempt to get length of global 'arg' (a nil value)"),
        ("result = table.concat({unpack({1, 2, 3})}, ',') .. math.floor(2.5) .. ('x'):upper()", "1,2,32X"),
        (
            "result = type(os.time()) .. type(os.date()) .. type(os.getenv('PATH')) .. type(io.open)",
            "numberstringstringfunction",
        ),
        ("result = os.execute('exit 3') .. os.execute('true') .. os.execute()", "101"),
        ("local f = io.popen('echo hello') result = f:read('*l') f:close()", "hello"),
        ("local f = assert(io.tmpfile()) f:write('kept') f:seek('set') result = f:read('*a')", "kept"),
        ("local function f() return 1 end setfenv(f, {}) result = tostring(getfenv(f).print)", "nil"),
        ("local g = _G setfenv(1, {}) x = 1 g.result = g.tostring(g.x)", "nil"),
        ("local g = _G module('m', package.seeall) x = 5 g.result = type(print) .. g.package.loaded.m.x", "function5"),
        ("result = bit.band(6, 3)", "2"),
        ("result = select(2, require('json').encode({address.new('', 'a@x')}))", "cannot encode userdata to JSON"),
        ("result = math.mod(7, 4)", "3"),
        ("#!/usr/bin/lua\nresult = 1", "1"),
        ("\u{feff}result = 1", "1"),
        ("result = tostring(jit) .. tostring(package.loaded.jit) .. tostring(newproxy)", "nilnilnil"),
        ("result = tostring(pcall(require, 'ffi')) .. tostring(pcall(require, 'jit.util'))", "falsefalse"),
        ("result = tostring(pcall(require, 'string.buffer')) .. tostring(pcall(require, 'jit'))", "falsefalse"),
        (
            "result = tostring(debug.sethook) .. tostring(debug.setmetatable) .. tostring(debug.getregistry)",
            "nilnilnil",
        ),
        ("result = require('debug') == debug", "true"),
    ]);
}

#[test]
fn coroutines_yield_across_pcall_and_pass_values() {
    check_results(&[
        (
            "local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) \
             local _, c = pcall(function() return coroutine.yield(b * 2) end) error('e' .. c, 0) end) \
             local t = {} for _, x in ipairs({1, 5, 7}) do t[#t + 1] = tostring(select(2, coroutine.resume(co, x))) end \
             result = table.concat(t, ' ') .. ' ' .. coroutine.status(co)",
            "2 10 e7 dead",
        ),
        (
            "local t = {} for x in coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) do t[#t + 1] = x end result = #t",
            "3",
        ),
    ]);
}

#[test]
fn catching_errors_works_as_in_lua() {
    check_results(&[
        ("result = select('#', pcall(function() return nil, nil end))", "3"),
        ("local ok, e = pcall(error, {code = 7}) result = tostring(ok) .. e.code", "false7"),
        ("local ok, e = pcall(function() error('x') end) result = e:match('[^/]*$')", "rules.lua:1: x"),
        ("local ok, e = pcall(function() error('x', 0) end) result = e", "x"),
        ("local ok, e = pcall(error) result = tostring(ok) .. tostring(e)", "falsenil"),
        ("result = select(2, xpcall(function() error('x', 0) end, function(e) return e .. '!' end))", "x!"),
        ("result = select(2, xpcall(function(...) return select('#', ...) end, print, 1, nil, 3))", "3"),
        (
            "local ok, e = xpcall(function() error('x', 0) end, debug.traceback) result = e:match('^[^\\n]*\\nstack traceback')",
            "x\nstack traceback",
        ),
        ("pcall()", "rules.lua:1: bad argument #1 to 'pcall' (value expected)"),
        ("local ok, e = pcall(os.exit) result = type(e)", "string"),
        // Errors of the host are strings with the line, too.
        (
            "local ok, e = pcall(function()\n debug.getinfo('x') end) result = type(e) .. e:match('[^/]*$')",
            "stringrules.lua:2: bad argument #1 to 'getinfo' (function or level expected)",
        ),
    ]);
}

#[test]
fn scripts_cannot_exit_or_change_the_locale() {
    check_results(&[
        ("\nos.exit(1)", "rules.lua:2: os.exit is not available to scripts: it would end the server"),
        ("result = tostring(os.setlocale('de_DE.UTF-8')) .. os.setlocale()", "nilC"),
        ("package.loadlib('libc.so.6', '*')", "rules.lua:1: package.loadlib is disabled in safe mode"),
        ("result = tostring(getmetatable(io.stdout))", "false"),
    ]);
}

#[test]
fn calls_cannot_affect_each_other() {
    let engine = Fixture::script("function reach(f) return f() end").engine().unwrap();
    let table = [
        "getfenv(pcall).poison = true return poison",
        "getfenv(restante.sleep).poison = true return poison",
        "getfenv(smtp.defer).poison = true return poison",
        "return pcall(setfenv, 0, {}) or pcall(setfenv, 0.5, {}) or pcall(setfenv, '0', {})",
        "return pcall(function() setmetatable('', {}) end)",
        "getmetatable('').__index = nil return ('x').upper == nil",
        "return pcall(require, 'table.clear') or pcall(require, 'table.new')",
    ];
    for script in table {
        let (result, _): (Value, Value) = engine.lua.load(script).call(()).unwrap_or_default();
        assert!(matches!(result, Value::Nil | Value::Boolean(false)), "{script}: {result:?}");
    }
}

#[test]
fn changing_the_string_metatable_in_a_call_raises() {
    let script = "function see() assert(getmetatable('').__index == string) end
        function set() getmetatable('').__index = nil end
        function add() getmetatable('').__mod = string.format end";
    let mut engine = Fixture::script(script).engine().unwrap();
    for (name, line) in [("set", 2), ("add", 3)] {
        let f = engine.lua.globals().get(name).unwrap();
        let error = engine.call(None, &f, ()).unwrap_err();
        assert_eq!(error.text, "the string metatable is sealed once the script is loaded", "{name}");
        assert_eq!(error.location.unwrap().1, line, "{name}");
    }
    let read = engine.lua.globals().get("see").unwrap();
    engine.call(None, &read, ()).unwrap();
}

#[test]
fn script_can_change_the_string_metatable_while_loading() {
    let script = "getmetatable('').__mod = string.format result = ('%d of %s') % 7";
    assert!(Fixture::script(script).result().contains("bad argument"), "{script}");
    check_results(&[("getmetatable('').__unm = string.reverse result = -'abc'", "cba")]);
}

#[test]
fn coroutines_work_as_in_lua() {
    check_results(&[
        ("result = coroutine.wrap(string.upper)('x')", "X"),
        ("result = select(2, coroutine.resume(coroutine.create(math.max), 1, 3, 2))", "3"),
        ("coroutine.create(1)", "rules.lua:1: bad argument #1 to 'create' (function expected, got number)"),
        ("local f = coroutine.wrap(function() error({code = 7}) end) result = select(2, pcall(f)).code", "7"),
        ("\nlocal f = coroutine.wrap(function()\n error('inside') end) f()", "rules.lua:3: inside"),
        ("local f = coroutine.wrap(function() end) f() f()", "rules.lua:1: cannot resume dead coroutine"),
        (
            "local co co = coroutine.create(function() return coroutine.running() == co end) \
          result = select(2, coroutine.resume(co))",
            "true",
        ),
    ]);
}

#[test]
fn log_lines_of_a_call_are_limited() {
    let fixture = Fixture::script("local log = require('logger') for i = 1, 3000 do print(i) log.info(i) end");
    fixture.engine().unwrap();
    let log = fixture.log.0.lock().unwrap();
    assert_eq!(log.len(), 1001);
    assert_eq!(log[999], (Level::Info, "500".to_owned()));
    assert_eq!(log[1000], (Level::Warn, "further debug and info lines of this call are left out".to_owned()));
}

#[test]
fn warnings_have_their_own_quota() {
    let fixture = Fixture::script(
        "local log = require('logger')
         for i = 1, 3000 do log.debug(i) end print('logged')
         for i = 1, 3000 do print(i) end
         for i = 1, 3000 do log.warn(i) log.error(i) end",
    );
    fixture.engine().unwrap();
    let log = fixture.log.0.lock().unwrap();
    assert_eq!(log.len(), 2002);
    assert_eq!(log[0], (Level::Info, "logged".to_owned()));
    assert_eq!(log[1001], (Level::Warn, "1".to_owned()));
    assert_eq!(log[2000], (Level::Error, "500".to_owned()));
    assert_eq!(log[2001], (Level::Warn, "further warn and error lines of this call are left out".to_owned()));
}

#[test]
fn rejects_bytecode() {
    let prefix = "local code = string.dump(function() return 1 end) ";
    let file = "local name = os.tmpname() local f = io.open(name, 'wb') f:write(code) f:close() ";
    let table = [
        "result = select(2, loadstring(code))",
        "result = select(2, load(code, 'x', 'b'))",
        "local sent result = select(2, load(function() if not sent then sent = true return code end end))",
        "FILE result = select(2, loadfile(name, 'b')) os.remove(name)",
        "FILE result = select(2, pcall(dofile, name)) os.remove(name)",
        "FILE package.path = name result = select(2, pcall(require, 'x')) os.remove(name)",
    ];
    for script in table {
        let result = Fixture::script(&format!("{prefix}{}", script.replace("FILE", file))).result();
        assert!(result.ends_with("attempt to load chunk with wrong mode"), "{script}: {result}");
    }
    let fixture = Fixture::new(&[("rules.lua", "require('code')"), ("code.lua", "\u{1b}LJ\u{2}")]);
    assert!(fixture.result().ends_with("attempt to load chunk with wrong mode"), "{}", fixture.result());
    assert_eq!(Fixture::script("\u{1b}LJ\u{2}").result(), "rules.lua: attempt to load a binary chunk (mode is 't')");
}

#[test]
fn loads_source_text() {
    check_results(&[
        ("result = loadstring('return 1 + 1')()", "2"),
        ("result = load('return x', 'name', nil, {x = 5})()", "5"),
        ("local parts = {'return ', '7'} result = load(function() return table.remove(parts, 1) end)()", "7"),
        (
            "result = select(2, load(function() error('no', 0) end)) .. select(2, load(function() return {} end))",
            "noreader function must return a string",
        ),
        ("result = select(2, loadstring('return return', '=name'))", "name:1: unexpected symbol near 'return'"),
        (
            "local n = os.tmpname() local f = io.open(n, 'w') f:write('return 9') f:close() result = dofile(n) + loadfile(n)() os.remove(n)",
            "18",
        ),
    ]);
}

#[test]
fn print_writes_to_the_log() {
    let fixture = Fixture::script(
        "print('a', 1, nil, true, setmetatable({}, {__tostring = function() return 'T' end})) print() print(('ä'):rep(9000))",
    );
    fixture.engine().unwrap();
    let log = fixture.log.0.lock().unwrap();
    assert_eq!(log[0], (Level::Info, "a\t1\tnil\ttrue\tT".to_owned()));
    assert_eq!(log[1], (Level::Info, String::new()));
    assert_eq!(log[2].1.len(), 8192);
}

#[test]
fn debug_functions_return_locations() {
    check_results(&[
        (
            "\nlocal i = debug.getinfo(1, 'Sl') result = i.currentline .. i.short_src:match('[^/]*$') .. i.what",
            "2rules.luamain",
        ),
        ("result = debug.getinfo(1).source:sub(1, 1)", "@"),
        ("\nlocal function f() end result = debug.getinfo(f).linedefined", "2"),
        ("result = debug.getinfo(50)", "nil"),
        (
            "result = debug.traceback('m', 1):match('m\\nstack traceback:\\n.*rules.lua:1: in main chunk') ~= nil",
            "true",
        ),
        ("local t = {} result = debug.traceback(t) == t", "true"),
    ]);
}

#[test]
fn sandbox_removes_files_and_programs() {
    let removed = [
        "io",
        "os.execute",
        "os.remove",
        "os.rename",
        "os.tmpname",
        "os.getenv",
        "os.setlocale",
        "os.exit",
        "loadfile",
        "dofile",
        "newproxy",
        "package.loadlib",
        "package.cpath",
        "package.searchpath",
        "module",
        "package.loaded.io",
        "jit",
        "package.loaders[3]",
        "debug.sethook",
        "debug.getregistry",
    ];
    for name in removed {
        let fixture = Fixture::script(&format!("result = tostring({name})"));
        assert_eq!(fixture.sandboxed().result(), "nil", "{name}");
    }
    let kept = [
        "os.time",
        "os.date",
        "os.clock",
        "os.difftime",
        "load",
        "loadstring",
        "require",
        "pcall",
        "string.format",
        "('x').upper",
        "coroutine.wrap",
        "setfenv",
        "print",
        "debug.traceback",
    ];
    for name in kept {
        let fixture = Fixture::script(&format!("result = type({name})"));
        assert_eq!(fixture.sandboxed().result(), "function", "{name}");
    }
    let fixture = Fixture::script("result = tostring(pcall(require, 'io'))").sandboxed();
    assert_eq!(fixture.result(), "false");
}
