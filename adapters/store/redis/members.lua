-- Reads the newest members of a window.
-- KEYS[1]  the window
-- ARGV[1]  how many at most, 1 or more
-- Returns  "=" and a JSON array, the newest first, or "-" when there is none
local newest = redis.call("ZREVRANGE", KEYS[1], 0, ARGV[1] - 1)
return #newest > 0 and "=" .. cjson.encode(newest) or "-"
