-- Writes a record if the newest token of the stored one is the one expected.
-- KEYS[1]  the record
-- KEYS[2]  the wake index of its shard: members are record names, scores the times they are due
-- ARGV[1]  the token expected, or "" for no record
-- ARGV[2]  the newest token of the new record
-- ARGV[3]  the new record: "a" tokens "|" keepUntil "|" wakeAt "|" data, the tokens separated by ","
-- ARGV[4]  milliseconds until Redis may drop it
-- ARGV[5]  its name in the wake index
-- ARGV[6]  when it is due, or "" for never
-- Returns  "+" when this write landed, now or before; else "=" and the stored record, or "-" when there is none
local stored = redis.call("GET", KEYS[1])
local newest = ""
if stored then
  local tokens = string.match(stored, "^a([^|]+)|")
  if tokens and string.find("," .. tokens .. ",", "," .. ARGV[2] .. ",", 1, true) then
    return "+"
  end
  newest = tokens and string.match(tokens, "^[^,]*")
end
if newest ~= ARGV[1] then
  return stored and "=" .. stored or "-"
end
redis.call("SET", KEYS[1], ARGV[3], "PX", ARGV[4])
if ARGV[6] == "" then
  redis.call("ZREM", KEYS[2], ARGV[5])
else
  redis.call("ZADD", KEYS[2], ARGV[6], ARGV[5])
  if redis.call("PTTL", KEYS[2]) < tonumber(ARGV[4]) then
    redis.call("PEXPIRE", KEYS[2], ARGV[4])
  end
end
return "+"
