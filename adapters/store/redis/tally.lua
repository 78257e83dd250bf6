-- Adds to counters, then reads counters.
-- KEYS     the counters to add to, then those to read
-- ARGV     two per counter to add to: the amount, and milliseconds to keep it
-- Returns  "=" and the values read, separated by ","
local added = #ARGV / 2
for i = 1, added do
  local by, ttl = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  local isNew = redis.call("INCRBY", KEYS[i], by) == tonumber(by)
  if isNew or redis.call("PTTL", KEYS[i]) < ttl then redis.call("PEXPIRE", KEYS[i], ttl) end
end
if added == #KEYS then return "=" end
local totals = redis.call("MGET", unpack(KEYS, added + 1))
for i, total in ipairs(totals) do totals[i] = total or "0" end
return "=" .. table.concat(totals, ",")
