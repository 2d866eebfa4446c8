-- Puts the messages of a whole team or environment into one mailbox.
--
-- `mailboxes` are the destinations of the message. If the function returns the message, its changes take effect. If it returns
-- nothing, the message is stored without changes.

local destinations = {
  ["staging.example.org"] = "staging",
  ["qa.example.org"] = "qa",
}

function restante.before.message_stored(message)
  local names, seen = {}, {}
  for _, to in ipairs(message.to) do
    local domain = to.address:match("@(.*)$") or ""
    local name = destinations[domain:lower()]
    if name and not seen[name] then
      seen[name] = true
      table.insert(names, name)
    end
  end
  if #names == 0 then
    return nil
  end
  message.mailboxes = names
  return message
end

-- restante script test reroute.lua

function test_mail_for_staging_goes_to_one_mailbox(t)
  local message = t.deliver { to = { "ann@staging.example.org", "bob@staging.example.org" } }
  t.equal(message.mailboxes, { "staging" })
end

function test_every_environment_gets_its_copy(t)
  local message = t.deliver { to = { "ann@staging.example.org", "bob@QA.example.org" } }
  t.equal(message.mailboxes, { "staging", "qa" })
end

function test_other_messages_are_unchanged(t)
  local message = t.deliver { to = { "ann@example.org" }, mailboxes = { "ann" } }
  t.equal(message.mailboxes, { "ann" })
end
