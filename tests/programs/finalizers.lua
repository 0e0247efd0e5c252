-- Finalizers: no Lua calls hooks while one runs, so its lines are never hit.
local finalized = 0 --> 1
local function finalize()
  finalized = finalized + 1
end --> 1
local function garbage() --> 10 calls
  if newproxy then --> 10
    getmetatable(newproxy(true)).__gc = finalize --> 0 5.1,luajit:10
  else
    setmetatable({}, { __gc = finalize }) --> 10 5.1,luajit:0
  end
end --> 11
for _ = 1, 10 do --> 11
  garbage() --> 10
end
collectgarbage() --> 1
collectgarbage() --> 1
print(finalized) --> 1
