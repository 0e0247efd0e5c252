-- A yield across pcall, xpcall, metamethods and iterators.
-- runtimes: 5.2 5.3 5.4 5.5 luajit
local yield = coroutine.yield --> 1
local function careful(n) --> 3 calls
  local ok, message = pcall(function() --> 6; 3 calls
    local more = yield(n) --> 3
    if more == 2 then --> 3
      error("two", 0) --> 1
    end
    return more --> 2
  end) --> 3
  local again = yield(tostring(ok) .. message) --> 3
  return again --> 3
end --> 1
for i = 1, 3 do --> 4
  local thread = coroutine.create(careful) --> 3
  coroutine.resume(thread, i) --> 3
  local _, said = coroutine.resume(thread, i) --> 3
  print(said, coroutine.resume(thread, "end")) --> 3
end

local adder = setmetatable({}, { --> 2
  __add = function(_, n) --> 1 call
    local more = yield(n) --> 1
    return more + n --> 1
  end, --> 1
})
local thread = coroutine.wrap(function() --> 2; 1 call
  local sum = adder + 1 --> 1
  return sum --> 1
end) --> 1
print(thread(), thread(5)) --> 1

local handled = coroutine.wrap(function() --> 2; 1 call
  return xpcall(function() --> 2 luajit:1; 1 call
    yield("before") --> 1
    error("after", 0) --> 1
  end, function(message) --> 1; 1 call
    return message .. " handled" --> 1
  end) --> 2 luajit:1
end) --> 1
print(handled()) --> 1
print(handled()) --> 1
