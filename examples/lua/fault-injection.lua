-- Faults on demand, to test programs that send mail. The recipient address selects the fault:
--
--   fail-550@example.org      is always refused with 550; any code from 400 to 599 works
--   flaky-2@example.org       is refused with 451 twice, and accepted the third time
--   slow-3@example.org        is accepted after 3 seconds; 8 at most
--   lost@example.org          is accepted, and the message is discarded
--
-- All other recipients behave as usual.

local max_delay = 8 -- The longest delay in seconds. It must be less than lua.timeout, which is 10 by default.

local function user_of(recipient)
  return recipient.address:match("^[^@+]*"):lower()
end

function restante.before.rcpt_to_accepted(session)
  local user = user_of(session.to[#session.to])
  local code = user:match("^fail%-([45]%d%d)$")
  if code then
    return smtp.deny(tonumber(code), "Refused as the recipient address requests")
  end
  local failures = user:match("^flaky%-(%d+)$")
  if failures then
    local key = "flaky " .. session.from.address:sub(1, 100) .. " " .. user
    local attempt = restante.shared.incr(key, 1, 600)
    if attempt <= tonumber(failures) then
      return smtp.deny(451, "4.3.0 Failure " .. attempt .. " of " .. failures)
    end
    restante.shared.delete(key)
  end
  local seconds = user:match("^slow%-(%d+)$")
  if seconds then
    restante.sleep(math.min(tonumber(seconds), max_delay))
  end
  return smtp.defer()
end

function restante.before.message_stored(message)
  local kept = {}
  for _, name in ipairs(message.mailboxes) do
    if not name:match("^lost$") and not name:match("^lost@") then
      table.insert(kept, name)
    end
  end
  message.mailboxes = kept
  return message
end

-- restante script test fault-injection.lua

function test_the_address_selects_the_code(t)
  t.denies(t.rcpt_to { to = { "fail-452@example.org" } }, 452)
  t.denies(t.rcpt_to { to = { "fail-550+x@example.org" } }, 550)
  t.defers(t.rcpt_to { to = { "fail-250@example.org" } })
end

function test_flaky_recipients_are_finally_accepted(t)
  local session = t.session { to = { "flaky-2@example.org" } }
  t.denies(t.rcpt_to(session), 451, "4.3.0 Failure 1 of 2")
  t.denies(t.rcpt_to(session), 451, "4.3.0 Failure 2 of 2")
  t.defers(t.rcpt_to(session))
  t.denies(t.rcpt_to(session), 451)
end

function test_slow_recipients_are_accepted(t)
  t.defers(t.rcpt_to { to = { "slow-3@example.org" } })
  restante.shared.set("a minute", true, 60)
  t.defers(t.rcpt_to { to = { "slow-99999@example.org" } })
  t.yes(restante.shared.get("a minute"))
end

function test_lost_messages_are_accepted_and_discarded(t)
  t.equal(t.deliver { mailboxes = { "lost" } }, nil)
  t.equal(t.deliver({ mailboxes = { "lost", "ann" } }).mailboxes, { "ann" })
end
