-- Names outside ASCII: of the file, in strings, as keys; the source is UTF-8 without a mark.
local sizes = { ["größe"] = 3, ["näher"] = 4, ["日本"] = 5 } --> 1
local function lookup(name) --> 3 calls
  return sizes[name] --> 3
end --> 1
local sum = 0 --> 1
for _, name in ipairs({ "größe", "näher", "日本" }) do --> 4
  sum = sum + lookup(name) --> 3
end --> 0 5.4,5.5:1
print(sum, "größe näher 日本") --> 1
