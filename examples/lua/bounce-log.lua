-- Logs bounces, the messages that report a failed delivery, and logs when one is deleted.
-- An example of `after.message_deleted`, and of a module next to the script.

local logger = require("logger")
local failure = require("lib.failure")

local remember_seconds = 7 * 24 * 3600 -- How long a bounce is remembered.

function restante.after.message_stored(message)
  local address, status = failure.reported(message)
  if address then
    logger.warn("bounce stored", { mailbox = message.mailbox, recipient = address, status = status })
    restante.shared.set("bounced " .. message.mailbox .. " " .. message.id, address:sub(1, 200), remember_seconds)
  end
end

function restante.after.message_deleted(message)
  local key = "bounced " .. message.mailbox .. " " .. message.id
  local address = restante.shared.get(key)
  if address then
    restante.shared.delete(key)
    logger.info("bounce deleted", { mailbox = message.mailbox, recipient = address })
  end
end

-- restante script test bounce-log.lua

local report = table.concat({
  "From: MAILER-DAEMON@example.org",
  "To: shop@example.com",
  "Subject: Undelivered Mail",
  "Content-Type: text/plain",
  "",
  "Final-Recipient: rfc822; gone@example.org",
  "Action: failed",
  "Status: 5.1.1",
  "",
}, "\r\n")

function test_bounces_are_logged_when_stored_and_when_deleted(t)
  local bounce = t.put { mailbox = "shop", source = report }
  t.stored(bounce)
  t.equal(t.logs[1].fields.recipient, "gone@example.org")
  t.equal(t.logs[1].fields.status, "5.1.1")
  t.deleted(bounce)
  t.equal(t.logs[2].text, "bounce deleted")
end

function test_old_bounces_are_forgotten(t)
  local bounce = t.put { mailbox = "shop", source = report }
  t.stored(bounce)
  t.advance(8 * 24 * 3600)
  t.deleted(bounce)
  t.equal(#t.logs, 1)
end

function test_other_messages_are_not_bounces(t)
  t.stored(t.put { mailbox = "shop", text = "Status: 5.1.1, as they say" })
  t.equal(#t.logs, 0)
end
