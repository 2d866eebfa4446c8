-- Appends one line of JSON per stored message to a file, for a test suite that reads a file instead of the API.
-- Needs lua.sandbox to be off, which it is by default.

local json = require("json")

local file_name = os.getenv("MAIL_LOG") or "mail.jsonl"

function restante.after.message_stored(message)
  local recipients = {}
  for _, to in ipairs(message.to) do
    table.insert(recipients, to.address)
  end
  local line = assert(json.encode {
    mailbox = message.mailbox,
    id = message.id,
    from = message.from.address,
    to = recipients,
    subject = message.subject,
    text = message.text,
  })
  -- One write per line, so that lines of several threads do not mix.
  local file = assert(io.open(file_name, "a"))
  file:write(line .. "\n")
  file:close()
end

-- restante script test write-to-file.lua

function test_each_message_is_one_line(t)
  file_name = os.tmpname()
  t.stored { mailbox = "ann", from = "shop@example.com", to = { "ann@example.org" }, subject = "One", text = "first\nsecond" }
  t.stored { mailbox = "bob", subject = "Two" }
  local lines = {}
  for line in io.lines(file_name) do
    table.insert(lines, json.decode(line))
  end
  os.remove(file_name)
  t.equal(#lines, 2)
  t.equal(lines[1].subject, "One")
  t.equal(lines[1].to, { "ann@example.org" })
  t.matches(lines[1].text, "^first\r?\nsecond")
  t.equal(lines[2].mailbox, "bob")
end
