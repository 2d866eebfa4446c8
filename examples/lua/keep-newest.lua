-- Keeps only the newest messages of some mailboxes, for example the reports of a cron job.
--
-- `restante.store` can be used in `after` functions.

local keep = { cron = 3, monitoring = 1 }

function restante.after.message_stored(message)
  local max_messages = keep[message.mailbox]
  if not max_messages then
    return
  end
  -- The oldest message comes first.
  local messages = restante.store.list(message.mailbox, { limit = 1000 })
  for index = 1, #messages - max_messages do
    restante.store.delete(message.mailbox, messages[index].id)
  end
end

-- restante script test keep-newest.lua

function test_old_messages_are_deleted(t)
  for number = 1, 5 do
    t.stored(t.put { mailbox = "cron", subject = "Report " .. number })
  end
  local left = {}
  for _, message in ipairs(t.mails("cron")) do
    table.insert(left, message.subject)
  end
  t.equal(left, { "Report 3", "Report 4", "Report 5" })
end

function test_other_mailboxes_are_unchanged(t)
  for _ = 1, 5 do
    t.stored(t.put { mailbox = "ann" })
  end
  t.equal(#t.mails("ann"), 5)
end
