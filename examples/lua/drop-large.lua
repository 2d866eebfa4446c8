-- Accepts and discards large messages, and messages with programs attached. The sender gets a 250 as usual.
--
-- `size` is known without parsing the message; reading `attachments` parses it.

local logger = require("logger")

local max_bytes = 1000000
local forbidden = { exe = true, msi = true, scr = true }

-- Returns the file name of the first attached program, or nothing.
local function attached_program(message)
  for _, attachment in ipairs(message.attachments) do
    local extension = attachment.filename:lower():match("%.(%w+)$")
    if extension and forbidden[extension] then
      return attachment.filename
    end
  end
end

function restante.before.message_stored(message)
  local reason
  if message.size > max_bytes then
    reason = "size"
  else
    local name = attached_program(message)
    reason = name and "attachment " .. name
  end
  if not reason then
    return nil
  end
  logger.info("dropped a message", { from = message.from.address, subject = message.subject, reason = reason })
  message.mailboxes = {}
  return message
end

-- restante script test drop-large.lua

function test_large_messages_are_dropped(t)
  t.equal(t.deliver { text = ("x"):rep(2000000) }, nil)
  t.equal(t.logs[1].fields.reason, "size")
end

function test_programs_are_dropped(t)
  local setup = { filename = "Setup.EXE", content_type = "application/octet-stream", content = "MZ" }
  t.equal(t.deliver { attachments = { setup } }, nil)
  t.equal(t.logs[1].fields.reason, "attachment Setup.EXE")
end

function test_other_mail_is_kept(t)
  local picture = { filename = "cat.png", content_type = "image/png", content = "PNG" }
  t.equal(t.deliver({ mailboxes = { "ann" }, attachments = { picture } }).mailboxes, { "ann" })
end
