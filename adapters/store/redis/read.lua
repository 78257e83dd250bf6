-- Reads one record or one value. Returns "=" and the stored text, or "-" if there is none.
local stored = redis.call("GET", KEYS[1])
return stored and "=" .. stored or "-"
