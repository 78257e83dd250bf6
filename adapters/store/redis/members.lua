-- Reads the newest members of a window.
-- KEYS     the window with limits and the list of that name, as in commit.lua: only one of them exists
-- ARGV[1]  the maximum number of members, 1 or more
-- Returns  "=" and a JSON array, newest first, or "-" if there is none
local window, most, newest = redis.call("GET", KEYS[1]), tonumber(ARGV[1]), {}
if window then
  for member in string.gmatch(window, " ([^\n]+)\n") do
    if #newest < most then newest[#newest + 1] = member end
  end
else
  newest = redis.call("ZREVRANGE", KEYS[2], 0, most - 1)
end
return #newest > 0 and "=" .. cjson.encode(newest) or "-"
