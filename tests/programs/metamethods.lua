-- Metamethods: functions that operators call.
local log = 0 --> 1
local class = {} --> 1
class.__index = function(self, key) --> 41 calls
  log = log + 1 --> 41
  return rawget(self, "_" .. key) --> 41
end --> 1
class.__newindex = function(self, key, value) --> 2 calls
  rawset(self, "_" .. key, value) --> 2
end --> 3
class.__call = function(_, a, b) --> 5 calls
  return a + b --> 5
end --> 1
class.__add = function(a, b) --> 5 calls
  return a.n + b.n --> 5
end --> 1
class.__concat = function(a) --> 5 calls
  return tostring(a) .. "&" --> 5
end --> 1
class.__eq = function() --> 5 calls
  return true --> 5
end --> 1
class.__lt = function(a, b) --> 5 calls
  return a.n < b.n --> 5
end --> 1
class.__le = function(a, b) --> 5 calls
  return a.n <= b.n --> 5
end --> 1
class.__unm = function(a) --> 5 calls
  return -a.n --> 5
end --> 1
class.__tostring = function(self) --> 6 calls
  return "object " .. self.n --> 6
end --> 1
local function new(n) --> 2 calls
  local object = setmetatable({}, class) --> 2
  object.n = n --> 2
  return object --> 2
end --> 1
local a, b = new(1), new(2) --> 1
for _ = 1, 5 do --> 6
  local sum = a + b --> 5
  local same = a == b --> 5
  local less, not_more = a < b, a <= b --> 5
  assert(sum == 3 and same and less and not_more) --> 5
  assert(-a == -1) --> 5
  assert(a .. b == "object 1&") --> 5
  assert(a(3, 4) == 7) --> 5
end
print(tostring(a), log) --> 1
local chain = setmetatable({}, { __index = setmetatable({}, { __index = function(_, key) return key end }) }) --> 3; 2 calls
print(chain.x, chain.y) --> 1
