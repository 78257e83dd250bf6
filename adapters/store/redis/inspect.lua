-- Reports on the server and one shard's backlog. Scripts may use INFO even if clients may not use CONFIG; if not, it is
-- left out.
-- KEYS[1]  the wake index of the shard
-- ARGV[1]  the time up to which records are due
-- Returns  "=" and five lines: the server's time in milliseconds, the number of due records, INFO's aof_enabled and
--          maxmemory_policy, each empty if unknown, and the error of a write of nothing, empty if there is none
local function setting(section, name)
  local info = redis.pcall("INFO", section)
  return type(info) == "string" and string.match(info, name .. ":([^\r\n]*)") or ""
end
local time = redis.pcall("TIME")
local now = time.err and "" or string.format("%d", time[1] * 1000 + math.floor(time[2] / 1000))
local due = redis.call("ZCOUNT", KEYS[1], "-inf", ARGV[1])
local aof, policy = setting("persistence", "aof_enabled"), setting("memory", "maxmemory_policy")
local written = redis.pcall("SET", KEYS[1] .. "!", "", "XX")
return "=" .. table.concat({ now, string.format("%d", due), aof, policy, written and written.err or "" }, "\n")
