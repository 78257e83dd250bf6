-- Lets go of keys that share a slot, and of their names in a wake index.
-- KEYS     the keys; where names are given, the wake index first
-- ARGV     the names
-- Returns  "+"
local first = 1
if #ARGV > 0 then
  first = 2
  for i = 1, #ARGV do
    redis.call("ZREM", KEYS[1], ARGV[i])
  end
end
for i = first, #KEYS do
  redis.call("DEL", KEYS[i])
end
return "+"
