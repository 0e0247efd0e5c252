-- Coroutines: as iterators, by resume, by wrap, nested, and some that never finish.
local yield, wrap = coroutine.yield, coroutine.wrap --> 1

local function numbers(n) --> 1 call
  local iterator = wrap(function() --> 2; 1 call
    for i = 1, n do --> 21
      yield(i) --> 20
    end
  end) --> 2
  return iterator --> 1
end --> 1
local sum = 0 --> 1
for i in numbers(20) do --> 21
  sum = sum + i --> 20
end --> 0 5.4,5.5:1
print(sum) --> 1

local function walk(tree) --> 9 calls
  if tree then --> 9
    walk(tree.left) --> 4
    yield(tree.value) --> 4
    walk(tree.right) --> 4
  end
end --> 10
local tree = { value = 2, left = { value = 1 }, right = { value = 4, left = { value = 3 } } } --> 1
local values = {} --> 1
for value in wrap(function() walk(tree) end) do --> 6; 1 call
  values[#values + 1] = value --> 4
end --> 0 5.4,5.5:1
print(table.concat(values, " ")) --> 1

local function inner(a) --> 1 call
  local b = yield(a + 1) --> 1
  local c = yield(b + 1) --> 1
  return c + 1 --> 1
end --> 1
local function outer(a) --> 1 call
  local thread = coroutine.create(inner) --> 1
  local _, value = coroutine.resume(thread, a) --> 1
  while coroutine.status(thread) ~= "dead" do --> 3
    local more = yield(value) --> 2
    _, value = coroutine.resume(thread, more) --> 2
  end
  return value --> 1
end --> 1
local thread = coroutine.create(outer) --> 1
local value = 0 --> 1
for _ = 1, 3 do --> 4
  local _ --> 3
  _, value = coroutine.resume(thread, value) --> 3
end
print(value, coroutine.status(thread)) --> 1

local unfinished = {} --> 1
for i = 1, 30 do --> 31
  unfinished[i] = wrap(function(first) --> 60; 30 calls
    local n = first --> 30
    while true do --> 0 luajit:60
      n = n + 1 --> 60
      yield(n) --> 60
    end
  end) --> 60
  unfinished[i](i) --> 30
end
local last = 0 --> 1
for _, resume in ipairs(unfinished) do --> 31
  last = last + resume() --> 30
end --> 0 5.4,5.5:1
print(last) --> 1
