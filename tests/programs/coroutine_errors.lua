-- Errors inside coroutines, caught by resume, by pcall around a wrapped call, and inside.
local function fail(n) --> 6 calls
  coroutine.yield(n) --> 6
  error("failed " .. n, 0) --> 6
end --> 1
for i = 1, 6 do --> 7
  local thread = coroutine.create(fail) --> 6
  assert(coroutine.resume(thread, i)) --> 6
  local ok, message = coroutine.resume(thread) --> 6
  if i == 6 then --> 6
    print(ok, message, coroutine.status(thread), coroutine.resume(thread)) --> 1
  end
end

local wrapped = coroutine.wrap(function() --> 2; 1 call
  local ok, message = pcall(error, "inside", 0) --> 1
  coroutine.yield(tostring(ok) .. message) --> 1
  error("outside", 0) --> 1
end) --> 1
print(wrapped()) --> 1
print(pcall(wrapped)) --> 1
print((pcall(wrapped))) --> 1

local function nested(depth) --> 6 calls
  if depth == 0 then --> 6
    error("deep", 0) --> 1
  end
  local ok, message = coroutine.resume(coroutine.create(nested), depth - 1) --> 5
  if not ok then --> 5
    error(message .. depth, 0) --> 5
  end
end --> 1
print(coroutine.resume(coroutine.create(nested), 5)) --> 1
local after = 0 --> 1
for _ = 1, 4 do --> 5
  after = after + 1 --> 4
end
print(after) --> 1
