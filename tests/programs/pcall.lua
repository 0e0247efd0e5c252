-- Errors that are caught, at several depths; the functions go by other names.
local try, try_with, throw = pcall, xpcall, error --> 1

local function fail(message) --> 32 calls
  throw(message, 0) --> 32
end --> 1

local function outer(message) --> 10 calls
  local ok, caught = try(fail, message) --> 10
  if not ok then --> 10
    fail(caught .. "!") --> 10
  end
end --> 1

for i = 1, 10 do --> 11
  local ok, message = try(outer, "e" .. i) --> 10
  assert(not ok) --> 10
  if i == 10 then --> 10
    print(message) --> 1
  end
end

local function handler(message) --> 5 calls
  local _, inner = try(fail, "in the handler") --> 5
  return message .. " " .. inner --> 5
end --> 1

for _ = 1, 5 do --> 6
  local ok, message = try_with(function() --> 10; 5 calls
    local function nested() --> 5 calls
      fail("nested") --> 5
    end --> 5
    nested() --> 5
  end, handler) --> 5
  assert(not ok and message == "nested in the handler") --> 5
end

print(try(try, try, fail, "thrice")) --> 1
print(try(throw)) --> 1
print(select("#", try(function(...) return ... end, 1, nil, nil))) --> 2; 1 call

local function unwinds(n) --> 21 calls
  if n == 0 then --> 21
    fail("bottom") --> 1
  end
  unwinds(n - 1) --> 20
  print("never")
end --> 1
print(try(unwinds, 20)) --> 1
local after = 0 --> 1
for _ = 1, 3 do --> 4
  after = after + 1 --> 3
end
print(after) --> 1
