-- Reads the newest members of a window.
-- KEYS     the window with limits and the list of that name, as commit.lua has them: one of them is there
-- ARGV[1]  how many at most, 1 or more
-- Returns  "=" and a JSON array, the newest first, or "-" when there is none
local window, most, newest = redis.call("GET", KEYS[1]), tonumber(ARGV[1]), {}
if window then
  for member in string.gmatch(window, " ([^\n]+)\n") do
    if #newest < most then newest[#newest + 1] = member end
  end
else
  newest = redis.call("ZREVRANGE", KEYS[2], 0, most - 1)
end
return #newest > 0 and "=" .. cjson.encode(newest) or "-"
