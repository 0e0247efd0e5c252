-- Functions that are made again and again at run time, and replaced.
local function maker(step) --> 10 calls
  local count = 0 --> 10
  return function() --> 20 calls
    count = count + step --> 20
    return count --> 20
  end --> 10
end --> 1
local sum = 0 --> 1
for i = 1, 10 do --> 11
  local counter = maker(i) --> 10
  counter() --> 10
  sum = sum + counter() --> 10
end
print(sum) --> 1

function greet() --> 1; 1 call
  return "first" --> 1
end --> 1
local first = greet --> 1
function greet() --> 1; 2 calls
  return "second" --> 2
end --> 1
print(first(), greet(), greet()) --> 1

local object = {} --> 1
for i = 1, 4 do --> 5
  object.method = function(self) --> 8 calls
    self.calls = (self.calls or 0) + i --> 8
    return self --> 8
  end --> 4
  object:method():method() --> 4
end
print(object.calls) --> 1
