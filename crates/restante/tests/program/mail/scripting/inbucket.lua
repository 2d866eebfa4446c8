-- Rules for the staging environment.
local logger = require("logger")
local json = require("json")
local http = require("http")

local blocked_networks = { "^10%.66%." }
local max_size = 1000

local function domain_of(addr)
  local at = addr.address:find("@", 1, true)
  if not at then
    return ""
  end
  return string.lower(string.sub(addr.address, at + 1))
end

local function append_event(name, record)
  local f = assert(io.open("events.json", "a"))
  record.event = name
  f:write(json.encode(record), "\n")
  f:close()
end

function inbucket.before.mail_from_accepted(session)
  for _, network in ipairs(blocked_networks) do
    if string.match(session.remote_addr, network) then
      return smtp.deny(554, "Network blocked")
    end
  end
  if session.from.address == "" then
    goto accept
  end
  if domain_of(session.from) == "spam.test" then
    logger.warn("Sender refused", { sender = session.from.address, remote = session.remote_addr })
    return smtp.deny()
  end
  ::accept::
  return smtp.defer()
end

function inbucket.before.rcpt_to_accepted(session)
  local rcpt = session.to[#session.to]
  if rcpt.address == "nobody@staging.test" then
    return smtp.deny(550, "No such user")
  end
  if domain_of(rcpt) == "staging.test" then
    return smtp.allow()
  end
  return smtp.defer()
end

function inbucket.before.message_stored(msg)
  if msg.size > max_size then
    logger.info("Too large", { size = msg.size })
    msg.mailboxes = {}
    return msg
  end
  local made_changes = false
  local updated = {}
  for index, mailbox in ipairs(msg.mailboxes) do
    if mailbox == "team" then
      table.insert(updated, "alice")
      table.insert(updated, "bob")
      made_changes = true
    else
      table.insert(updated, mailbox)
    end
  end
  if made_changes then
    msg.mailboxes = updated
    msg.from = address.new("Team", msg.from.address)
    msg.to = { address.new("Everyone", "team@staging.test") }
    msg.subject = string.format("[team] %s", msg.subject)
    return msg
  end
  return nil
end

function inbucket.after.message_stored(msg)
  append_event("stored", {
    mailbox = msg.mailbox, id = msg.id, subject = msg.subject, size = msg.size, date = os.date("!%Y", msg.date),
    from = { name = msg.from.name, address = msg.from.address }, to = msg.to[1].address,
  })
end

function inbucket.after.message_deleted(msg)
  append_event("deleted", { mailbox = msg.mailbox, id = msg.id })
end
