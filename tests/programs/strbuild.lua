-- Strings: concatenation and C functions.
-- arguments: 250
local size = tonumber(arg and arg[1]) or 20000 --> 1
local pieces, length = {}, 0 --> 1
for i = 1, size do --> 251
  local piece = "row " .. i .. "=" --> 250
  piece = piece .. string.rep("-", i % 5) --> 250
  piece = piece:upper() --> 250
  local at = piece:find("=", 1, true) --> 250
  if at then --> 250
    length = length + #piece:sub(at) --> 250
  end
  pieces[#pieces + 1] = piece --> 250
  if #pieces == 100 then --> 250
    length = length + #table.concat(pieces, ";") --> 2
    pieces = {} --> 2
  end
end
print(length) --> 1
