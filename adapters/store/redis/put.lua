-- Stores the value ARGV[1] for ARGV[2] milliseconds, or as long as the one that it replaces, if that is longer.
redis.call("SET", KEYS[1], ARGV[1], "PX", math.max(ARGV[2], redis.call("PTTL", KEYS[1])))
return "+"
