-- Methods: classes by metatables, one level of inheritance.
-- arguments: 200
local size = tonumber(arg and arg[1]) or 20000 --> 1

local Shape = {} --> 1
Shape.__index = Shape --> 1
function Shape.new(width) --> 1; 10 calls
  return setmetatable({ width = width, moves = 0 }, Shape) --> 10
end --> 1
function Shape:move(by) --> 1; 200 calls
  self.width = self.width + by --> 200
  self.moves = self.moves + 1 --> 200
end --> 201
function Shape:area() --> 1; 100 calls
  return self.width --> 100
end --> 1

local Square = setmetatable({}, { __index = Shape }) --> 1
Square.__index = Square --> 1
function Square.new(width) --> 1; 5 calls
  local self = Shape.new(width) --> 5
  return setmetatable(self, Square) --> 5
end --> 1
function Square:move(by) --> 1; 100 calls
  Shape.move(self, by * 2) --> 100
end --> 101
function Square:area() --> 1; 100 calls
  return self.width * self.width --> 100
end --> 1

local shapes = {} --> 1
for i = 1, 10 do --> 11
  shapes[i] = i % 2 == 0 and Square.new(i) or Shape.new(i) --> 10
end
local sum = 0 --> 1
for i = 1, size do --> 201
  local shape = shapes[i % 10 + 1] --> 200
  shape:move(1) --> 200
  sum = sum + shape:area() --> 200
end
print(sum) --> 1
