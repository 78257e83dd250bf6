-- Counts the members of windows.
-- KEYS     a window for each question
-- ARGV     a time for each question; members at it or before do not count
-- Returns  "=" and the counts, separated by ","
local counts = {}
for i, window in ipairs(KEYS) do
  counts[i] = redis.call("ZCOUNT", window, "(" .. ARGV[i], "+inf")
end
return "=" .. table.concat(counts, ",")
