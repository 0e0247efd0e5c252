-- Chunks with equal lines but different text, loaded and thrown away: memory is reused, counts are not.
local compile = loadstring or load --> 1
local template = [[
local function step(n)
  return n + %d
end
local n = 0
for _ = 1, %d do
  n = step(n)
end
return n
]] --> 1
local sum = 0 --> 1
for round = 1, 3 do --> 4
  for i = 1, 8 do --> 27
    local chunk = compile(string.format(template, i, i)) --> 24
    sum = sum + chunk() --> 24
    chunk = nil --> 24
    collectgarbage() --> 24
  end
end
print(sum) --> 1
