-- Writes one value.
-- KEYS[1]  its key
-- ARGV[1]  the value
-- ARGV[2]  milliseconds to keep it
-- Returns  "+"
redis.call("SET", KEYS[1], ARGV[1], "PX", math.max(ARGV[2], redis.call("PTTL", KEYS[1])))
return "+"
