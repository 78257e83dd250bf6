-- Writes one value.
-- KEYS[1]  its key
-- ARGV[1]  the value
-- ARGV[2]  milliseconds until Redis may drop it
-- Returns  "+"
redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
return "+"
