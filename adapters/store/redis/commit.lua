-- Writes a record, adds members to windows and weights to sums: all of it, or nothing.
-- A window is a sorted set, a member's score the time of its claim; ".5" more where it had been there before, so that taking back a claim leaves it.
-- A sum is a hash: of each of its parts the end, in base 36, and the weight.
-- KEYS     for a record its key and the wake index of its shard, or the key of a ticket; the window or sum of each claim; the sum of each ask
-- ARGV[1]  "record"; or "ticket" where sums change without one; or ""
-- ARGV[2]  the newest token of the new record
-- ARGV[3]  the token that the stored one must have, or "" for no record
-- ARGV[4]  the new record: its tokens, separated by ","; "|", and what is not read here. It is kept with "w" before it when it is to wake, else with "s"
-- ARGV[5]  milliseconds that it must be kept
-- ARGV[6]  its name in the wake index
-- ARGV[7]  when it is due, "" for never, or "unchanged"
-- ARGV[8]  how many claims there are; then six for each: "in", "out", "back" (out, unless it had been there before), "look" or "sum"; the member, or the weight; the first time that counts;
--          the time of the claim, or the end of the part; the limit, or ""; milliseconds that the window or sum must be kept; and then for each ask the first time that counts
-- Returns  the counts of the claims, separated by ",", ";" and those of the asks, after "+"; or after "*" or "?" when this had landed before, by another call or by one that cannot be told
--          "!", the index of the first claim refused, from 0, ",", its count, and, where there is one, "," and the earliest time since when it would have been granted
--          "=" and the stored record, or "-" when there is none: it is not the one expected
local call = redis.call
local spare = 600000 -- added to the life of what is kept longer, so that not every claim has to
local largestList, mostParts, wholeUpTo, room = 10000, 32, 64, 16

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
  local tokens = stored and string.match(stored, "^[sw]([^|]+)|")
  local newest = not stored and "" or tokens and string.match(tokens, "^[^,]*")
  if newest == ARGV[2] then
    landed = string.sub(stored, 2) == ARGV[4] and "+" or "*"
  elseif tokens and string.find(tokens .. ",", "," .. ARGV[2] .. ",", 1, true) then
    landed = "?"
  elseif newest ~= ARGV[3] then
    return stored and "=" .. stored or "-"
  end
end
local claims = tonumber(ARGV[8])

-- Short windows are read whole, once: members with their times, and how many there were. Of others false.
local windows, sizes, longest = {}, {}, {}
local function read(key)
  local most = 0
  for i = 1, claims do
    if KEYS[at + i] == key and ARGV[i * 6 + 3] == "in" then
      most = math.max(most, tonumber(ARGV[i * 6 + 7]) or largestList)
    end
  end
  longest[key], windows[key] = most, false
  if most > 0 and most <= wholeUpTo then
    local flat, times = call("ZREVRANGE", key, 0, most + room, "WITHSCORES"), {}
    for i = 1, #flat, 2 do
      times[flat[i]] = flat[i + 1] + 0
    end
    windows[key], sizes[key] = times, #flat / 2
  end
end

-- How many members of a window count, and the time of one.
local function look(key, member, from)
  if windows[key] == nil then
    read(key)
  end
  if not windows[key] then
    return call("ZCOUNT", key, from, "+inf"), tonumber(call("ZSCORE", key, member))
  end
  local count = 0
  for _, time in pairs(windows[key]) do
    if time >= from then
      count = count + 1
    end
  end
  return count, windows[key][member]
end

-- The parts of sums: each end, followed by its weight.
local sums = {}
local function total(key, from)
  local parts, sum = sums[key] or call("HGETALL", key), 0
  for i = 1, #parts, 2 do
    if tonumber(parts[i], 36) >= from then
      sum = sum + parts[i + 1]
    end
  end
  sums[key] = parts
  return sum
end

-- The time of the newest member but `limit - 1`, the claim's own left out: without what is as old there is room.
local function roomInWindow(key, member, limit)
  local others = {}
  if windows[key] then
    for name, time in pairs(windows[key]) do
      if name ~= member then
        others[#others + 1] = time
      end
    end
    table.sort(others, function(a, b) return a > b end)
    return others[limit]
  end
  local own = call("ZREVRANK", key, member)
  local place = own and own < limit and limit or limit - 1
  return tonumber(call("ZREVRANGE", key, place, place, "WITHSCORES")[2])
end

-- The end of the first part of a sum after which no more than `room` is left.
local function roomInSum(key, from, room)
  local parts, ends = sums[key], {}
  for i = 1, #parts, 2 do
    local partEnd = tonumber(parts[i], 36)
    if partEnd >= from then
      ends[#ends + 1] = partEnd
    end
  end
  table.sort(ends)
  for _, partEnd in ipairs(ends) do
    if total(key, partEnd + 1) <= room then
      return partEnd
    end
  end
end

-- Adds to a part, which does not fall below 0; returns by how much.
local function add(parts, part, weight)
  local i = 1
  while parts[i] and parts[i] ~= part do
    i = i + 2
  end
  local held = tonumber(parts[i + 1] or 0)
  parts[i], parts[i + 1] = part, math.max(held + weight, 0)
  return parts[i + 1] - held
end

local counts, changes = {}, {} -- of each claim the member's new time, or true when it leaves; or what is added to the sum
for i = 1, claims do
  local arg = i * 6 + 2
  local key, does, what, from, time, limit = KEYS[at + i], ARGV[arg + 1], ARGV[arg + 2], ARGV[arg + 3] + 0, ARGV[arg + 4], ARGV[arg + 5]
  local count, own, refused
  if does == "sum" then
    count = total(key, from)
    if not landed then
      refused = limit ~= "" and what + 0 >= 0 and count + what > limit + 0 and { roomInSum(key, from, limit - what) }
      changes[i] = not refused and add(sums[key], time, what)
    end
    count = string.format("%.0f", (landed or refused) and count or total(key, from))
  else
    count, own = look(key, what, from)
    local counted = own and own >= from and 1 or 0
    if does == "in" and not landed then
      count = count - counted
      refused = limit ~= "" and count >= limit + 0 and { roomInWindow(key, what, limit + 0) }
      changes[i] = own and math.max(math.floor(own), time) + 0.5 or time
      if not refused and changes[i] + 0 >= from then
        count = count + 1
      end
    elseif own and not landed and (does == "out" and math.floor(own) == time + 0 or does == "back" and own == time + 0) then
      changes[i] = true
      count = count - counted
    end
  end
  if refused then
    return "!" .. i - 1 .. "," .. count .. (refused[1] and string.format(",%.0f", math.floor(refused[1])) or "")
  end
  counts[i] = count
end
local asked = {}
for i = 1, #KEYS - at - claims do
  asked[i] = string.format("%.0f", total(KEYS[at + claims + i], tonumber(ARGV[6 * claims + 8 + i])))
end
local answer = table.concat(counts, ",") .. ";" .. table.concat(asked, ",")
if landed then
  return landed .. answer
end

local function keep(key, ttl, new)
  if new or call("PTTL", key) < ttl + 0 then
    call("PEXPIRE", key, ttl + spare)
  end
end

-- The first write must be one that adds: Redis refuses it when memory is full, and none after the first.
if ARGV[1] == "ticket" then
  call("SET", KEYS[1], "", "PX", 60000)
elseif ARGV[1] == "record" then
  local ttl, wakeAt, woke = ARGV[5], ARGV[7], stored and string.sub(stored, 1, 1) == "w"
  local wakes = wakeAt == "unchanged" and woke or wakeAt ~= "unchanged" and wakeAt ~= ""
  call("SET", KEYS[1], (wakes and "w" or "s") .. ARGV[4], "PX", stored and math.max(ttl, call("PTTL", KEYS[1])) or ttl)
  if wakes then
    if wakeAt ~= "unchanged" then
      call("ZADD", KEYS[2], wakeAt, ARGV[6])
    end
    keep(KEYS[2], ttl)
  elseif woke then
    call("ZREM", KEYS[2], ARGV[6])
  end
end
local added = {}
for i = 1, claims do
  local key, does, what, ttl = KEYS[at + i], ARGV[i * 6 + 3], ARGV[i * 6 + 4], ARGV[i * 6 + 8]
  if does == "sum" and changes[i] ~= 0 then
    local parts, oldest = sums[key], 1
    call("HINCRBY", key, ARGV[i * 6 + 6], string.format("%.0f", changes[i]))
    if #parts > 2 * mostParts then
      for part = 3, #parts, 2 do
        if tonumber(parts[part], 36) < tonumber(parts[oldest], 36) then
          oldest = part
        end
      end
      call("HDEL", key, parts[oldest])
    end
    keep(key, ttl)
  elseif does == "in" and added[key] ~= what then
    local size, most = sizes[key], longest[key] + room
    added[key] = what
    call("ZADD", key, changes[i], what)
    if not size or size >= most then
      call("ZREMRANGEBYRANK", key, 0, -most - 1)
    end
    keep(key, ttl, size == 0)
  end
end
for i = 1, claims do
  if changes[i] == true then
    call("ZREM", KEYS[at + i], ARGV[i * 6 + 4])
  end
end
return "+" .. answer
