-- An operating system's scheduler in small: tasks with priorities send packets to each other.
-- After the benchmark by Martin Richards, written anew.
-- arguments: 40
local size = tonumber(arg and arg[1]) or 1000 --> 1

local Packet = {} --> 1
Packet.__index = Packet --> 1

function Packet.new(link, to, kind) --> 1; 8 calls
  return setmetatable({ link = link, to = to, kind = kind, datum = 0, bytes = { 0, 0, 0, 0 } }, Packet) --> 8
end --> 1

-- Behind the last one of the queue that begins with 'queue'.
function Packet:append_to(queue) --> 1; 121 calls
  self.link = nil --> 121
  if queue == nil then --> 121
    return self --> 111
  end
  local last = queue --> 10
  while last.link do --> 12
    last = last.link --> 2
  end
  last.link = self --> 10
  return queue --> 10
end --> 1

local Scheduler = {} --> 1
Scheduler.__index = Scheduler --> 1

function Scheduler.new() --> 1; 1 call
  return setmetatable({ tasks = {}, first = nil, current = nil, queued = 0, held = 0 }, Scheduler) --> 1
end --> 1

local Task = {} --> 1
Task.__index = Task --> 1

function Scheduler:add(id, priority, queue, run, state) --> 1; 6 calls
  local task = setmetatable({ --> 12
    id = id, priority = priority, queue = queue, run = run, state = state, --> 6
    next = self.first, holds = false, waits = queue == nil, scheduler = self, --> 6
  }, Task) --> 6
  self.tasks[id] = task --> 6
  self.first = task --> 6
  return task --> 6
end --> 1

function Task:is_ready() --> 1; 455 calls
  if self.holds then --> 455
    return false --> 24
  end
  return self.queue ~= nil or not self.waits --> 431
end --> 1

function Task:take() --> 1; 230 calls
  local packet = self.queue --> 230
  if packet then --> 230
    self.queue = packet.link --> 86
  end
  self.waits = false --> 230
  return packet --> 230
end --> 1

function Task:wait() --> 1; 79 calls
  self.waits = true --> 79
  return self --> 79
end --> 1

function Task:hold() --> 1; 34 calls
  self.scheduler.held = self.scheduler.held + 1 --> 34
  self.holds = true --> 34
  return self.next --> 34
end --> 1

function Task:send(packet) --> 1; 78 calls
  local scheduler = self.scheduler --> 78
  local receiver = scheduler.tasks[packet.to] --> 78
  scheduler.queued = scheduler.queued + 1 --> 78
  packet.to = self.id --> 78
  receiver.queue = packet:append_to(receiver.queue) --> 78
  if receiver.priority > self.priority then --> 78
    return receiver --> 43
  end
  return self --> 35
end --> 1

function Scheduler:release(id) --> 1; 39 calls
  local task = self.tasks[id] --> 39
  task.holds = false --> 39
  return task.priority > self.current.priority and task or self.current --> 39
end --> 1

function Scheduler:schedule() --> 1; 1 call
  local task = self.first --> 1
  while task do --> 456
    if task:is_ready() then --> 455
      self.current = task --> 230
      task = task.run(task, task:take()) --> 230
    else
      task = task.next --> 225
    end --> 225
  end
end --> 2

local IDLE, WORKER, HANDLER_A, HANDLER_B, DEVICE_A, DEVICE_B = 1, 2, 3, 4, 5, 6 --> 1
local DEVICE_PACKET, WORK_PACKET = 1, 2 --> 1

local function run_idle(task) --> 40 calls
  local state = task.state --> 40
  state.left = state.left - 1 --> 40
  if state.left == 0 then --> 40
    return task:hold() --> 1
  end
  local odd = state.seed % 2 --> 39
  state.seed = (state.seed - odd) / 2 --> 39
  if odd == 0 then --> 39
    return task.scheduler:release(DEVICE_A) --> 23
  end
  state.seed = (state.seed + 53256) % 65536 --> 16
  return task.scheduler:release(DEVICE_B) --> 16
end --> 1

local function run_worker(task, packet) --> 19 calls
  local state = task.state --> 19
  if not packet then --> 19
    return task:wait() --> 9
  end
  state.to = state.to == HANDLER_A and HANDLER_B or HANDLER_A --> 10
  packet.to = state.to --> 10
  packet.datum = 0 --> 10
  for i = 1, 4 do --> 50
    state.letter = state.letter % 26 + 1 --> 40
    packet.bytes[i] = state.letter --> 40
  end
  return task:send(packet) --> 10
end --> 1

local function run_handler(task, packet) --> 84 calls
  local state = task.state --> 84
  if packet then --> 84
    if packet.kind == WORK_PACKET then --> 43
      state.work = packet:append_to(state.work) --> 10
    else
      state.device = packet:append_to(state.device) --> 33
    end
  end
  local work = state.work --> 84
  if work then --> 84
    local count = work.datum + 1 --> 71
    if count > 4 then --> 71
      state.work = work.link --> 8
      return task:send(work) --> 8
    end
    local free = state.device --> 63
    if free then --> 63
      state.device = free.link --> 33
      free.datum = work.bytes[count] --> 33
      work.datum = count --> 33
      return task:send(free) --> 33
    end
  end
  return task:wait() --> 43
end --> 1

local function run_device(task, packet) --> 87 calls
  local state = task.state --> 87
  if packet then --> 87
    state.packet = packet --> 33
    return task:hold() --> 33
  end
  local pending = state.packet --> 54
  if pending then --> 54
    state.packet = nil --> 27
    return task:send(pending) --> 27
  end
  return task:wait() --> 27
end --> 1

local function queue_of(count, to, kind) --> 3 calls
  local queue --> 3 5.1:0
  for _ = 1, count do --> 11
    queue = Packet.new(queue, to, kind) --> 8
  end
  return queue --> 3
end --> 1

local scheduler = Scheduler.new() --> 1
local idle = scheduler:add(IDLE, 0, nil, run_idle, { seed = 1, left = size }) --> 1
idle.waits = false --> 1
scheduler:add(WORKER, 1000, queue_of(2, WORKER, WORK_PACKET), run_worker, { to = HANDLER_A, letter = 0 }) --> 1
scheduler:add(HANDLER_A, 2000, queue_of(3, DEVICE_A, DEVICE_PACKET), run_handler, {}) --> 1
scheduler:add(HANDLER_B, 3000, queue_of(3, DEVICE_B, DEVICE_PACKET), run_handler, {}) --> 1
scheduler:add(DEVICE_A, 4000, nil, run_device, {}) --> 1
scheduler:add(DEVICE_B, 5000, nil, run_device, {}) --> 1
scheduler:schedule() --> 1
print(scheduler.queued, scheduler.held) --> 1
