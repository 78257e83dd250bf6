-- Reads the records of one shard that are due, and drops entries whose record Redis has let go.
-- KEYS[1]  the wake index of the shard, whose key ends in "w"; its records' keys have "r" and their name there instead, and share its slot
-- ARGV[1]  the time up to which records are due
-- ARGV[2]  how many at most
-- Returns  "=" and a JSON array: name, record, name, record …, the earliest first; or "-" when none is due
local found = {}
local shard = string.sub(KEYS[1], 1, -2)
for _, name in ipairs(redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", ARGV[1], "LIMIT", 0, ARGV[2])) do
  local record = redis.call("GET", shard .. "r" .. name)
  if record then
    found[#found + 1] = name
    found[#found + 1] = record
  else
    redis.call("ZREM", KEYS[1], name)
  end
end
return #found > 0 and "=" .. cjson.encode(found) or "-"
