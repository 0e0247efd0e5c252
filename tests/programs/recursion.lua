-- Recursion, direct and mutual, and a function that calls itself from two of its lines.
local is_odd --> 1 5.1:0
local function is_even(n) --> 21 calls
  if n == 0 then --> 21
    return true --> 1
  end
  local odd = is_odd(n - 1) --> 20
  return odd --> 20
end --> 1
function is_odd(n) --> 1 5.1:0; 21 calls
  if n == 0 then --> 21
    return false --> 1
  end
  local even = is_even(n - 1) --> 20
  return even --> 20
end --> 1 luajit:0
print(is_even(20), is_odd(20)) --> 1

local function ackermann(m, n) --> 44 calls
  if m == 0 then --> 44
    return n + 1 --> 20
  end
  if n == 0 then --> 24
    return (ackermann(m - 1, 1)) --> 5
  end
  local inner = ackermann(m, n - 1) --> 19
  local outer = ackermann(m - 1, inner) --> 19
  return outer --> 19
end --> 1
print(ackermann(2, 3)) --> 1

local function depth_of(tree) --> 7 calls
  local deepest = 0 --> 7
  for _, child in ipairs(tree) do --> 13
    deepest = math.max(deepest, depth_of(child)) --> 6
  end --> 0 5.4,5.5:7
  return deepest + 1 --> 7
end --> 1
print(depth_of({ {}, { {}, { {} } }, {} })) --> 1

local function deep(n) --> 3001 calls
  if n > 0 then --> 3001
    return 1 + deep(n - 1) --> 3000
  end
  return 0 --> 1
end --> 1
print(deep(3000)) --> 1
