"""What can be recorded with a runtime: tried, not guessed."""

import os
from dataclasses import dataclass
from pathlib import Path

from lineheat.targets.lua import lua_string, plain_command
from lineheat.targets.probe import NoAnswer, answer_of
from lineheat.targets.runtime import Runtime

AGENT_MODES = ("sample", "trace", "coverage")

# Called without a configuration the agent arms nothing and says so; if it
# returns nothing at all, it found no Lua to talk to.
_TRY_AGENT = """\
local arm, why = package.loadlib({library}, "lineheat_arm")
if not arm then print("it cannot load C libraries: " .. why)
elseif select("#", pcall(arm)) == 1 then print("it does not export Lua's C API to C libraries")
else print("ok") end
"""


@dataclass(frozen=True, slots=True)
class Capabilities:
    modes: tuple[str, ...]  # for `lineheat run --mode`; none if the agent cannot be loaded
    obstacle: str | None  # one line: why there are none


def capabilities(runtime: Runtime, agent: Path) -> Capabilities:
    """Starts the runtime and loads the agent into it."""
    command = plain_command(runtime, agent, "-", ())
    question = _TRY_AGENT.format(library=lua_string(os.fspath(agent)))
    try:
        lines = answer_of(command.program, command.arguments, question).splitlines()
    except NoAnswer as problem:
        return Capabilities((), f"it {problem}")
    if lines and lines[-1] == "ok":
        return Capabilities(AGENT_MODES, None)
    return Capabilities((), lines[-1] if lines else "it ends at once, without a word")
