"""Command lines that start a Lua script, with the agent or without.

A real interpreter loads the agent in a chunk of `-e`; an embedded one is run by
the agent itself.  Either way nothing is put into the environment, which the
target's children would inherit.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lineheat.targets.runtime import Runtime

EMBEDDED_HOST = Path(__file__).with_name("embedded_host.py")

# -S besides -I: a virtual environment's .pth files are not ours to run.
_ISOLATED = ("-I", "-S")

_PRINTABLE = range(0x20, 0x7F)

# 'why' is nil if the agent found no Lua to talk to and has said so itself.
_ARM = """\
local arm, why = package.loadlib({library}, "lineheat_arm")
local called, armed
if arm then called, armed, why = pcall(arm, {configuration}) end
if arm and not called then armed, why = nil, armed end
if not armed then
  if why then io.stderr:write("lineheat: ", (tostring(why):gsub("\\n.*", "")), "\\n") end
  os.exit(1)
end
"""


@dataclass(frozen=True, slots=True)
class Command:
    """For subprocess: Popen(command.arguments, executable=command.program)."""

    program: Path
    arguments: tuple[str, ...]  # from argv[0], which Lua puts before its messages


def agent_command(
    runtime: Runtime, agent: Path, configuration: str, script: str, arguments: Sequence[str]
) -> Command:
    """The script with the agent armed; 'configuration' is not empty, and is lineheat_arm's to read."""
    if runtime.embedded:
        return _hosted(runtime, agent, configuration, script, arguments)
    code = _ARM.format(library=lua_string(os.fspath(agent)), configuration=lua_string(configuration))
    return _started(runtime, ("-e", code), script, arguments)


def plain_command(runtime: Runtime, agent: Path, script: str, arguments: Sequence[str]) -> Command:
    """The script alone.  An embedded runtime is still run by the agent's library, which does not arm."""
    if runtime.embedded:
        return _hosted(runtime, agent, "", script, arguments)
    return _started(runtime, (), script, arguments)


def lua_string(text: str) -> str:
    """A literal that every Lua reads as these bytes: printable ASCII, all else as three digits."""
    return '"' + "".join(map(_lua_byte, os.fsencode(text))) + '"'


def _lua_byte(byte: int) -> str:
    plain = byte in _PRINTABLE and byte not in b'"\\'
    return chr(byte) if plain else f"\\{byte:03d}"


def _started(runtime: Runtime, options: tuple[str, ...], script: str, arguments: Sequence[str]) -> Command:
    """`--` only where the script's name looks like an option: it shows in the negative part of `arg`."""
    end_of_options = ("--",) if script.startswith("-") and script != "-" else ()
    return Command(runtime.path, (runtime.command, *options, *end_of_options, script, *arguments))


def _hosted(
    runtime: Runtime, agent: Path, configuration: str, script: str, arguments: Sequence[str]
) -> Command:
    host = (os.fspath(EMBEDDED_HOST), os.fspath(runtime.path), os.fspath(agent))
    python = (sys.executable, *_ISOLATED)
    return Command(Path(sys.executable), (*python, *host, runtime.command, configuration, script, *arguments))
