-- One mailbox per test run: programs under test add a header field to their messages, and parallel runs that use the same
-- recipients do not see each other's messages.
--
--   X-Test-Run: 4711        puts a copy into the mailbox run-4711

function restante.before.message_stored(message)
  local run = message.headers["X-Test-Run"]
  if not run or not run:match("^%w+$") or #run > 40 then
    return nil
  end
  table.insert(message.mailboxes, "run-" .. run:lower())
  return message
end

-- restante script test per-test-mailbox.lua

function test_a_marked_message_gets_a_second_copy(t)
  local message = t.deliver { mailboxes = { "ann" }, headers = { ["X-Test-Run"] = "4711A" } }
  t.equal(message.mailboxes, { "ann", "run-4711a" })
end

function test_invalid_marks_are_ignored(t)
  for _, run in ipairs { "", "a b", "../x", ("x"):rep(41) } do
    t.equal(t.deliver({ mailboxes = { "ann" }, headers = { ["x-test-run"] = run } }).mailboxes, { "ann" })
  end
end
