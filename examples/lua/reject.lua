-- Refuses senders and recipients with the reply that the program under test has to handle.

local blocked_senders = { "@spam%.example$", "^root@" }
local unknown_users = { ["nobody"] = true, ["gone"] = true }

function restante.before.mail_from_accepted(session)
  for _, pattern in ipairs(blocked_senders) do
    if session.from.address:lower():find(pattern) then
      return smtp.deny(554, "5.7.1 Sender is blocked")
    end
  end
  return smtp.defer()
end

function restante.before.rcpt_to_accepted(session)
  -- The last one is the candidate; those before it were accepted.
  local candidate = session.to[#session.to]
  local user = candidate.address:match("^[^@+]*"):lower()
  if unknown_users[user] then
    return smtp.deny(550, "5.1.1 No such user here")
  end
  return smtp.defer()
end

-- restante script test reject.lua

function test_blocked_senders(t)
  t.denies(t.mail_from { from = "win@Spam.example" }, 554, "5.7.1 Sender is blocked")
  t.denies(t.mail_from { from = "root@db1.example.org" })
  t.defers(t.mail_from { from = "shop@example.org" })
end

function test_the_null_sender_of_bounces_is_accepted(t)
  t.defers(t.mail_from { from = "" })
end

function test_only_the_candidate_is_checked(t)
  t.denies(t.rcpt_to { to = { "ann@example.org", "Nobody+tag@example.org" } }, 550)
  t.defers(t.rcpt_to { to = { "ann@example.org", "bob@example.org" } })
end
