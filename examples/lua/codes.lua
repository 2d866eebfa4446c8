-- Finds one-time codes in stored messages and writes them to the log, where a test script can find them with
-- `grep "one-time code"`.

local logger = require("logger")

-- A code follows one of these words and has four to eight digits.
local words = { "code", "pin", "passcode", "otp" }

local function code_in(text)
  local lower = text:lower()
  for _, word in ipairs(words) do
    local position = lower:find("%f[%w]" .. word .. "%f[%W]")
    local code = position and lower:match("%f[%d]%d%d%d%d+%f[%D]", position)
    if code and #code <= 8 then
      return code
    end
  end
end

function restante.after.message_stored(message)
  local code = code_in(message.subject) or code_in(message.text or "")
  if code then
    logger.info("one-time code", { mailbox = message.mailbox, id = message.id, code = code })
  end
end

-- restante script test codes.lua

local function logged_code(t, message)
  t.stored(message)
  local last = t.logs[#t.logs]
  return last and last.fields.code
end

function test_codes(t)
  t.equal(logged_code(t, { text = "Your code is 123456." }), "123456")
  t.equal(logged_code(t, { text = "Room 1408\nPIN: 2468" }), "2468")
  t.equal(logged_code(t, { subject = "OTP 55555555 for example.org" }), "55555555")
end

function test_other_numbers(t)
  t.equal(logged_code(t, { text = "Order 123456789 of 2026" }), nil)
  t.equal(logged_code(t, { text = "The barcode 12345 is not a code, nor is 123" }), nil)
end
