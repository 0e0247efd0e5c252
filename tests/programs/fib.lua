-- Calls: recursion that does nothing else.
-- arguments: 12
local size = tonumber(arg and arg[1]) or 24 --> 1
local function fib(n) --> 465 calls
  if n < 2 then --> 465
    return n --> 233
  end
  return fib(n - 1) + fib(n - 2) --> 232
end --> 1
print(fib(size)) --> 1
