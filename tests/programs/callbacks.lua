-- C functions that call Lua: sort, gsub, and what a program counts itself.
local compared = 0 --> 1
local function descending(a, b) --> compared calls
  compared = compared + 1 --> compared
  return a > b --> compared
end --> 1
local list = {} --> 1
for i = 1, 30 do --> 31
  list[i] = i * 7 % 31 --> 30
end
table.sort(list, descending) --> 1
print(list[1], list[30]) --> 1
print("compared " .. compared) --> 1

local function shout(word) --> 3 calls
  return word:upper() .. "!" --> 3
end --> 1
print((("one two three"):gsub("%a+", shout))) --> 1
print((("a=1,b=2"):gsub("(%w)=(%w)", function(key, value) --> 2; 2 calls
  return value .. key --> 2
end))) --> 1

local function outer(text) --> 4 calls
  return (text:gsub(".", function(letter) --> 8; 11 calls
    return (letter:gsub(".", string.byte)) --> 11
  end)) --> 8
end --> 1
for _ = 1, 3 do --> 4
  outer("xyz") --> 3
end
print(outer("ab")) --> 1
