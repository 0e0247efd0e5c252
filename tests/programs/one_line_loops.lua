-- Loops on one line: each turn comes back by a backward jump.
local n = 0 --> 1
for i = 1, 50 do n = n + i end --> 51 5.4,5.5,luajit:50
while n > 1000 do n = n - 10 end --> 29
repeat n = n - 1 until n < 900 --> 96
for _, v in ipairs({ 1, 2, 3 }) do n = n + v end --> 4
for key in pairs({ x = 1 }) do n = n + #key end --> 2
local function double(x) return x * 2 end --> 61; 60 calls
for i = 1, 20 do n = n + double(i) end --> 21 5.4,5.5,luajit:20
for i = 1, 20 do n = n + double(i) --> 21 5.4,5.5,luajit:20
end
for i = 1, 20 do --> 21
  n = n + double(i) end --> 20
while n > 0 do --> 23
  n = n - 100 end --> 22
for i = 1, 5 do for j = 1, 4 do n = n + 1 end end --> 26 5.4,5.5,luajit:20
local function one() return 1 end --> 8; 7 calls
for _ = 1, 7 do n = one() .. tostring(1) end --> 8 5.4,5.5,luajit:7
print(n) --> 1
