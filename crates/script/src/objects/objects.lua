-- Addresses and sessions are tables, so that scripts read them without leaving Lua. Values that a script writes to them
-- are checked by `host`, the part written in Rust (tables.rs).
--
-- The value of a field is stored under another key in the same table, so that every assignment is checked. A script
-- that finds these keys can corrupt its own objects only; the server trusts nothing in them.

local host = ...
local find, gmatch, match, setmetatable, sub = string.find, string.gmatch, string.match, setmetatable, string.sub
local validate_address, validate_session = host.validate_address, host.validate_session

-- The functions below need no globals, and `getfenv` must not return the real ones.
setfenv(1, {})

local address = { class = host.address, __metatable = false, __tostring = host.display_address }
local address_keys = { name = "\0name", address = "\0address" }

local function new_address(name, address_text)
  return setmetatable({ ["\0name"] = name, ["\0address"] = address_text }, address)
end

function address.__index(object, key)
  local stored_key = address_keys[key]
  return stored_key and object[stored_key]
end

function address.__newindex(object, key, value)
  value = validate_address(key, value)
  object[address_keys[key]] = value
end

function address.__eq(first, second)
  return first.name == second.name and first.address == second.address
end

local session = { class = host.session, __metatable = false }

local session_keys = { from = "\0from", to = "\0to", remote_addr = "\0remote_addr" }

-- The server passes a session as text: one line each for the sender, the peer and every recipient. A field is parsed
-- when the script first reads it; until then it is false. There can be many recipients.
local function new_session(text)
  return setmetatable({ ["\0text"] = text, ["\0from"] = false, ["\0to"] = false, ["\0remote_addr"] = false }, session)
end

local function recipients(text)
  local list = {}
  for line in gmatch(match(text, "\n[^\n]*\n(.*)"), "[^\n]+") do
    list[#list + 1] = new_address("", line)
  end
  return list
end

function session.__index(object, key)
  local stored_key = session_keys[key]
  local value = stored_key and object[stored_key]
  if value == false then
    local text = object["\0text"]
    if key == "from" then
      value = new_address("", sub(text, 1, find(text, "\n", 1, true) - 1))
    elseif key == "to" then
      value = recipients(text)
    else
      value = match(text, "\n([^\n]*)")
    end
    object[stored_key] = value
  end
  return value
end

function session.__newindex(object, key, value)
  value = validate_session(key, value)
  object[session_keys[key]] = value
end

function session.__tostring(object)
  return "smtp_session(" .. object.remote_addr .. ")"
end

-- Wraps the function of an event with a session. The session is created within the limits of the call.
local function wrap_handler(handler)
  return function(text)
    return handler(new_session(text))
  end
end

return new_address, new_session, wrap_handler
