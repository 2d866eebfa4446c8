-- Accepts at most ten MAIL commands a minute from one IP address and refuses more with 451, as a busy provider does. Tests
-- whether your program slows down.

local max_senders = 10
local period = 60 -- Seconds.

function restante.before.mail_from_accepted(session)
  local count = restante.shared.incr("rate " .. session.remote_addr, 1, period)
  if count > max_senders then
    return smtp.deny(451, "4.7.0 Too much mail from " .. session.remote_addr .. ", slow down")
  end
  return smtp.defer()
end

-- restante script test rate-limit.lua

function test_the_eleventh_sender_is_refused(t)
  local session = t.session { remote_addr = "192.0.2.1" }
  for _ = 1, 10 do
    t.defers(t.mail_from(session))
  end
  t.denies(t.mail_from(session), 451)
  t.defers(t.mail_from { remote_addr = "192.0.2.2" })
end

function test_senders_are_accepted_after_a_minute(t)
  local session = t.session { remote_addr = "192.0.2.1" }
  for _ = 1, 11 do
    t.mail_from(session)
  end
  t.advance(61)
  t.defers(t.mail_from(session))
end
