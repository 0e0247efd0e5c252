-- Counts hits as the runtime's own line hook reports them, in plain Lua: what the tracer is held to on PUC Lua.
--
--     lua reference_counter.lua OUT SCRIPT [ARG...]
--
-- A hook belongs to one coroutine there, so each new one sets it for itself.  OUT gets a row for each line:
-- "LINE HITS SOURCE", where line ends in the source are written as \n.
local out, script = arg[1], arg[2]
local getinfo, sethook, open = debug.getinfo, debug.sethook, io.open
local create, wrap, exit = coroutine.create, coroutine.wrap, os.exit
local here = getinfo(1, "S").source
local hits = {}

local function hook(_, line)
  local source = getinfo(2, "S").source
  if source ~= here then
    local lines = hits[source] or {}
    hits[source] = lines
    lines[line] = (lines[line] or 0) + 1
  end
end

local function hooked(f)
  return function(...)
    sethook(hook, "l")
    return f(...)
  end
end

function coroutine.create(f) return create(hooked(f)) end
function coroutine.wrap(f) return wrap(hooked(f)) end

local function write()
  sethook()
  local file = assert(open(out, "w"))
  for source, lines in pairs(hits) do
    for line, count in pairs(lines) do
      file:write(line, " ", count, " ", (source:gsub("\n", "\\n")), "\n")
    end
  end
  file:close()
end

function os.exit(...)
  write()
  exit(...)
end

local arguments = {}
for i = 3, #arg do
  arguments[i - 2] = arg[i]
end
arg = arguments
arg[0] = script
local main = assert(loadfile(script))
sethook(hook, "l")
local ok, message = pcall(main, (table.unpack or unpack)(arguments))
write()
if not ok then
  io.stderr:write(tostring(message), "\n")
  exit(1)
end
