-- Writes a record, adds members to windows and weights to sums: all of it, or nothing.
-- A window is a sorted set, a member's score the time of its claim; ".5" more where it had been there before, so that taking back a claim leaves it.
-- A sum is a hash: of each of its parts the end, in base 36, and the weight.
-- Numbers stay the strings that they come as, where they can: Redis writes and reads each that is none by way of a decimal fraction.
-- KEYS     for a record its key and the wake index of its shard, or the key of a ticket; the window or sum of each claim; the sum of each ask
-- ARGV[1]  "record"; or "ticket" where sums change without one; or ""
-- ARGV[2]  the newest token of the new record
-- ARGV[3]  the token that the stored one must have, or "" for no record
-- ARGV[4]  the new record: its tokens, separated by ","; "|", and what is not read here. It is kept with "w" before it when it is to wake, else with "s"
-- ARGV[5]  milliseconds that it must be kept
-- ARGV[6]  when it is due, "" for never, or "unchanged"
-- ARGV[7]  seven words for each claim, a space after each: "in", "out", "back" (out, unless it had been there before), "look" or "sum"; the member, or the weight; the first time that counts;
--          the time of the claim, or the end of the part; the limit, or "-"; milliseconds that the window or sum is kept when its life is set: `spare` less will do; the largest limit on the window, or "0"
-- ARGV[8]… for each ask the first time that counts
-- Returns  the counts of the claims, separated by ",", ";" and those of the asks, after "+"; or after "*" or "?" when this had landed before, by another call or by one that cannot be told
--          "!", the index of the first claim refused, from 0, ",", its count, and, where there is one, "," and the earliest time since when it would have been granted
--          "=" and the stored record, or "-" when there is none: it is not the one expected
local call, number, floor, max, KEYS, ARGV = redis.call, tonumber, math.floor, math.max, KEYS, ARGV
local spare, mostParts, wholeUpTo, room = 600000, 32, 64, 16

local at, stored, landed = 0, false, false
if ARGV[1] == "ticket" then
  at = 1
  landed = call("EXISTS", KEYS[1]) == 1 and "*"
elseif ARGV[1] == "record" then
  at = 2
  stored = redis.pcall("GET", KEYS[1])
  if type(stored) == "table" then
    return "="
  end
  local tokens, newest = nil, ""
  if stored then
    tokens, newest = string.match(stored, "^[sw](([^,|]+)[^|]*)|")
  end
  if newest == ARGV[2] then
    landed = string.sub(stored, 2) == ARGV[4] and "+" or "*"
  elseif tokens and string.find(tokens .. ",", "," .. ARGV[2] .. ",", 1, true) then
    landed = "?"
  elseif newest ~= ARGV[3] then
    return stored and "=" .. stored or "-"
  end
end

-- A whole number as text.
local function text(value)
  return value < 1e14 and value or string.format("%.0f", value)
end

-- What the parts of a sum come to, each an end followed by its weight.
local function total(parts, from)
  local sum = 0
  for i = 1, #parts, 2 do
    if number(parts[i], 36) >= from then
      sum = sum + parts[i + 1]
    end
  end
  return sum
end

-- The parts of a sum, read once: `read` holds those of each claim.
local read, claims = { 0, 0, 0, 0 }, 0
local function partsOf(key)
  for i = 1, claims do
    if KEYS[at + i] == key and read[i] then
      return read[i]
    end
  end
  return call("HGETALL", key)
end

-- Tables that begin with zeros have room from the start: each doubling costs more than what is put there.
local counts = { 0, 0, 0, 0 }
local writes, size, takes = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, 0, false -- seven for each: the claim's place, what it does, and its member, new time, life and largest limit; or its part, what is added to that, and its life
local key, members -- of a window that is to hold few, read whole: members with their times, the newest first; of others false
for does, what, from, time, limit, ttl, most in string.gmatch(ARGV[7], "([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) ") do
  local count = 0
  if does == "sum" then
    from, key = number(from), KEYS[at + claims + 1]
    local parts = partsOf(key)
    count = total(parts, from)
    claims = claims + 1
    read[claims] = parts
    if not landed then
      if limit ~= "-" and number(what) >= 0 and count + what > number(limit) then
        -- The end of the first part after which no more than the rest is left.
        local since
        for i = 1, #parts, 2 do
          local partEnd = number(parts[i], 36)
          if partEnd >= from and (not since or partEnd < since) and total(parts, partEnd + 1) <= limit - what then
            since = partEnd
          end
        end
        return "!" .. claims - 1 .. "," .. text(count) .. (since and string.format(",%.0f", since) or "")
      end
      local i = 1
      while parts[i] and parts[i] ~= time do
        i = i + 2
      end
      local held = parts[i + 1] or 0
      -- A part does not fall below 0.
      if held + what < 0 then
        what = string.format("%.0f", 0 - held)
      end
      if what ~= "0" then
        parts[i], parts[i + 1] = time, held + what
        count = count + what
        writes[size + 1], writes[size + 2], writes[size + 3], writes[size + 4], writes[size + 5] = claims, does, time, what, ttl
        size = size + 7
      end
    end
  else
    claims = claims + 1
    read[claims] = false
    -- Several limits on one window follow one another.
    if key ~= KEYS[at + claims] then
      key = KEYS[at + claims]
      members = most ~= "0" and number(most) <= wholeUpTo and call("ZREVRANGE", key, "0", "80", "WITHSCORES")
    end
    local own
    if not members then
      count, own = call("ZCOUNT", key, from, "+inf"), number(call("ZSCORE", key, what))
      from = number(from)
    elseif members[1] then
      from = number(from)
      for i = 2, #members, 2 do
        local score = number(members[i])
        if score >= from then
          count = count + 1
        end
        if members[i - 1] == what then
          own = score
        end
      end
    end
    local counted = own and own >= from and 1 or 0
    if does == "in" and not landed then
      count = count - counted
      if limit ~= "-" and count >= number(limit) then
        -- The time of the newest member but `limit - 1`, the claim's own left out: without what is as old there is room.
        local since
        if members then
          local left = number(limit)
          for i = 2, #members, 2 do
            left = members[i - 1] == what and left or left - 1
            since = since or left == 0 and members[i]
          end
        else
          local place = call("ZREVRANK", key, what)
          place = place and place < number(limit) and limit or limit - 1
          since = call("ZREVRANGE", key, place, place, "WITHSCORES")[2]
        end
        return "!" .. claims - 1 .. "," .. count .. (since and string.format(",%.0f", floor(since)) or "")
      end
      local score = own and max(floor(own), time) + 0.5 or time
      if number(score) >= number(from) then
        count = count + 1
      end
      writes[size + 1], writes[size + 2], writes[size + 3], writes[size + 4], writes[size + 5], writes[size + 6], writes[size + 7] = claims, does, what, score, ttl, most, members and #members / 2
      size = size + 7
    elseif own and not landed and (does == "out" and floor(own) == number(time) or does == "back" and own == number(time)) then
      writes[size + 1], writes[size + 2], writes[size + 3] = claims, "out", what
      size = size + 7
      takes = true
      count = count - counted
    end
  end
  counts[claims] = text(count)
end
local answer = "+" .. table.concat(counts, ",", 1, claims) .. ";"
for i = 8, #ARGV do
  answer = answer .. text(total(partsOf(KEYS[at + claims + i - 7]), number(ARGV[i]))) .. (i < #ARGV and "," or "")
end
if landed then
  return landed .. string.sub(answer, 2)
end

local function keep(key, ttl, new)
  if new or call("PTTL", key) < ttl - spare then
    call("PEXPIRE", key, ttl)
  end
end

-- The first write must be one that adds: Redis refuses it when memory is full, and none after the first.
if ARGV[1] == "ticket" then
  call("SET", KEYS[1], "", "PX", "60000")
elseif ARGV[1] == "record" then
  local ttl, wakeAt, woke = ARGV[5], ARGV[6], stored and string.sub(stored, 1, 1) == "w"
  local left = stored and call("PTTL", KEYS[1])
  local wakes = wakeAt == "unchanged" and woke or wakeAt ~= "unchanged" and wakeAt ~= ""
  call("SET", KEYS[1], (wakes and "w" or "s") .. ARGV[4], "PX", left and left > number(ttl) and left or ttl)
  if wakes or woke then
    local name = string.sub(KEYS[1], #KEYS[2] + 1)
    if not wakes then
      call("ZREM", KEYS[2], name)
    else
      if wakeAt ~= "unchanged" then
        call("ZADD", KEYS[2], wakeAt, name)
      end
      keep(KEYS[2], ttl + spare)
    end
  end
end
for i = 1, size, 7 do
  local key, does, what, new, ttl = KEYS[at + writes[i]], writes[i + 1], writes[i + 2], writes[i + 3], writes[i + 4]
  if does == "sum" then
    local parts = read[writes[i]]
    call("HINCRBY", key, what, new)
    if #parts > 2 * mostParts then
      local oldest = 1
      for part = 3, #parts, 2 do
        if number(parts[part], 36) < number(parts[oldest], 36) then
          oldest = part
        end
      end
      call("HDEL", key, parts[oldest])
    end
    keep(key, ttl)
  elseif does == "in" then
    local seen, again, kept = false, false, false -- the window before, the member in it, and that with the same life
    for before = 1, i - 7, 7 do
      if KEYS[at + writes[before]] == key then
        seen, again = true, again or writes[before + 2] == what
        kept = kept or writes[before + 2] == what and writes[before + 4] == ttl
      end
    end
    local held, most = writes[i + 6], writes[i + 5] + room
    if not again then
      call("ZADD", key, new, what)
      if not held or held >= most then
        call("ZREMRANGEBYRANK", key, "0", -1 - most)
      end
    end
    if not kept then
      keep(key, ttl, held == 0 and not seen)
    end
  end
end
if takes then
  for i = 1, size, 7 do
    if writes[i + 1] == "out" then
      call("ZREM", KEYS[at + writes[i]], writes[i + 2])
    end
  end
end
return answer
