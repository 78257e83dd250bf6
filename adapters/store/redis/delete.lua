-- Deletes keys that share a slot. With a name in ARGV[1], the first is a wake index, which loses only that name.
if ARGV[1] then redis.call("ZREM", table.remove(KEYS, 1), ARGV[1]) end
redis.call("DEL", unpack(KEYS))
return "+"
