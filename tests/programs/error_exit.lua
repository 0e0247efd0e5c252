-- An error that nobody catches.
-- status: 1
local function check(n) --> 4 calls
  if n > 3 then --> 4
    error("too many: " .. n) --> 1
  end
  return n --> 3
end --> 1
local sum = 0 --> 1
for i = 1, 10 do --> 4
  sum = sum + check(i) --> 4
end
print("never")
