local function doubled(n) --> 16 calls
  return n * 2 --> 16
end --> 4
local sum = 0 --> 4
for i = 1, 4 do --> 20
  sum = sum + doubled(i) --> 16
end
return sum --> 4
