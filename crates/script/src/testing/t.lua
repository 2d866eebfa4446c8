-- The object `t` for tests of scripts: creates sessions and messages, calls the script's functions as the server does,
-- checks results, and controls the test environment. It is called with `native`, the part written in Rust (library.rs),
-- whose functions return nil and a sentence if they fail.
--
-- Errors are raised with the level of the caller, so that they name a line of the test.

local native = ...
local error, getmetatable, next, pairs, pcall, rawget, setmetatable, tostring, type =
  error, getmetatable, next, pairs, pcall, rawget, setmetatable, tostring, type
local concat, find, format, min, sort = table.concat, string.find, string.format, math.min, table.sort
local defer = smtp.defer

local t = {}

-- Checks -------------------------------------------------------------------------------------------------------------

local max_depth, max_items, max_text = 3, 10, 200

local escapes = { ["\r"] = "\\r", ["\n"] = "\\n", ["\t"] = "\\t", ['"'] = '\\"', ["\\"] = "\\\\" }

local function quote(text)
  local prefix = #text > max_text and text:sub(1, max_text) .. "..." or text
  return '"' .. prefix:gsub('[%c"\\]', function(char)
    return escapes[char] or format("\\%d", char:byte())
  end) .. '"'
end

local format_value

local function format_key(key)
  if type(key) == "string" and find(key, "^[%a_][%w_]*$") then
    return key
  end
  return "[" .. format_value(key, max_depth) .. "]"
end

local function format_table(value, depth)
  if next(value) == nil then
    return "{}"
  elseif depth >= max_depth then
    return "{...}"
  end
  local parts, keys = {}, {}
  for index = 1, #value do
    parts[index] = index <= max_items and format_value(value[index], depth + 1) or nil
  end
  for key in pairs(value) do
    if not (type(key) == "number" and key >= 1 and key <= #value and key % 1 == 0) then
      keys[#keys + 1] = key
    end
  end
  sort(keys, function(a, b)
    return tostring(a) < tostring(b)
  end)
  for index = 1, min(#keys, max_items) do
    parts[#parts + 1] = format_key(keys[index]) .. " = " .. format_value(value[keys[index]], depth + 1)
  end
  if #value > max_items or #keys > max_items then
    parts[#parts + 1] = "..."
  end
  return "{ " .. concat(parts, ", ") .. " }"
end

-- Formats a value, in Lua syntax if possible.
function format_value(value, depth)
  if type(value) == "string" then
    return quote(value)
  elseif type(value) == "table" and getmetatable(value) == nil then
    return format_table(value, depth or 0)
  end
  return tostring(value)
end

-- Returns whether two values are equal. Tables are equal if their contents are. `seen` contains the pairs that are
-- being compared, because a table may contain itself.
local function is_equal(a, b, seen)
  if a == b then
    return true
  elseif type(a) ~= "table" or type(b) ~= "table" then
    return false
  end
  seen = seen or {}
  seen[a] = seen[a] or {}
  if seen[a][b] then
    return true
  end
  seen[a][b] = true
  for key, value in pairs(a) do
    if not is_equal(value, rawget(b, key), seen) then
      return false
    end
  end
  for key in pairs(b) do
    if rawget(a, key) == nil then
      return false
    end
  end
  return true
end

-- Called by checks only: level 3 is the line of the test.
local function fail(text, note)
  error(note == nil and text or tostring(note) .. ": " .. text, 3)
end

function t.equal(actual, expected, note)
  if not is_equal(actual, expected) then
    fail("expected " .. format_value(expected) .. ", got " .. format_value(actual), note)
  end
end

function t.differs(actual, unexpected, note)
  if is_equal(actual, unexpected) then
    fail("expected anything but " .. format_value(unexpected), note)
  end
end

function t.yes(value, note)
  if not value then
    fail("expected something true, got " .. format_value(value), note)
  end
end

function t.no(value, note)
  if value then
    fail("expected nil or false, got " .. format_value(value), note)
  end
end

function t.matches(text, pattern, note)
  if type(text) ~= "string" then
    fail("expected a text, got " .. format_value(text), note)
  elseif not find(text, pattern) then
    fail("expected a match of " .. format_value(pattern) .. ", got " .. format_value(text), note)
  end
end

function t.fails(func, pattern, note)
  local ok, problem = pcall(func)
  if ok then
    fail("expected an error", note)
  end
  problem = tostring(problem)
  if pattern and not find(problem, pattern) then
    fail("expected an error that matches " .. format_value(pattern) .. ", got " .. format_value(problem), note)
  end
  return problem
end

function t.fail(note)
  error(note == nil and "failed" or tostring(note), 2)
end

-- Returns the action of a verdict, or nil if the value is not a verdict.
local function action_of(verdict)
  return type(verdict) == "userdata" and verdict.action or nil
end

function t.allows(verdict, note)
  if action_of(verdict) ~= "allow" then
    fail("expected smtp.allow, got " .. format_value(verdict), note)
  end
end

function t.defers(verdict, note)
  if action_of(verdict) ~= "defer" then
    fail("expected smtp.defer, got " .. format_value(verdict), note)
  end
end

function t.denies(verdict, code, text)
  local denied = action_of(verdict) == "deny"
  if not denied or (code and verdict.code ~= code) or (text and verdict.text ~= text) then
    local wanted = code and text and code .. ", " .. text or code
    fail("expected smtp.deny" .. (wanted and "(" .. wanted .. ")" or "") .. ", got " .. format_value(verdict))
  end
end

-- Constructors -------------------------------------------------------------------------------------------------------

-- Wraps a native function for tests: its error becomes an error of the test.
local function for_tests(make)
  return function(fields)
    local value, problem = make(fields)
    if problem then
      error(problem, 2)
    end
    return value
  end
end

t.session = for_tests(native.session)
t.message = for_tests(native.message)
t.metadata = for_tests(native.metadata)
t.put = for_tests(native.store)
t.mails = for_tests(native.messages)
t.advance = for_tests(native.advance)

-- Runners ------------------------------------------------------------------------------------------------------------

-- Calls a native function for a runner; level 3 is the line of the test.
local function construct(make, fields)
  local value, problem = make(fields)
  if problem then
    error(problem, 3)
  end
  return value
end

-- Calls the script's function for an event, if there is one. Errors keep their location.
local function call(event, argument)
  local context = native.enter_event(event)
  local ok, result = true, nil
  if context.handler then
    ok, result = pcall(context.handler, argument)
  end
  native.leave_event(context)
  if not ok then
    error(result, 0)
  end
  return result
end

local function verdict_of(event, session)
  local result = call(event, session)
  local problem = native.check_verdict(event, result)
  if problem then
    error(problem, 3)
  end
  return result == nil and defer() or result
end

function t.mail_from(session)
  local verdict = verdict_of("before.mail_from_accepted", construct(native.sender, session))
  return verdict
end

function t.rcpt_to(session)
  local verdict = verdict_of("before.rcpt_to_accepted", construct(native.candidate, session))
  return verdict
end

function t.deliver(fields)
  local message = construct(native.message, fields)
  -- The function gets a copy: changes that it does not return have no effect.
  local result = call("before.message_stored", construct(native.inbound, message))
  local stored, problem = native.outcome(message, result)
  if problem then
    error(problem, 2)
  end
  return stored
end

function t.stored(fields)
  call("after.message_stored", construct(native.stored, fields))
end

function t.deleted(fields)
  call("after.message_deleted", construct(native.deleted, fields))
end

-- Test environment ---------------------------------------------------------------------------------------------------

local responder, release_error
local requests, logs, releases = {}, {}, {}

local response_fields = { status_code = true, headers = true, cookies = true, body = true, url = true }

local function unknown_field(response)
  for key in pairs(response) do
    if not response_fields[key] then
      return "a response of t.http has no field '" .. tostring(key) .. "'; its fields are status_code, headers, cookies, body, url"
    end
  end
end

-- Responds to a request instead of the network: a table, or nil and a sentence. The script would take an error of the
-- test's function for a network error, so it is reported at the end of the test.
native.set_responder(function(method, url, headers, body)
  local request = { method = method, url = url, headers = headers, body = body }
  requests[#requests + 1] = request
  if not responder then
    return nil, "there is no network in tests: set t.http"
  end
  local ok, response, problem = pcall(responder, request)
  local message
  if not ok then
    message = tostring(response)
  elseif type(response) == "table" then
    message = unknown_field(response)
  elseif response ~= nil then
    message = "t.http must return a table, or nil and a text"
  end
  if not message then
    return response, problem
  end
  native.record_error(message)
  return nil, message
end)

local dynamic_fields = {
  http = function()
    return responder
  end,
  requests = function()
    return requests
  end,
  logs = function()
    return native.logs(logs)
  end,
  releases = function()
    return native.releases(releases)
  end,
  release_error = function()
    return release_error
  end,
}

-- The fields that tests can set.
local setters = {
  http = function(value)
    if value ~= nil and type(value) ~= "function" then
      return "t.http must be a function, not a " .. type(value)
    end
    responder = value
  end,
  release_error = function(value)
    if value ~= nil and type(value) ~= "string" then
      return "t.release_error must be a text, not a " .. type(value)
    end
    release_error = value
    native.set_release_error(value)
  end,
}

return setmetatable(t, {
  __index = function(_, key)
    local value = dynamic_fields[key]
    return value and value()
  end,
  __newindex = function(_, key, value)
    local set = setters[key]
    local problem = set and set(value)
    if not set then
      error("t." .. tostring(key) .. " cannot be set; t.http and t.release_error can", 2)
    elseif problem then
      error(problem, 2)
    end
  end,
})
