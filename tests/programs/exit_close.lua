-- os.exit that closes the state first, from within a coroutine.
-- runtimes: 5.2 5.3 5.4 5.5 luajit
-- status: 3
local thread = coroutine.wrap(function(n) --> 2; 1 call
  for _ = 1, n do --> 6
    n = n + 1 --> 5
  end
  print(n) --> 1
  os.exit(3, true) --> 1
end) --> 1
thread(5) --> 1
print("never")
