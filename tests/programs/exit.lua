-- os.exit inside a function: all that was counted is kept.
-- status: 7
local exit = os.exit --> 1
local function work(n) --> 1 call
  local sum = 0 --> 1
  for i = 1, n do --> 101
    sum = sum + i --> 100
  end
  return sum --> 1
end --> 1
local function leave(sum) --> 1 call
  io.write("leaving ", sum, "\n") --> 1
  exit(7) --> 1
  print("never")
end --> 1
leave(work(100)) --> 1
print("never")
