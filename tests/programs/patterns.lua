-- String patterns, in iterators and conditions.
local text = ("key=value; other=thing; "):rep(5) --> 1
local pairs_found, letters = 0, 0 --> 1
for key, value in text:gmatch("(%w+)=(%w+)") do --> 11
  pairs_found = pairs_found + 1 --> 10
  letters = letters + #key + #value --> 10
end --> 0 5.4,5.5:1
for word in text:gmatch("%a+") do --> 21
  if word:find("^o") then --> 20
    letters = letters + 100 --> 5
  elseif word:match("e$") then --> 15
    letters = letters + 1000 --> 5
  end
end --> 0 5.4,5.5:1
print(pairs_found, letters) --> 1
print(("x"):rep(3, ","), ("%5.1f|%-5s|"):format(2.25, "ab")) --> 1
