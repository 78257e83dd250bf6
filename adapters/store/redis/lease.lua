-- Leases the due records of one shard, and drops index entries whose record has expired.
-- KEYS[1]  the wake index of the shard; its key ends in "w", where those of records have "r" and their name
-- ARGV[1]  the time up to which records are due
-- ARGV[2]  the maximum number of records
-- ARGV[3]  when leased records are due again, or "" to lease none and only return when they are due
-- Returns  "=" and a JSON array, earliest first: when each was due and, if leased, its name and its record; or "-" if
--          none is due
local due = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", ARGV[1], "WITHSCORES", "LIMIT", 0, ARGV[2])
local shard, found, gone = string.sub(KEYS[1], 1, -2), {}, {}
for i = 1, #due, 2 do
  local name, wakeAt = due[i], due[i + 1]
  if ARGV[3] == "" then
    found[#found + 1] = { wakeAt }
  else
    local record = redis.pcall("GET", shard .. "r" .. name)
    if record then
      -- Before any removal: see commit.lua.
      redis.call("ZADD", KEYS[1], "XX", ARGV[3], name)
      found[#found + 1] = { wakeAt, name, type(record) == "string" and record or "" }
    else
      gone[#gone + 1] = name
    end
  end
end
for _, name in ipairs(gone) do redis.call("ZREM", KEYS[1], name) end
return #found > 0 and "=" .. cjson.encode(found) or "-"
