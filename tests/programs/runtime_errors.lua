-- Errors that the runtime raises by itself.
local function index_nil(t) --> 4 calls
  local x = t.field --> 4
  return x.field --> 4
end --> 1
local function call_nil() --> 4 calls
  local f --> 4 5.1:0
  f() --> 4
end --> 1
local function add_table() --> 4 calls
  return {} + 1 --> 4
end --> 1
local function compare() --> 4 calls
  return {} < 1 --> 4
end --> 1
local function concatenate(t) --> 4 calls
  return "x"
    .. t --> 4
end --> 1
local function bad_argument() --> 4 calls
  return string.rep() --> 4
end --> 1
local failing = { index_nil, call_nil, add_table, compare, concatenate, bad_argument } --> 1
local count = 0 --> 1
for round = 1, 4 do --> 5
  for _, f in ipairs(failing) do --> 28
    local ok = pcall(f, {}) --> 24
    if not ok then --> 24
      count = count + 1 --> 24
    end
  end --> 0 5.4,5.5:4
end
print(count) --> 1
local proxy = setmetatable({}, { --> 2
  __index = function(_, key) --> 1 call
    local nothing --> 1 5.1:0
    return nothing[key] --> 1
  end, --> 1
})
print((pcall(function() --> 2; 1 call
  return proxy.key --> 1
end))) --> 2
