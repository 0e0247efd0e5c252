#!/usr/bin/env lua
-- The first line is no Lua, and counts as a line all the same.
local line = debug.getinfo(1, "l").currentline --> 1
for _ = 1, 3 do --> 4
  line = line + 1 --> 3
end
print(line) --> 1
