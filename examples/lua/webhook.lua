-- Notifies another program of every stored message. Delivery does not wait for `after` functions, so a slow receiver delays no
-- sender. For retries and signatures use the built-in webhooks instead (docs/webhooks.md).

local http = require("http")
local json = require("json")
local logger = require("logger")

local url = os.getenv and os.getenv("MAIL_HOOK_URL") or "http://localhost:8080/mail"

function restante.after.message_stored(message)
  local body = json.encode {
    mailbox = message.mailbox,
    id = message.id,
    from = message.from.address,
    subject = message.subject,
    date = message.date,
    size = message.size,
  }
  local response, problem = http.post(url, {
    headers = { ["Content-Type"] = "application/json" },
    body = body,
    timeout = "5s",
  })
  if problem then
    logger.error("cannot send the request", { url = url, problem = problem })
  elseif response.status_code >= 300 then
    logger.warn("the receiver refused the request", { url = url, status = response.status_code })
  end
end

-- restante script test webhook.lua

function test_a_stored_message_is_sent(t)
  t.http = function()
    return { status_code = 204 }
  end
  t.stored { mailbox = "ann", id = "17", from = "shop@example.com", subject = "Your order", date = 1763200000 }
  t.equal(#t.requests, 1)
  local request = t.requests[1]
  t.equal(request.method, "POST")
  local payload = json.decode(request.body)
  t.equal(payload.mailbox, "ann")
  t.equal(payload.subject, "Your order")
  t.equal(payload.date, 1763200000)
  t.equal(#t.logs, 0)
end

function test_failures_are_logged(t)
  t.http = function()
    return { status_code = 500 }
  end
  t.stored { mailbox = "ann" }
  t.equal(t.logs[1].level, "warn")
  t.http = function()
    return nil, "connection refused"
  end
  t.stored { mailbox = "ann" }
  t.equal(t.logs[2].level, "error")
  t.equal(t.logs[2].fields.problem, "connection refused")
end
