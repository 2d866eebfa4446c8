-- Greylisting: a new sender is refused temporarily, as many mail servers do. Tests whether your program retries.
--
-- Calls do not share their globals; use `restante.shared` for data that several calls need.

local delay = 60 -- Seconds that a new sender has to wait.
local remember_seconds = 3600 -- Seconds after which it counts as new again.

-- Returns a short key for a long text: senders can have any length, and keys have at most 256 bytes.
local function digest(text)
  local sum = 5381
  for i = 1, #text do
    sum = (sum * 33 + text:byte(i)) % 2 ^ 32
  end
  return ("%08x"):format(sum)
end

-- Marks a new sender as known, and as one that has to wait. Returns whether there was space for both marks.
local function remember(known_key, waiting_key)
  local has_space, is_new = pcall(restante.shared.add, known_key, true, remember_seconds)
  if has_space and is_new and not pcall(restante.shared.set, waiting_key, true, delay) then
    restante.shared.delete(known_key)
    return false
  end
  return has_space
end

function restante.before.rcpt_to_accepted(session)
  local recipient = session.to[#session.to].address
  if #recipient > 200 then
    recipient = digest(recipient)
  end
  local pair = digest(session.remote_addr .. " " .. session.from.address) .. " " .. recipient
  local waiting_key = "greylist waits " .. pair
  -- If `restante.shared` is full of waiting senders, this one has to retry too.
  if not remember("greylist knows " .. pair, waiting_key) or restante.shared.get(waiting_key) then
    return smtp.deny(451, "4.7.1 Greylisted, try again in a minute")
  end
  return smtp.defer()
end

-- restante script test greylist.lua

function test_a_new_sender_has_to_retry(t)
  local session = t.session { from = "shop@example.org", to = { "ann@example.org" }, remote_addr = "192.0.2.1" }
  t.denies(t.rcpt_to(session), 451)
  t.advance(30)
  t.denies(t.rcpt_to(session), 451)
  t.advance(31)
  t.defers(t.rcpt_to(session))
  t.advance(3600)
  t.denies(t.rcpt_to(session), 451)
end

function test_each_recipient_is_counted_separately(t)
  local from = ("long"):rep(30) .. "@example.org"
  t.denies(t.rcpt_to { from = from, to = { "ann@example.org" } }, 451)
  t.advance(61)
  t.defers(t.rcpt_to { from = from, to = { "ann@example.org" } })
  t.denies(t.rcpt_to { from = from, to = { "ann@example.org", "bob@example.org" } }, 451)
end

function test_senders_are_refused_if_restante_shared_is_full(t)
  local entries = 0
  while pcall(restante.shared.set, "entry " .. entries, true) do
    entries = entries + 1
  end
  t.denies(t.rcpt_to { to = { "ann@example.org" } }, 451)
  -- There is space for one of the marks.
  restante.shared.delete("entry 0")
  t.denies(t.rcpt_to { to = { "ann@example.org" } }, 451)
  t.denies(t.rcpt_to { to = { "ann@example.org" } }, 451)
end
