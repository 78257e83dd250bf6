-- Hands out the records of one shard that are due, and drops entries whose record Redis has let go.
-- KEYS[1]  the wake index of the shard, whose key ends in "w"; its records' keys have "r" and their name there instead, and share its slot
-- ARGV[1]  the time up to which records are due
-- ARGV[2]  how many at most
-- ARGV[3]  when those handed out are due again, or "" to hand out none and tell only when they are due
-- Returns  "=" and a JSON array, the earliest first: of each when it was due and, if it is handed out, its name and its record; or "-" when none is due
local due = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", ARGV[1], "WITHSCORES", "LIMIT", 0, ARGV[2])
local shard, found, gone = string.sub(KEYS[1], 1, -2), {}, {}
for i = 1, #due, 2 do
  local name, wakeAt = due[i], due[i + 1]
  if ARGV[3] == "" then
    found[#found + 1] = { wakeAt }
  else
    local record = redis.pcall("GET", shard .. "r" .. name)
    if record then
      -- Before anything is removed: see commit.lua.
      redis.call("ZADD", KEYS[1], "XX", ARGV[3], name)
      found[#found + 1] = { wakeAt, name, type(record) == "string" and record or "" }
    else
      gone[#gone + 1] = name
    end
  end
end
for _, name in ipairs(gone) do
  redis.call("ZREM", KEYS[1], name)
end
return #found > 0 and "=" .. cjson.encode(found) or "-"
