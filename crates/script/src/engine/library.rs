//! The standard library for scripts: the libraries of Lua, changed by `prelude.lua`, and the harmless part of `debug`.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use mlua::{Error, Function, Lua, LuaString, MultiValue, StdLib, Table, Value};

use super::execute::execute;
use super::raised;
use super::sources::Sources;
use crate::call_error::PRELUDE_NAME;
use crate::limits::Limiter;
use crate::modules;
use crate::services::{Level, Services};

/// Returns the libraries to open. Without `jit` the compiler stays off: compiled loops would not run hooks.
pub(super) fn standard_libraries() -> StdLib {
    StdLib::TABLE | StdLib::IO | StdLib::OS | StdLib::STRING | StdLib::BIT | StdLib::MATH | StdLib::PACKAGE
}

/// The maximum length of a printed text.
const MAX_PRINT_BYTES: usize = 8192;

/// Changes the library. Returns the globals that all functions loaded from now on see.
pub(super) fn install(
    lua: &Lua,
    limiter: &Limiter,
    sources: &Arc<Sources>,
    services: &Services,
    sandbox: bool,
) -> mlua::Result<Globals> {
    let globals = lua.globals();
    let debug = debug_table(lua)?;
    let package: Table = globals.get("package")?;
    package.get::<Table>("loaded")?.set("debug", &debug)?;
    remove_relative_paths(lua, &package)?;
    globals.set("debug", debug)?;

    let call_globals = lua.create_table()?;
    let host = lua.create_table()?;
    host.set("call_globals", &call_globals)?;
    host.set("sandbox", sandbox)?;
    host.set("raised", raised::install(lua)?)?;
    let limiter = limiter.clone();
    host.set("convert_caught", lua.create_function(move |lua, caught: Value| limiter.convert_caught(lua, caught))?)?;
    if sources.trusted_files_only {
        let sources = Arc::clone(sources);
        host.set("trusted_text", lua.create_function(move |lua, path: LuaString| trusted_text(lua, &sources, &path))?)?;
    }
    let sources = Arc::clone(sources);
    host.set("module_text", lua.create_function(move |lua, name: LuaString| module_text(lua, &sources, &name))?)?;
    let log = Arc::clone(&services.log);
    let write = move |_: &Lua, text: LuaString| {
        log.write(Level::Info, &modules::text_prefix(&text, MAX_PRINT_BYTES), &[]);
        Ok(())
    };
    host.set("write", lua.create_function(write)?)?;
    let commands = Arc::clone(&services.commands);
    let execute = move |lua: &Lua, command: Option<LuaString>| execute(lua, &commands, command.as_ref());
    host.set("execute", lua.create_function(execute)?)?;

    lua.load(include_str!("prelude.lua")).set_name(format!("={PRELUDE_NAME}")).call::<()>(host)?;
    lua.set_globals(call_globals.clone())?;
    Ok(Globals { call_globals, script_globals: globals })
}

/// Protects the string metatable, which the script may change only while it is loaded. `getmetatable` returns a
/// read-only copy from now on.
pub(super) fn seal_string_metatable(lua: &Lua) -> mlua::Result<()> {
    let Some(metatable) = lua.type_metatable::<LuaString>() else { return Ok(()) };
    let visible = lua.create_table()?;
    visible.raw_set("__index", metatable.raw_get::<Value>("__index")?)?;
    let reject = |_: &Lua, _: MultiValue| -> mlua::Result<()> {
        Err(Error::runtime("the string metatable is sealed once the script is loaded"))
    };
    let protection = lua.create_table()?;
    protection.raw_set("__index", visible)?;
    protection.raw_set("__newindex", lua.create_function(reject)?)?;
    protection.raw_set("__metatable", false)?;
    let copy = lua.create_table()?;
    copy.set_metatable(Some(protection))?;
    metatable.raw_set("__metatable", copy)
}

/// Returns the text of a required file and its name, or nil and a line for the list of searched locations.
fn module_text(lua: &Lua, sources: &Sources, name: &LuaString) -> mlua::Result<(Option<LuaString>, String)> {
    let name = name.to_string_lossy();
    let source = sources.required(&name).map_err(|error| Error::runtime(format!("module '{name}': {error}")))?;
    match source {
        Some(source) => Ok((Some(lua.create_string(&source.text)?), source.name.clone())),
        None => Ok((None, format!("\n\tno file '{name}' beside the script"))),
    }
}

/// Returns the text of a file of `package.path`, if no other user can have written it.
fn trusted_text(lua: &Lua, sources: &Sources, path: &LuaString) -> mlua::Result<LuaString> {
    let path = path.to_string_lossy();
    let text = sources.read_other(Path::new(&path)).map_err(|error| Error::runtime(format!("{path}: {error}")))?;
    lua.create_string(text)
}

/// Removes what is relative to the working directory from the paths on which `require` searches: other users may be
/// able to write this directory.
fn remove_relative_paths(lua: &Lua, package: &Table) -> mlua::Result<()> {
    for name in ["path", "cpath"] {
        let paths: LuaString = package.get(name)?;
        let bytes = paths.as_bytes();
        let is_absolute = |path: &&[u8]| Path::new(&*String::from_utf8_lossy(path)).is_absolute();
        let absolute: Vec<&[u8]> = bytes.split(|byte| *byte == b';').filter(is_absolute).collect();
        package.set(name, lua.create_string(absolute.join(&b';'))?)?;
    }
    Ok(())
}

fn debug_table(lua: &Lua) -> mlua::Result<Table> {
    let debug = lua.create_table()?;
    debug.set("traceback", lua.create_function(traceback)?)?;
    debug.set("getinfo", lua.create_function(getinfo)?)?;
    Ok(debug)
}

/// Implements `debug.traceback([thread,] [message [, level]])`. There is no traceback of other threads.
fn traceback(lua: &Lua, mut arguments: MultiValue) -> mlua::Result<Value> {
    let is_thread = matches!(arguments.front(), Some(Value::Thread(_)));
    if is_thread {
        arguments.pop_front();
    }
    let message = arguments.pop_front().unwrap_or(Value::Nil);
    let text = match &message {
        Value::Nil => None,
        _ => match lua.coerce_string(message.clone())? {
            Some(text) => Some(text.to_string_lossy()),
            None => return Ok(message),
        },
    };
    if is_thread {
        return Ok(message);
    }
    let level = match arguments.pop_front() {
        Some(level) => lua.coerce_integer(level)?.and_then(|level| usize::try_from(level).ok()).unwrap_or(1),
        None => 1,
    };
    lua.traceback(text.as_deref(), level).map(Value::String)
}

/// Implements `debug.getinfo(level or function)`: where the function was defined, and the current line.
fn getinfo(lua: &Lua, target: Value) -> mlua::Result<Option<Table>> {
    if let Value::Function(function) = target {
        return function_info(lua, &function).map(Some);
    }
    let Some(level) = lua.coerce_integer(target)?.and_then(|level| usize::try_from(level).ok()) else {
        return Err(Error::runtime("bad argument #1 to 'getinfo' (function or level expected)"));
    };
    let frame = lua.inspect_stack(level, |frame| {
        let source = frame.source();
        let name = frame.names().name.map(Cow::into_owned);
        let to_owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        (
            to_owned(source.source),
            to_owned(source.short_src),
            source.what,
            source.line_defined,
            frame.current_line(),
            name,
        )
    });
    let Some((source, short_src, what, line_defined, line, name)) = frame else {
        return Ok(None);
    };
    let table = lua.create_table()?;
    table.set("source", source)?;
    table.set("short_src", short_src)?;
    table.set("what", what)?;
    table.set("linedefined", line_number(line_defined))?;
    table.set("currentline", line_number(line))?;
    table.set("name", name)?;
    Ok(Some(table))
}

fn function_info(lua: &Lua, function: &Function) -> mlua::Result<Table> {
    let info = function.info();
    let table = lua.create_table()?;
    table.set("source", info.source)?;
    table.set("short_src", info.short_src)?;
    table.set("what", info.what)?;
    table.set("linedefined", line_number(info.line_defined))?;
    table.set("currentline", -1)?;
    table.set("func", function)?;
    Ok(table)
}

/// Returns the line, or -1 if there is none, as Lua does.
fn line_number(line: Option<usize>) -> i64 {
    line.and_then(|line| i64::try_from(line).ok()).unwrap_or(-1)
}

/// The two tables that make up `_G`. Globals that a script defines while it is loaded persist. Globals that a call
/// assigns are cleared after the call, so that calls cannot see each other's.
pub(super) struct Globals {
    /// Receives all assignments and is empty between calls. Scripts see this table as `_G`.
    pub(super) call_globals: Table,
    /// The fallback for reads: the library and the globals of the script.
    pub(super) script_globals: Table,
}

impl Globals {
    /// Makes the current assignments persistent. Returns the names of the functions among them.
    pub(super) fn persist(&self) -> mlua::Result<Vec<String>> {
        let mut functions = Vec::new();
        for pair in self.call_globals.pairs::<Value, Value>() {
            let (name, value) = pair?;
            if let (Value::String(name), Value::Function(_)) = (&name, &value) {
                functions.push(name.to_string_lossy());
            }
            self.script_globals.raw_set(name, value)?;
        }
        self.call_globals.clear()?;
        functions.sort();
        Ok(functions)
    }

    /// Discards the current assignments.
    pub(super) fn clear(&self) -> mlua::Result<()> {
        if self.call_globals.is_empty() {
            return Ok(());
        }
        self.call_globals.clear()
    }
}
