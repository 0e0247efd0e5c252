-- Varargs: functions whose frames move, with selects and tail calls.
local function count(...) --> 12 calls
  return select("#", ...) --> 12
end --> 1
local function sum(...) --> 11 calls
  local total = 0 --> 11
  for i = 1, select("#", ...) do --> 66
    total = total + (select(i, ...)) --> 55
  end
  return total --> 11
end --> 1
local function pass(...) --> 10 calls
  return sum(...) --> 10
end --> 1
local function named(first, ...) --> 6 calls
  local rest = { ... } --> 6
  if first == 0 then --> 6
    return #rest --> 1
  end
  return named(first - 1, first, ...) --> 5
end --> 1
for n = 1, 10 do --> 11
  local values = {} --> 10
  for i = 1, n do --> 65
    values[i] = i --> 55
  end
  local unpack = table.unpack or unpack --> 10
  assert(count(unpack(values)) == n) --> 10
  assert(pass(unpack(values)) == n * (n + 1) / 2) --> 10
end
print(named(5), count(), count(nil, nil), sum()) --> 1
local function closing(...) --> 1 call
  local kept = ... --> 1
  return function(...) --> 1 call
    return kept, ... --> 1
  end --> 1
end --> 1
print(closing("a", "b")("c")) --> 1
print((select("#", ...))) --> 1
