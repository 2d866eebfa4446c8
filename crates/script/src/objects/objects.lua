-- Addresses and sessions, as tables: scripts read them without leaving Lua. What a script writes to them is checked by
-- `host`, the part that is written in Rust (tables.rs).
--
-- What a field holds lies under another name in the same table, so that no assignment goes past the checks. Who finds these
-- names can spoil objects of his own script; the server takes nothing in them for granted.

local host = ...
local find, gmatch, match, setmetatable, sub = string.find, string.gmatch, string.match, setmetatable, string.sub
local checked_for_address, checked_for_session = host.checked_for_address, host.checked_for_session

-- The functions below need no globals, and `getfenv` must not hand out those that are there.
setfenv(1, {})

local address = { class = host.address, __metatable = false, __tostring = host.shown_address }
local parts = { name = "\0name", address = "\0address" }

local function new_address(name, mailbox)
  return setmetatable({ ["\0name"] = name, ["\0address"] = mailbox }, address)
end

function address.__index(object, key)
  local part = parts[key]
  return part and object[part]
end

function address.__newindex(object, key, value)
  value = checked_for_address(key, value)
  object[parts[key]] = value
end

function address.__eq(one, other)
  return one.name == other.name and one.address == other.address
end

local session = { class = host.session, __metatable = false }

local slots = { from = "\0from", to = "\0to", remote_addr = "\0remote_addr" }

-- The server writes a session as a text: a line each for the sender, the peer and every recipient. A field is read from it
-- when the script first asks for the field; until then it is false. Recipients can be many.
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
  local slot = slots[key]
  local value = slot and object[slot]
  if value == false then
    local text = object["\0text"]
    if key == "from" then
      value = new_address("", sub(text, 1, find(text, "\n", 1, true) - 1))
    elseif key == "to" then
      value = recipients(text)
    else
      value = match(text, "\n([^\n]*)")
    end
    object[slot] = value
  end
  return value
end

function session.__newindex(object, key, value)
  value = checked_for_session(key, value)
  object[slots[key]] = value
end

function session.__tostring(object)
  return "smtp_session(" .. object.remote_addr .. ")"
end

-- What is called for an event that is about a session: makes the session within the limits of the call.
local function judge(handler)
  return function(text)
    return handler(new_session(text))
  end
end

return new_address, new_session, judge
