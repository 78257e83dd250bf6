-- Makes claims, takes claims back, and writes a record: all or nothing. One MGET reads everything; sorted sets (wake
-- indexes and lists) read as nothing there.
--
-- Record: a text with the prefix "w" if it has to wake, else "s".
-- Part of a sum: a number.
-- List (a window without limits): a sorted set of members by time, plus 0.5 if the newest claim only moved a member.
-- Window with limits: a text. First line: milliseconds to keep it, "/", number of members. Then one line per member,
-- newest first: "+", or "=" if its newest claim only moved it; the time in 13 digits; a space; the member.
-- Ticket: what was done under a token. "a" and a call: that call made its claims; "b": then it gave back; "x": blocked.
--
-- KEYS     "record": its key and the wake index of its shard. "make", "give", "undo", "revoke": the ticket.
--          Then windows, lists and parts, those of one sum oldest first; or, if names are given, their common prefix
-- ARGV[1]  five words, separated by spaces: the action; the token that the stored record must have, or nothing, or the
--          ticket; milliseconds to keep the record or ticket; when the record is due, "unchanged", or nothing; the
--          token whose claims to take back, or nothing. Actions:
--          "record" writes the record; "plain" makes claims; "make" makes claims unless the ticket says so already;
--          "give" makes claims unless the ticket says that it gave back; "undo" takes claims back if the ticket is this
--          one; "revoke" takes back claims that were made, and blocks further ones
-- ARGV[2]  the new record: its tokens, separated by ","; "|"; its end; "|"; data that is not read here
-- ARGV[3]  JSON: claims, asks, claims to take back, names (nothing, or what follows the prefix in each further key), and
--          the indexes, from 0, of the claims whose counts are returned.
--          A place is the index of a key, from 1. Weights, times and milliseconds are texts: Redis gets them as they are.
--          Claim: "sum", the places of its oldest part, its newest part and the part to add to, the weight, the limit or
--          false, the floor or false, milliseconds to keep the part;
--          or "in", "again" (an earlier claim added the member) or "out", the place, the member, the first time that
--          counts, the time of the claim, the limit (list: false), the window's largest limit, milliseconds to keep it
--          Ask: the places of its oldest and its newest part, and whether a part has two places
--          Claim to take back: "sum", the place of its part, what to add to it; or "window" or "list", the place, the
--          member, the time of the claim
-- Returns  "+", those counts separated by ",", then ";" and those of the asks;
--          "!", the index of the first rejected claim, from 0, ",", its count, and, if known, "," and for a window the
--          earliest time after which it would have been granted, for a sum how many parts later;
--          "=" and the stored record, or "-" if there is none: it is not the expected one. "-" also: claims are blocked
local call, number, max, huge, find, match, sub = redis.call, tonumber, math.max, math.huge, string.find, string.match, string.sub
local spare, mostListed, room = "600000", "10000", 16

local claims, asks, revocations, names, wanted = unpack(cjson.decode(ARGV[3]))
local keys, places = KEYS, #KEYS - 1
if #names > 0 then
  local base = keys[#keys]
  for i, name in ipairs(names) do keys[places + i] = base .. name end
end
local held = call("MGET", unpack(keys))
local verb, token, ttl, wakeAt, revoked = match(ARGV[1], "^([^ ]+) ([^ ]*) ([^ ]*) ([^ ]*) ([^ ]*)$")
local stored, landed, back, keep, kept = held[1], false, false, nil, nil
if verb == "record" then
  local tokens, newest, own
  own, keep = match(ARGV[2], "^([^,|]+)[^|]*|([^|]*)")
  if stored then
    tokens, newest, kept = match(stored, "^[sw](([^,|]+)[^|]*)|([^|]*)")
    tokens = "," .. (tokens or "") .. ","
    landed = find(tokens, "," .. own .. ",", 1, true)
    if not landed and newest ~= token then return "=" .. stored end
    back = find(tokens, "," .. revoked .. ",", 1, true)
  elseif token ~= "" then
    return call("EXISTS", keys[1]) == 1 and "=" or "-"
  end
elseif verb == "make" then
  if stored == "x" then return "-" end
  landed = stored
else
  landed = verb == "give" and (stored == "b" or stored == "x")
  back = verb == "undo" and stored == token or verb == "revoke" and stored and stored ~= "x"
end

-- A whole number as text.
local function text(value) return value < 1e14 and value > -1e14 and value or string.format("%.0f", value) end
-- The total of a sum after adding a weight.
local function sum(count, weight, least) return not least and count + weight or max(least, max(least, count) + weight) end
-- Finds the first line of a window that is earlier than a time or has `most` lines before it; also returns that number.
local function skip(lines, time, most)
  local line, count = 1, 0
  while count < most and sub(lines, line + 1, line + 13) >= time do
    line, count = find(lines, "\n", line + 15, true) + 1, count + 1
  end
  return line, count
end
-- Reads a window: how long it is kept, its number of members, their lines without one member's, its time, and "+" or
-- "=".
local function read(window, member)
  local life, members, lines = match(window or "0/0\n", "^(%d+)/(%d+)\n(.*)$")
  local space, stop = find(lines, " " .. member .. "\n", 1, true)
  if not space then return life, members, lines end
  return life, members, sub(lines, 1, space - 15) .. sub(lines, stop + 1), sub(lines, space - 13, space - 1), sub(lines, space - 14, space - 14)
end

-- Pending writes: the life of each window by place; commands that add; and commands that remove, which come last. When
-- memory is full, Redis rejects the first write, and none after it.
local windows, adds, removals = {}, {}, {}
local function write(place, life, members, lines) held[place], windows[place] = life .. "/" .. members .. "\n" .. lines, life end
local function add(place, weight, life)
  adds[#adds + 1] = held[place] and { "INCRBY", keys[place], weight } or { "SET", keys[place], weight, "PX", life }
  held[place] = (held[place] or 0) + weight
end

if back and not landed then
  for _, revocation in ipairs(revocations) do
    local kind, place, what, time = unpack(revocation)
    if kind == "list" then
      if number(call("ZSCORE", keys[place], what)) == number(time) then removals[#removals + 1] = { "ZREM", keys[place], what } end
    elseif kind == "window" then
      local life, members, lines, own, how = read(held[place], what)
      if own == time and how == "+" then write(place, life, members - 1, lines) end
    elseif held[place] and (what + 0 < 0 or sub(stored, 1, 1) ~= "a") then
      add(place, what)
    end
  end
end

local counts = {}
for i, claim in ipairs(claims) do
  local does, place, what, from, time, limit, most, life = unpack(claim)
  local count = 0
  if does == "sum" then
    for i = place, what do count = count + (held[i] or 0) end
    if not landed then
      local total = sum(count, time, most)
      if limit and total > limit and time + 0 >= 0 then
        local left, passed, fits = count, place, false
        repeat
          left = left - (held[passed] or 0)
          fits, passed = sum(left, time, most) <= limit, passed + 1
        until fits or passed > what
        return "!" .. i - 1 .. "," .. text(count) .. (fits and "," .. passed - place or "")
      end
      if total ~= count then add(from, most and text(total - count) or time, life) end
      count = total
    end
  elseif not limit then
    local key = keys[place]
    local own = call("ZSCORE", key, what)
    count, own = call("ZCOUNT", key, from, "+inf"), own and math.floor(own)
    local others = own and own >= from + 0 and count - 1 or count
    if does ~= "out" and not landed then
      local now = max(own or time, time)
      count = now >= from + 0 and others + 1 or others
      adds[#adds + 1] = { "ZADD", key, own and now + 0.5 or now, what, list = key, life = life }
    elseif own == time + 0 and not landed then
      count, removals[#removals + 1] = others, { "ZREM", key, what }
    end
  else
    local kept, members, lines, own, how = read(held[place], what)
    local _, others = skip(lines, from, huge)
    count = own and own >= from and others + 1 or others
    if does ~= "out" and not landed then
      if others >= limit then
        local line = skip(lines, "", limit - 1)
        return "!" .. i - 1 .. "," .. others .. "," .. sub(lines, line + 1, line + 13)
      end
      local now = own and own > time and own or time
      local line = skip(lines, now, huge)
      count = now >= from and others + 1 or others
      lines = sub(lines, 1, line - 1) .. (not own and "+" or does == "again" and how or "=") .. now .. " " .. what .. "\n" .. sub(lines, line)
      members = own and members or members + 1
      if members + 0 > most + room then
        members = most + room / 2
        lines = sub(lines, 1, skip(lines, "", members) - 1)
      end
      write(place, max(kept, life), members, lines)
    elseif own == time and not landed then
      count = others
      write(place, kept, members - 1, lines)
    end
  end
  counts[i] = count
end

local function live(key, life) if call("PTTL", key) < life + 0 then call("PEXPIRE", key, life + spare) end end
if verb == "record" and not landed then
  local woke = stored and sub(stored, 1, 1) == "w"
  local wakes = wakeAt == "unchanged" and woke or wakeAt ~= "unchanged" and wakeAt ~= ""
  local record, name = (wakes and "w" or "s") .. ARGV[2], sub(keys[1], #keys[2] + 1)
  if not stored then
    -- If it is not written, the key holds a value that is not a text.
    if not call("SET", keys[1], record, "PX", ttl, "NX") then return "=" end
  elseif kept == keep then
    call("SET", keys[1], record, "KEEPTTL")
  else
    -- As much later or earlier as the record ends, whatever the caller's clock.
    call("SET", keys[1], record, "PX", max(call("PTTL", keys[1]) + number(keep, 36) - number(kept or keep, 36), spare))
  end
  if wakes then
    if wakeAt ~= "unchanged" then call("ZADD", keys[2], wakeAt, name) end
    live(keys[2], ttl)
  elseif woke then
    call("ZREM", keys[2], name)
  end
elseif verb == "revoke" or (verb == "make" or verb == "give") and not landed then
  call("SET", keys[1], token, "PX", ttl)
end
for place, life in pairs(windows) do call("SET", keys[place], held[place], "PX", life) end
for _, command in ipairs(adds) do
  call(unpack(command))
  if command.list then
    call("ZREMRANGEBYRANK", command.list, 0, -1 - mostListed - room)
    live(command.list, command.life)
  end
end
if verb == "undo" and back then removals[#removals + 1] = { "DEL", keys[1] } end
for _, command in ipairs(removals) do call(unpack(command)) end

local asked = {}
for _, ask in ipairs(asks) do
  local oldest, newest, again = unpack(ask)
  local total, fresh = 0, again and call("MGET", unpack(keys, oldest, newest))
  for i = oldest, newest do total = total + (fresh and fresh[i - oldest + 1] or held[i] or 0) end
  asked[#asked + 1] = text(total)
end
for i, at in ipairs(wanted) do wanted[i] = text(counts[at + 1]) end
return "+" .. table.concat(wanted, ",") .. ";" .. table.concat(asked, ",")
