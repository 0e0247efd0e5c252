-- Lines that end in CR LF.
local sum = 0 --> 1
for i = 1, 10 do --> 11
  if i % 2 == 0 then --> 10
    sum = sum + i --> 5
  else
    sum = sum - 1 --> 5
  end
end
local text = [[
two
lines]] --> 1
print(sum, #text) --> 1
