-- As deep as the runtime allows, caught, and then on as before.  LuaJIT calls the hook for the call
-- that finds no room, too.
-- reference: none, a hook in Lua needs stack of its own
local depth = 0 --> 1
local function sink() --> depth luajit:depth_and_one calls
  depth = depth + 1 --> depth
  return 1 + sink() --> depth
end --> 1
print(select("#", pcall(sink))) --> 1
print("depth " .. depth) --> 1
print("depth_and_one " .. depth + 1) --> 1

local levels = 0 --> 1
local function through_pcall() --> levels luajit:levels_and_one calls
  levels = levels + 1 --> levels
  return (pcall(through_pcall)) --> levels
end --> 1
through_pcall() --> 1
print("levels " .. levels) --> 1
print("levels_and_one " .. levels + 1) --> 1
local after = 0 --> 1
for _ = 1, 5 do --> 6
  after = after + 1 --> 5
end
print(after) --> 1
