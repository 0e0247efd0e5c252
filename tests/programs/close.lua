-- To-be-closed variables: closed by the end of a block, a return, an error, a dead coroutine.
-- runtimes: 5.4 5.5
local closed = 0 --> 1
local function resource() --> 13 calls
  return setmetatable({}, { --> 26
    __close = function() --> 13 calls
      closed = closed + 1 --> 13
    end, --> 26
  })
end --> 1
for _ = 1, 3 do --> 4
  local one <close> = resource() --> 3
  local other <close> = resource() --> 3
end
local function by_return() --> 1 call
  local one <close> = resource() --> 1
  return "returned" --> 1
end --> 1
print(by_return()) --> 1
local function by_error() --> 4 calls
  local one <close> = resource() --> 4
  error("failed", 0) --> 4
end --> 1
for _ = 1, 4 do --> 5
  pcall(by_error) --> 4
end
local thread = coroutine.create(function() --> 2; 1 call
  local one <close> = resource() --> 1
  coroutine.yield() --> 1
end) --> 1
coroutine.resume(thread) --> 1
coroutine.close(thread) --> 1
for i in
  function(_, i) --> 3; 4 calls
    i = (i or 0) + 1 --> 4
    return i <= 3 and i or nil --> 4
  end, nil, nil, resource() --> 1
do --> 1
  closed = closed + 10 --> 3
end --> 1
print(closed) --> 1
