-- Reads one record or one value.
-- KEYS[1]  its key
-- Returns  "=" and the stored text, or "-" if there is none
local stored = redis.call("GET", KEYS[1])
return stored and "=" .. stored or "-"
