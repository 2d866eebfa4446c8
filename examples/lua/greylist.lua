-- Greylisting: a sender that is new is told to come back later, as many mail servers do. Does your program come back?
--
-- Calls do not share their globals; what has to be remembered from one call to the next goes into `restante.shared`.

local delay = 60 -- Seconds that a new sender has to wait.
local memory = 3600 -- Seconds after which it counts as new again.

function restante.before.rcpt_to_accepted(session)
  local candidate = session.to[#session.to].address
  local key = table.concat({ "greylist", session.remote_addr, session.from.address, candidate }, " "):sub(1, 200)
  -- The first attempt sets both marks: one says that the sender is known, the other that it has to wait.
  if restante.shared.add(key, true, memory) then
    restante.shared.set(key .. " waits", true, delay)
  end
  if restante.shared.get(key .. " waits") then
    return smtp.deny(451, "4.7.1 Greylisted, try again in a minute")
  end
  return smtp.defer()
end

-- restante script test greylist.lua

function test_a_new_sender_has_to_come_back(t)
  local session = t.session { from = "shop@example.org", to = { "ann@example.org" }, remote_addr = "192.0.2.1" }
  t.denies(t.rcpt_to(session), 451)
  t.advance(30)
  t.denies(t.rcpt_to(session), 451)
  t.advance(31)
  t.defers(t.rcpt_to(session))
  t.advance(3600)
  t.denies(t.rcpt_to(session), 451)
end

function test_each_recipient_counts_for_itself(t)
  t.denies(t.rcpt_to { to = { "ann@example.org" } }, 451)
  t.advance(61)
  t.defers(t.rcpt_to { to = { "ann@example.org" } })
  t.denies(t.rcpt_to { to = { "ann@example.org", "bob@example.org" } }, 451)
end
