-- Deletes keys that share a slot.
-- KEYS     the keys; with ARGV[1], the wake index first
-- ARGV[1]  a name in the wake index, or absent
-- Returns  "+"
if ARGV[1] then
  redis.call("ZREM", table.remove(KEYS, 1), ARGV[1])
end
redis.call("DEL", unpack(KEYS))
return "+"
