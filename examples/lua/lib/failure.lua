-- Reads reports about failed deliveries (RFC 3464), for bounce-log.lua.

local failure = {}

-- Returns the address that could not be reached and the status code, or nothing if the message is not such a report.
function failure.reported(message)
  local source = message.source
  if not source then
    return nil
  end
  local address = source:match("\nFinal%-Recipient:[^;\r\n]*; *([^\r\n]+)")
  local status = source:match("\nStatus: *(%d%.%d+%.%d+)")
  if address and status then
    return address, status
  end
end

return failure
