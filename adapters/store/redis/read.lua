-- Reads one record or one value.
-- KEYS[1]  its key
-- Returns  "=" and what is stored, or "-" when nothing is
local stored = redis.call("GET", KEYS[1])
return stored and "=" .. stored or "-"
