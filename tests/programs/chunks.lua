-- Text that is compiled while the program runs: load, loadstring, dofile, require.
local compile = loadstring or load --> 1
local total = 0 --> 1
for i = 1, 5 do --> 6
  local chunk = compile("local n = ...\nreturn n * " .. i .. "\n") --> 5
  total = total + chunk(i) --> 5
end
print(total) --> 1

local same = compile("local sum = 0\nfor i = 1, 10 do\n  sum = sum + i\nend\nreturn sum\n", "=named") --> 1
for _ = 1, 3 do --> 4
  total = total + same() --> 3
end
print(total) --> 1

local pieces = { "return ", "1 ", "+ 1" } --> 1
local at = 0 --> 1
local loaded = load(function() --> 2; 4 calls
  at = at + 1 --> 4
  return pieces[at] --> 4
end) --> 1
print(loaded()) --> 1
print(compile("not Lua")) --> 1

local folder = arg[0]:match("^(.*/)") or "" --> 1
for _ = 1, 3 do --> 4
  total = total + dofile(folder .. "included/doubled.lua") --> 3
end
package.path = folder .. "included/?.lua;" .. package.path --> 1
local module = require("doubled") --> 1
print(module, require("doubled"), total) --> 1
