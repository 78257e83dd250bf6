-- Adds one member to every window, or to none. A window is a sorted set: the score of a member is its time.
-- KEYS     the windows, each once
-- ARGV     two for each claim: its member, and six numbers separated by spaces:
--          index of its window in KEYS, limit, since, now, the time up to which members are dropped, milliseconds until Redis may drop the window
-- Returns  "+" when all were added, else "=" and the index, from 0, of the first claim whose window was full
local claims = {}
for i = 1, #ARGV, 2 do
  local window, limit, since, now, dropped, ttl = string.match(ARGV[i + 1], "(%S+) (%S+) (%S+) (%S+) (%S+) (%S+)")
  local key, member = KEYS[tonumber(window)], ARGV[i]
  local others = redis.call("ZCOUNT", key, "(" .. since, "+inf")
  local own = redis.call("ZSCORE", key, member)
  if own and tonumber(own) > tonumber(since) then
    others = others - 1
  end
  if others >= tonumber(limit) then
    return "=" .. #claims
  end
  claims[#claims + 1] = { key = key, member = member, now = now, dropped = dropped, ttl = ttl }
end
for _, claim in ipairs(claims) do
  redis.call("ZREMRANGEBYSCORE", claim.key, "-inf", claim.dropped)
  redis.call("ZADD", claim.key, claim.now, claim.member)
  if redis.call("PTTL", claim.key) < tonumber(claim.ttl) then
    redis.call("PEXPIRE", claim.key, claim.ttl)
  end
end
return "+"
