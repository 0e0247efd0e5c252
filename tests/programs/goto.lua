-- Jumps: backward ones are hits, also into the line that they come from.
-- runtimes: 5.2 5.3 5.4 5.5 luajit
local n = 0 --> 1
::again::
n = n + 1 --> 5
if n < 5 then --> 5
  goto again --> 4 5.2,5.3:0
end
for i = 1, 6 do --> 7
  if i % 2 == 0 then --> 6
    goto continue --> 3 5.2,5.3:0
  end
  n = n + i --> 3
  ::continue::
end
local turns = 0 --> 1
do
  ::top:: turns = turns + 1; if turns < 10 then goto top end --> 10
end
for i = 1, 3 do --> 2
  for j = 1, 3 do --> 6
    if i * j == 4 then --> 5
      goto done --> 1 5.2,5.3:0
    end
    turns = turns + 1 --> 4
  end
end
::done::
print(n, turns) --> 1
