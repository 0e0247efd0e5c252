-- Lines: a loop of arithmetic without calls.
-- arguments: 300
local size = tonumber(arg and arg[1]) or 100000 --> 1
local row = {} --> 1
for k = 0, 65 do --> 67
  row[k] = k / 64 --> 66
end
local x, y, speed_x, speed_y = 1, 0, 0, 1 --> 1
local near, far = 0, 0 --> 1
for step = 1, size do --> 301
  local square = x * x + y * y --> 300
  local pull = 0.001 / (square * square ^ 0.5) --> 300
  speed_x = speed_x - pull * x --> 300
  speed_y = speed_y - pull * y --> 300
  x = x + 0.001 * speed_x --> 300
  y = y + 0.001 * speed_y --> 300
  local k = step % 64 + 1 --> 300
  row[k] = 0.3 * (row[k - 1] + row[k + 1]) + 0.4 * row[k] --> 300
  if step % 3 == 0 then --> 300
    near = near + 1 --> 100
  else
    far = far + 1 --> 200
  end
end
print(string.format("%.6f %.6f %.6f %d %d", x, y, row[7], near, far)) --> 1
