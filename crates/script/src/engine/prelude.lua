-- Changes to the standard library. Runs once in every state, before the script. Everything that is used later is kept
-- in locals, so that scripts cannot change it.

local host = ...
local globals, package = _G, package

-- While this file runs, its environment refers to the table of globals. Afterwards it is empty, because `getfenv`
-- returns it and scripts must not get that table.
local environment = setmetatable({}, { __index = globals, __newindex = globals })
setfenv(1, environment)

local error, next, pairs, rawequal, rawget, rawset, select, tostring, type =
  error, next, pairs, rawequal, rawget, rawset, select, tostring, type
local lua = {
  load = load, loadfile = loadfile, pcall = pcall, xpcall = xpcall, create = coroutine.create, resume = coroutine.resume,
  setmetatable = setmetatable, setfenv = setfenv,
}
local concat, searchpath, tonumber = table.concat, package.searchpath, tonumber
local call_globals, convert_caught, write, module_text, trusted_text, execute =
  host.call_globals, host.convert_caught, host.write, host.module_text, host.trusted_text, host.execute

-- Limits are checked between Lua instructions. C functions that call other functions could nest without executing any.
-- So each of them is wrapped in a Lua function, which calls it with a tail call.
local function wrapped(native)
  return function(...)
    return native(...)
  end
end

globals.tostring = wrapped(tostring)
require, module, package.seeall = wrapped(require), wrapped(module), wrapped(package.seeall)
string.format, string.gsub, table.sort, os.time =
  wrapped(string.format), wrapped(string.gsub), wrapped(table.sort), wrapped(os.time)

-- The globals of scripts: `call_globals` receives the assignments of a call and is cleared after it; all other reads fall
-- back to `globals`. A script may set a metatable, as the common guards against misspelled globals do.
local call_globals_metatable = { __index = globals, __metatable = {} }
lua.setmetatable(call_globals, call_globals_metatable)
globals._G = call_globals
package.loaded._G = call_globals

function setmetatable(subject, metatable)
  if not rawequal(subject, call_globals) or type(metatable) ~= "table" then
    return lua.setmetatable(subject, metatable)
  end
  lua.setmetatable(globals, metatable)
  call_globals_metatable.__metatable = metatable
  call_globals_metatable.__newindex = function(_, key, value)
    local rule = rawget(metatable, "__newindex")
    if rule == nil then
      rawset(call_globals, key, value)
    elseif type(rule) == "function" then
      return rule(call_globals, key, value)
    else
      rule[key] = value
    end
  end
  return call_globals
end

-- `rawget`, `next` and `pairs` treat both tables as one.
function globals.rawget(subject, key)
  local value = rawget(subject, key)
  if value == nil and rawequal(subject, call_globals) then
    return rawget(globals, key)
  end
  return value
end

local function next_global(subject, key)
  if not rawequal(subject, call_globals) then
    return next(subject, key)
  end
  local value
  -- A key that is in neither table was removed from `call_globals` during the traversal.
  if key == nil or rawget(call_globals, key) ~= nil or rawget(globals, key) == nil then
    key, value = next(call_globals, key)
    if key ~= nil then
      return key, value
    end
  end
  repeat
    key, value = next(globals, key)
  until key == nil or rawget(call_globals, key) == nil
  return key, value
end

globals.next = next_global

function globals.pairs(subject)
  if rawequal(subject, call_globals) then
    return next_global, call_globals
  end
  return pairs(subject)
end

-- The message of an out-of-memory error ends the call. If a script raises the same text itself, a full stop is added to
-- tell them apart. A raised table is remembered for the log.
local out_of_memory, raised = "not enough memory", host.raised

local function mark_own_text(reason)
  if rawequal(reason, out_of_memory) then
    return out_of_memory .. "."
  end
  return reason
end

function globals.error(reason, level)
  if type(reason) == "table" then
    raised[1] = reason
  end
  return error(mark_own_text(reason), level)
end

local assert = assert
function globals.assert(...)
  local ok, reason = ...
  if not ok and rawequal(reason, out_of_memory) then
    error(mark_own_text(reason), 0)
  end
  return assert(...)
end

-- Errors that must end the call cannot be caught: `convert_caught` raises them again. Error values of the host become
-- strings, as scripts expect.
local function convert_results(ok, ...)
  if ok then
    return ok, ...
  end
  return false, convert_caught((...))
end

function pcall(...)
  return convert_results(lua.pcall(...))
end

function xpcall(action, handler, ...)
  -- Limits are not checked while the handler runs for an exceeded limit, so it is not called then.
  return convert_results(lua.xpcall(action, function(reason) return mark_own_text(handler(convert_caught(reason))) end, ...))
end

function coroutine.resume(...)
  return convert_results(lua.resume(...))
end

local function create(body)
  -- Values that are not functions are rejected by Lua.
  return lua.create(type(body) == "function" and wrapped(body) or body)
end

coroutine.create = create

local function results_or_error(ok, ...)
  if ok then
    return ...
  end
  error((...), 0)
end

function coroutine.wrap(body)
  local thread = create(body)
  return function(...)
    return results_or_error(convert_results(lua.resume(thread, ...)))
  end
end

-- The environment of the state itself would persist across calls. Levels start at 1, as in Lua.
function setfenv(subject, environment)
  if type(subject) ~= "function" then
    local level = tonumber(subject)
    if level and not (level >= 1 and level < 1e6) then
      error("setfenv is for functions and levels from 1 on", 2)
    end
  end
  return lua.setfenv(subject, environment)
end

-- Limits are not checked in finalizers, so scripts get nothing that could have one.
newproxy = nil
if io then
  getmetatable(io.stdout).__metatable = false
end

-- Returns the whole text of a reader function, or nil and the error. The reader is not passed to Lua's `load`: an error
-- of the limits would pass through it in a way that switches the limits off.
local function read_all(reader)
  local parts = {}
  while true do
    local ok, part = convert_results(lua.pcall(reader))
    if not ok then
      return nil, part
    elseif part == nil or part == "" then
      return concat(parts)
    elseif type(part) ~= "string" then
      return nil, "reader function must return a string"
    end
    parts[#parts + 1] = part
  end
end

-- Only source text is loaded: bytecode could corrupt the process.
function load(chunk, name, _, environment)
  if type(chunk) == "function" then
    local text, reason = read_all(chunk)
    if not text then
      return nil, reason
    end
    return lua.load(text, name or "=(load)", "t", environment)
  end
  return lua.load(chunk, name, "t", environment)
end

loadstring = load

function loadfile(name, _, environment)
  return lua.loadfile(name, "t", environment)
end

function dofile(name)
  local chunk, reason = lua.loadfile(name, "t")
  if not chunk then
    error(reason, 0)
  end
  return chunk()
end

-- The globals of a required file persist, even if it is first required during a call, because it runs only once in a
-- state.
local function with_persistent_globals(chunk)
  return function(...)
    local before = {}
    for key, value in next, call_globals do
      before[key] = value
    end
    local function persist_new_globals(...)
      for key, value in next, call_globals do
        if not rawequal(before[key], value) then
          rawset(globals, key, value)
        end
      end
      return ...
    end
    return persist_new_globals(chunk(...))
  end
end

local function find_next_to_script(name)
  local text, file = module_text(name)
  if not text then
    return file
  end
  local chunk, reason = lua.load(text, "@" .. file, "t")
  if not chunk then
    error(reason, 0)
  end
  return with_persistent_globals(chunk)
end

-- Loads a file of `package.path`. If only trusted files are loaded, the host reads it, and fails for all others.
local function load_found(file)
  if trusted_text then
    return lua.load(trusted_text(file), "@" .. file, "t")
  end
  return lua.loadfile(file, "t")
end

local function find_on_package_path(name)
  local file, reason = searchpath(name, package.path)
  if not file then
    return reason
  end
  local chunk
  chunk, reason = load_found(file)
  if not chunk then
    error(reason, 0)
  end
  return with_persistent_globals(chunk)
end

local function find_preloaded(name)
  local loader = package.preload[name]
  if loader == nil then
    return "\n\tno field package.preload['" .. name .. "']"
  end
  return loader
end

package.loaders[1], package.loaders[2], package.loaders[3] = find_preloaded, find_next_to_script, find_on_package_path
package.preload["string.buffer"], package.preload["table.clear"], package.preload["table.new"] = nil, nil, nil

function print(...)
  local count, parts = select("#", ...), { ... }
  for i = 1, count do
    parts[i] = tostring(parts[i])
  end
  write(concat(parts, "\t", 1, count))
end

-- Lua 5.1 has both names.
math.mod = math.fmod

function os.exit()
  error("os.exit is not available to scripts: it would end the server", 2)
end

function os.execute(command)
  local status = execute(command)
  -- If the deadline passes before the command ends, the limit ends the call in this loop.
  while status == nil do end
  return status
end

function os.setlocale(locale)
  -- The locale belongs to the whole process, so it cannot be changed.
  if locale == nil or locale == "" or locale == "C" or locale == "POSIX" then
    return "C"
  end
  return nil
end

if host.sandbox then
  io, package.loaded.io = nil, nil
  loadfile, dofile, module = nil, nil, nil
  for _, name in next, { "execute", "exit", "getenv", "remove", "rename", "setlocale", "tmpname" } do
    os[name] = nil
  end
  package.loaders[3] = nil
  package.path, package.cpath, package.config, package.loadlib, package.searchpath, package.seeall = "", nil, nil, nil, nil, nil
end

lua.setmetatable(environment, { __metatable = false })
