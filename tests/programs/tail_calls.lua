-- Tail calls: a frame that is replaced, by itself, by another function, by a C function.
local function countdown(n) --> 1001 calls
  if n == 0 then --> 1001
    return "down" --> 1
  end
  return countdown(n - 1) --> 1000
end --> 1
print(countdown(1000)) --> 1

local pong --> 1
local function ping(n) --> 1001 calls
  if n == 0 then --> 1001
    return "ping" --> 1
  end
  return pong(n - 1) --> 1000
end --> 1
function pong(n) --> 1 5.1:0; 1000 calls
  if n == 0 then --> 1000
    return "pong" --> 1
  end
  return ping(n - 1) --> 999
end --> 1 luajit:0
print(ping(1000)) --> 1
print(ping(999)) --> 1

local function to_native(n) --> 10 calls
  return math.max(n, 3) --> 10
end --> 1
local function to_method(object, n) --> 10 calls
  return object:twice(n) --> 10
end --> 1
local object = {} --> 1
function object:twice(n) --> 1; 10 calls
  self.calls = (self.calls or 0) + 1 --> 10
  return to_native(n * 2) --> 10
end --> 1
local sum = 0 --> 1
for i = 1, 10 do --> 11
  sum = sum + to_method(object, i) --> 10
end
print(sum, object.calls) --> 1

local function varied(n, ...) --> 41 calls
  if n == 0 then --> 41
    return select("#", ...) --> 1
  end
  return varied(n - 1, n, ...) --> 40
end --> 1
print(varied(40)) --> 1

local function fails_at_the_end(n) --> 51 calls
  if n == 0 then --> 51
    error("end", 0) --> 1
  end
  return fails_at_the_end(n - 1) --> 50
end --> 1
print(pcall(fails_at_the_end, 50)) --> 1
