-- Profiles itself by the example src/examples/bindings/strobe.lua, and leaves a profile in the directory of the first argument.
local strobe = require("strobe")

local function work()
  local sum, finish = 0, os.clock() + 0.5
  while os.clock() < finish do
    for number = 1, 100000 do sum = sum + math.sin(number) end
  end
  assert(sum ~= 1)
end

local succeeded, reason = pcall(strobe.profile, "lua main", {nonsense = 1}, work)
assert(not succeeded and reason:find('"nonsense=1" is not an option', 1, true), reason)
strobe.profile("lua main", {["exporter.directory"] = arg[1], ["sampling.max_overhead"] = 1}, function()
  local has_worked, why = pcall(strobe.label, "shard", 7, function() error("of the body", 0) end)
  assert(not has_worked and why == "of the body", why)
  strobe.label("step", "main", function() strobe.zone("sums", work) end)
end)
