-- Marks the subject of messages from outside, and adds a readable name to a sender that has none.
--
-- Changes only the record that lists and the web page show. The source of the message stays as it was received.

local inside = "example.org"

function restante.before.message_stored(message)
  local domain = message.from.address:match("@(.*)$") or ""
  if domain:lower() == inside then
    return nil
  end
  message.subject = "[external] " .. message.subject
  if message.from.name == "" then
    message.from.name = "Somebody at " .. domain
  end
  return message
end

-- restante script test tag-subject.lua

function test_messages_from_outside_are_marked(t)
  local message = t.deliver { from = "shop@example.com", subject = "Your order" }
  t.equal(message.subject, "[external] Your order")
  t.equal(message.from.name, "Somebody at example.com")
end

function test_an_existing_name_is_kept(t)
  local message = t.deliver { from = address.new("The Shop", "shop@example.com") }
  t.equal(message.from, address.new("The Shop", "shop@example.com"))
end

function test_messages_from_inside_are_unchanged(t)
  t.equal(t.deliver({ from = "ann@Example.org", subject = "Lunch" }).subject, "Lunch")
end
