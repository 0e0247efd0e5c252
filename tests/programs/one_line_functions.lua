-- Several functions on one line.
local function a(n) return n + 1 end local function b(n) return a(n) * 2 end local function c(n) return b(n) - a(n) end --> 41; 40 calls
local sum = 0 --> 1
for i = 1, 10 do sum = sum + c(i) end --> 11 5.4,5.5,luajit:10
print(sum) --> 1
local list = { function() return 1 end, function(x) return x end, function(...) return select("#", ...) end } --> 4; 3 calls
for _, f in ipairs(list) do sum = sum + f(5) end --> 4
print(sum, (function() return (function() return "inner" end)() end)()) --> 3; 2 calls
