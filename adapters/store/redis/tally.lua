-- Adds to counters, and then reads counters.
-- KEYS     those that are added to, then those that are read
-- ARGV     two for each that is added to: by how much, and milliseconds that it must be kept
-- Returns  "=" and what was read, separated by ","
for i = 1, #ARGV / 2 do
  redis.call("INCRBY", KEYS[i], ARGV[2 * i - 1])
  if redis.call("PTTL", KEYS[i]) < tonumber(ARGV[2 * i]) then
    redis.call("PEXPIRE", KEYS[i], ARGV[2 * i])
  end
end
local totals = {}
for i = #ARGV / 2 + 1, #KEYS do
  totals[#totals + 1] = redis.call("GET", KEYS[i]) or "0"
end
return "=" .. table.concat(totals, ",")
