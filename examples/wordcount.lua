-- Counts words the way a first draft does: correct, and slower than it looks.
-- Run:  lineheat run --mode trace examples/wordcount.lua [how many lines of text]
local LINES = tonumber(arg and arg[1]) or 2000
local WORDS = { "heat", "line", "lua", "hot", "cold", "trace", "sample", "stack", "frame", "zone" }

-- A little generator of our own, so that every run has the same text.
local seed = 42
local function random(n)
  seed = (seed * 16807) % 2147483647
  return seed % n + 1
end

local function make_text(lines)
  local text = {}
  for i = 1, lines do
    local words = {}
    for j = 1, 8 do
      words[j] = WORDS[random(#WORDS)]
    end
    text[i] = table.concat(words, " ")
  end
  return text
end

local function find(list, word)
  for i = 1, #list do
    if list[i].word == word then
      return list[i]
    end
  end
end

local function count(text)
  local list = {}
  for _, line in ipairs(text) do
    for word in line:gmatch("%a+") do
      local entry = find(list, word)
      if not entry then
        entry = { word = word, times = 0 }
        list[#list + 1] = entry
      end
      entry.times = entry.times + 1
    end
  end
  return list
end

local function report(list)
  table.sort(list, function(a, b)
    return a.times > b.times or (a.times == b.times and a.word < b.word)
  end)
  for _, entry in ipairs(list) do
    print(string.format("%6d %s", entry.times, entry.word))
  end
end

report(count(make_text(LINES)))
