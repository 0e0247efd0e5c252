-- An incremental constraint solver: one-way constraints of different strength between variables.
-- After the DeltaBlue benchmark, written anew and shortened.
-- arguments: 12
local size = tonumber(arg and arg[1]) or 100 --> 1

local REQUIRED, PREFERRED, DEFAULT, WEAKEST = 0, 2, 4, 6 --> 1
local function stronger(a, b) --> 40 calls
  return a < b --> 40
end --> 1
local function weaker(a, b) --> 99 calls
  return a > b --> 99
end --> 1
local function weakest_of(a, b) --> 99 calls
  return weaker(a, b) and a or b --> 99
end --> 1

local Variable = {} --> 1
Variable.__index = Variable --> 1
function Variable.new(name, value) --> 1; 39 calls
  return setmetatable({ name = name, value = value, constraints = {}, mark = 0, --> 78 luajit:39
    walk = WEAKEST, stays = true, by = nil }, Variable) --> 78 5.4,5.5,luajit:39
end --> 1
function Variable:remove(constraint) --> 1; 3 calls
  for i, other in ipairs(self.constraints) do --> 19
    if other == constraint then --> 19
      table.remove(self.constraints, i) --> 3
      break --> 3 5.2,5.3:0
    end
  end --> 0 5.4:3
  if self.by == constraint then --> 3
    self.by = nil --> 3
  end
end --> 4

-- A constraint computes 'output' from 'inputs'; a stay or an edit has none.
local Constraint = {} --> 1
Constraint.__index = Constraint --> 1
local Planner = { mark = 0, executed = 0 } --> 1

function Constraint.new(class, strength, inputs, output) --> 1; 40 calls
  local self = setmetatable({ strength = strength, inputs = inputs, output = output, satisfied = false }, class) --> 40
  for _, variable in ipairs(inputs) do --> 88
    table.insert(variable.constraints, self) --> 48
  end --> 0 5.4,5.5:40
  table.insert(output.constraints, self) --> 40
  Planner:add(self) --> 40
  return self --> 40
end --> 1
function Constraint:is_input() --> 1; 62 calls
  return false --> 62
end --> 1
function Constraint:inputs_known(mark) --> 1; 28 calls
  for _, variable in ipairs(self.inputs) do --> 79
    if not (variable.mark == mark or variable.stays or variable.by == nil) then --> 51
      return false
    end
  end --> 0 5.4,5.5:28
  return true --> 28
end --> 1
function Constraint:choose(mark) --> 1; 42 calls
  local output = self.output --> 42
  self.satisfied = output.mark ~= mark and stronger(self.strength, output.walk) --> 42
end --> 43
function Constraint:recalculate() --> 1; 65 calls
  local output = self.output --> 65
  output.walk = self.strength --> 65
  output.stays = not self:is_input() --> 65
  for _, variable in ipairs(self.inputs) do --> 164
    output.walk = weakest_of(output.walk, variable.walk) --> 99
    output.stays = output.stays and variable.stays --> 99
  end --> 0 5.4,5.5:65
  if output.stays then --> 65
    self:execute() --> 37
  end
end --> 66
function Constraint:execute() end --> 44; 43 calls

local function subclass() --> 4 calls
  local class = setmetatable({}, { __index = Constraint }) --> 4
  class.__index = class --> 4
  return class --> 4
end --> 1

local Edit, Stay, Equal, Scale = subclass(), subclass(), subclass(), subclass() --> 1
function Edit:is_input() --> 1; 3 calls
  return true --> 3
end --> 1
function Equal:execute() --> 1; 132 calls
  self.output.value = self.inputs[1].value --> 132
end --> 133
function Scale:execute() --> 1; 142 calls
  self.output.value = self.inputs[1].value * self.inputs[2].value + self.inputs[3].value --> 142
end --> 143

function Planner:next_mark() --> 1; 43 calls
  self.mark = self.mark + 1 --> 43
  return self.mark --> 43
end --> 1

function Planner:satisfy(constraint, mark) --> 1; 42 calls
  constraint:choose(mark) --> 42
  if not constraint.satisfied then --> 42
    assert(constraint.strength ~= REQUIRED, "a required constraint cannot be satisfied") --> 2
    return nil --> 2
  end
  for _, variable in ipairs(constraint.inputs) do --> 88
    variable.mark = mark --> 48
  end --> 0 5.4,5.5:40
  local overridden = constraint.output.by --> 40
  if overridden then --> 40
    overridden.satisfied = false --> 2
  end
  constraint.output.by = constraint --> 40
  self:propagate(constraint, mark) --> 40
  constraint.output.mark = mark --> 40
  return overridden --> 40
end --> 1

function Planner:add(constraint) --> 1; 40 calls
  local mark = self:next_mark() --> 40
  local overridden = self:satisfy(constraint, mark) --> 40
  while overridden do --> 42
    overridden = self:satisfy(overridden, mark) --> 2
  end
end --> 41

function Planner:consumers(variable, into) --> 1; 93 calls
  for _, constraint in ipairs(variable.constraints) do --> 240
    if constraint ~= variable.by and constraint.satisfied then --> 147
      into[#into + 1] = constraint --> 50
    end
  end --> 0 5.4,5.5:93
end --> 94

function Planner:propagate(constraint, mark) --> 1; 40 calls
  local todo = { constraint } --> 40
  while #todo > 0 do --> 105
    local nearest = table.remove(todo) --> 65
    if nearest.output.mark ~= mark then --> 65
      nearest:recalculate() --> 65
      self:consumers(nearest.output, todo) --> 65
    end --> 65
  end
end --> 41

function Planner:plan(sources) --> 1; 3 calls
  local mark, plan, todo = self:next_mark(), {}, sources --> 3
  while #todo > 0 do --> 31
    local constraint = table.remove(todo) --> 28
    if constraint.output.mark ~= mark and constraint:inputs_known(mark) then --> 28
      plan[#plan + 1] = constraint --> 28
      constraint.output.mark = mark --> 28
      self:consumers(constraint.output, todo) --> 28
    end --> 28
  end
  return plan --> 3
end --> 1

function Planner:change(variable, value) --> 1; 3 calls
  local edit = Constraint.new(Edit, PREFERRED, {}, variable) --> 3
  local plan = self:plan({ edit }) --> 3
  for _ = 1, 10 do --> 33
    variable.value = value --> 30
    for _, constraint in ipairs(plan) do --> 310
      constraint:execute() --> 280
      self.executed = self.executed + 1 --> 280
    end --> 0 5.4,5.5:30
  end
  variable:remove(edit) --> 3
  variable.walk, variable.stays = WEAKEST, true --> 3
end --> 4

local function chain(n) --> 1 call
  local first = Variable.new("v0", 0) --> 1
  local last = first --> 1
  Constraint.new(Stay, DEFAULT, {}, first) --> 1
  for i = 1, n do --> 13
    local variable = Variable.new("v" .. i, 0) --> 12
    Constraint.new(Equal, REQUIRED, { last }, variable) --> 12
    last = variable --> 12
  end
  Planner:change(first, 7) --> 1
  return last.value --> 1
end --> 1

local function projection(n) --> 1 call
  local scale, offset = Variable.new("scale", 10), Variable.new("offset", 1000) --> 1
  local sum, source, target = 0, nil, nil --> 1
  for i = 1, n do --> 13
    source, target = Variable.new("source", i), Variable.new("target", i) --> 12
    Constraint.new(Stay, DEFAULT, {}, source) --> 12
    Constraint.new(Scale, REQUIRED, { source, scale, offset }, target) --> 12
    sum = sum + target.value --> 12
  end
  Planner:change(source, 17) --> 1
  Planner:change(scale, 5) --> 1
  return sum + target.value --> 1
end --> 1

print(chain(size), projection(size), Planner.executed) --> 1
