-- Coroutines: two that are resumed in turn, one by resume and one by a wrapped call.
-- arguments: 150
local size = tonumber(arg and arg[1]) or 20000 --> 1
local function count(limit) --> 2 calls
  for i = 1, limit do --> 302
    coroutine.yield(i) --> 300
  end
  return 0 --> 2
end --> 1
local thread = coroutine.create(count) --> 1
local wrapped = coroutine.wrap(count) --> 1
local _, first = coroutine.resume(thread, size) --> 1
local second = wrapped(size) --> 1
local sum = first + second --> 1
for _ = 2, size do --> 150
  local _, a = coroutine.resume(thread) --> 149
  local b = wrapped() --> 149
  sum = sum + a + b --> 149
end
print(sum, select("#", coroutine.resume(thread)), wrapped()) --> 1
