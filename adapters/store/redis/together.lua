-- Runs one script for several calls, each as if alone: one that fails keeps no other from its answer.
-- KEYS     those of every call
-- ARGV     for every call how many keys and how many arguments it has, and these arguments
-- Returns  "=" and a JSON array of what each call returned, or of "~" and why it failed
local keys, args, answers, key, arg = KEYS, ARGV, {}, 0, 0
local function run(KEYS, ARGV)
  -- the script
end
while arg < #args do
  local lastKey, lastArg = key + args[arg + 1], arg + 2 + args[arg + 2]
  local done, answer = pcall(run, { unpack(keys, key + 1, lastKey) }, { unpack(args, arg + 3, lastArg) })
  local fault = not done and (type(answer) == "table" and answer.err or tostring(answer))
  -- A replica refuses them all, and clients that are to look for the primary then must see that.
  if fault and string.find(fault, "READONLY", 1, true) then
    error(answer, 0)
  end
  answers[#answers + 1] = fault and "~" .. fault or answer
  key, arg = lastKey, lastArg
end
return "=" .. cjson.encode(answers)
