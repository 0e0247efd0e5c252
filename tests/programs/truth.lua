-- Four kinds of work.  With a second argument: their true shares of the time, on stderr.
-- arguments: 2
local size = tonumber(arg and arg[1]) or 300 --> 1
local clock = os.clock --> 1
local function integers(n) --> 2 calls
  local sum = 0 --> 2
  for i = 1, n do --> 802
    sum = sum + i % 7 --> 800
  end
  return sum --> 2
end --> 1
local function floats(n) --> 2 calls
  local sum = 0 --> 2
  for i = 1, n do --> 402
    sum = sum + i * 0.5 --> 400
    sum = sum - i / 4 --> 400
  end
  return sum --> 2
end --> 1
local function tables(n) --> 2 calls
  local all = {} --> 2
  for i = 1, n do --> 82
    all[i] = { i } --> 80
  end
  return #all --> 2
end --> 1
local function strings(n) --> 2 calls
  local sum = 0 --> 2
  for _ = 1, n do --> 14
    sum = sum + #string.rep("ab", 2000) --> 12
  end
  return sum --> 2
end --> 1
local work = { --> 1
  { name = "integers", run = integers, n = 400 }, --> 1
  { name = "floats", run = floats, n = 200 }, --> 1
  { name = "tables", run = tables, n = 40 }, --> 1
  { name = "strings", run = strings, n = 6 }, --> 1
} --> 1 luajit:0
local sum, whole = 0, 0 --> 1
for _ = 1, size do --> 3
  for _, kind in ipairs(work) do --> 10
    local before = clock() --> 8
    sum = sum + kind.run(kind.n) --> 8
    kind.seconds = (kind.seconds or 0) + clock() - before --> 8
  end --> 0 5.4,5.5:2
end
print(sum) --> 1
if arg and arg[2] then --> 1
  for _, kind in ipairs(work) do
    whole = whole + kind.seconds
  end
  for _, kind in ipairs(work) do
    io.stderr:write(string.format("%s %.1f%%\n", kind.name, 100 * kind.seconds / whole))
  end
end --> 1
