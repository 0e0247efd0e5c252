-- A handler of xpcall that fails itself: the runtime gives up on it in its own way.
-- reference: none, a hook in Lua needs stack of its own
local fails = 0 --> 1
local function failing_handler() --> fails calls
  fails = fails + 1 --> fails
  error("handler") --> fails
end --> 1
local function body() --> 8 calls
  error("body") --> 8
end --> 1
local ok = xpcall(body, failing_handler) --> 1
print(ok, fails >= 1) --> 1
print("fails " .. fails) --> 1

local function careful_handler(message) --> 3 calls
  local nested = xpcall(body, function() --> 6; 3 luajit:0 calls
    return "inner" --> 3 luajit:0
  end) --> 3
  return tostring(nested) .. type(message) --> 3
end --> 1
for _ = 1, 3 do --> 4
  print(xpcall(body, careful_handler)) --> 3
end
print((pcall(body))) --> 1
