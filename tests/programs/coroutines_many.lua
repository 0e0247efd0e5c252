-- Thousands of coroutines: short ones that end, and ones that all live at once.
-- arguments: 3000
local size = tonumber(arg and arg[1]) or 10000 --> 1
local function once(n) --> 6000 calls
  local more = coroutine.yield(n) --> 6000
  return more --> 6000
end --> 1
local sum = 0 --> 1
for i = 1, size do --> 3001
  local thread = coroutine.create(once) --> 3000
  local _, value = coroutine.resume(thread, i) --> 3000
  sum = sum + value --> 3000
  coroutine.resume(thread, i) --> 3000
end
print(sum) --> 1

local alive = {} --> 1
for i = 1, size do --> 3001
  alive[i] = coroutine.wrap(once) --> 3000
  alive[i](i) --> 3000
end
for i = size, 1, -1 do --> 3001
  sum = sum + alive[i](i) --> 3000
end
print(sum) --> 1
