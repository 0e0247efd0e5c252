"""One run and what it costs: programs, hooks and runtimes as values, and a function for each cost.

    variant      hooked                                   it is the floor under
    plain        nothing
    empty line   a C hook that does nothing: lines        hits only
    empty hooks  … calls, returns and lines               trace
    trace        our tracer, with call tree and times
    hits only    our tracer, coverage mode

LuaJIT runs with the JIT off, the plain run too: hooks turn it off in effect, and a compiled
plain run would be another program.

CPU time is that of the whole process.  Instructions are counted by callgrind at two sizes of a
program and subtracted: what starting and arming cost (5 to 8 million instructions, the same at
both sizes) is removed exactly, and a run of a second is enough for three digits.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from statistics import geometric_mean

from lineheat.targets.agent import agent_library
from lineheat.targets.lua import Command, agent_command, lua_string, plain_command
from lineheat.targets.runtime import Family, Runtime

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS_FOLDER = ROOT / "tests" / "programs"
EMPTY_HOOK_SOURCE = ROOT / "tests" / "agent" / "empty_hook.c"
ABI_HEADER = ROOT / "server" / "agent" / "lua_abi.h"
MEMORY_FOLDER = Path("/dev/shm")  # where heat files lie while they are live


class BenchError(Exception):
    """One line: what cannot be measured, and why."""


# ---- What is run --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    cpu_size: int  # half a second to a second of CPU time under the empty hooks
    small: int  # instructions are counted at these two sizes
    large: int  # some 25 million more under the empty hooks

    @property
    def path(self) -> Path:
        return PROGRAMS_FOLDER / f"{self.name}.lua"


PROGRAMS = (
    Program("fib", cpu_size=32, small=1, large=20),
    Program("floatloop", cpu_size=1_300_000, small=10, large=3_000),
    Program("strbuild", cpu_size=600_000, small=10, large=2_000),
    Program("oop", cpu_size=1_800_000, small=10, large=5_000),
    Program("coro", cpu_size=1_400_000, small=10, large=5_000),
    Program("richards", cpu_size=90_000, small=10, large=500),
    Program("deltablue", cpu_size=12_000, small=10, large=120),
)


class Variant(Enum):
    PLAIN = "plain"
    EMPTY_LINE = "empty line"
    EMPTY_HOOKS = "empty hooks"
    TRACE = "trace"
    HITS = "hits only"


EMPTY_FUNCTIONS = {Variant.EMPTY_LINE: "empty_line_hook", Variant.EMPTY_HOOKS: "empty_hooks"}
AGENT_MODES = {Variant.TRACE: "trace", Variant.HITS: "coverage"}


@dataclass(frozen=True, slots=True)
class Setup:
    """A runtime, and what its runs need."""

    runtime: Runtime
    agent: Path
    empty_hooks: Path  # library, compiled for the runtime's ABI
    heat_file: Path


def set_up(runtime: Runtime, folder: Path) -> Setup:
    return Setup(runtime, agent_library(), empty_hook_library(runtime.family), folder / "bench.heat")


@contextmanager
def heat_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None) as folder:
        yield Path(folder)


def empty_hook_library(family: Family) -> Path:
    """Compiled once for each text of its sources, into the user's cache folder."""
    text = EMPTY_HOOK_SOURCE.read_bytes() + ABI_HEADER.read_bytes()
    name = f"empty-hook-{family.abi}-{hashlib.sha256(text).hexdigest()[:12]}.so"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lineheat"
    library = cache / name
    if not library.exists():
        cache.mkdir(parents=True, exist_ok=True)
        _compile_empty_hook(family, library)
    return library


def _compile_empty_hook(family: Family, library: Path) -> None:
    """Moved into place when it is whole: others may be looking for it."""
    unfinished = library.with_suffix(f".{os.getpid()}")
    options = ("-O2", "-shared", "-fPIC", f"-DLUA_ABI={family.abi}", f"-I{ABI_HEADER.parent}")
    command = (os.environ.get("CC", "cc"), *options, "-o", str(unfinished), str(EMPTY_HOOK_SOURCE))
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BenchError(f"the empty hooks cannot be compiled: {error}") from error
    unfinished.replace(library)


# ---- Command lines ------------------------------------------------------------


def command_of(setup: Setup, variant: Variant, script: str, arguments: Sequence[str]) -> Command:
    command = _hooked_command(setup, variant, script, arguments)
    return _with_options(command, "-joff") if setup.runtime.family is Family.LUAJIT else command


def _hooked_command(setup: Setup, variant: Variant, script: str, arguments: Sequence[str]) -> Command:
    if variant in AGENT_MODES:
        configuration = f"file={setup.heat_file}\nmode={AGENT_MODES[variant]}\nuncontrolled=1\n"
        return agent_command(setup.runtime, setup.agent, configuration, script, arguments)
    plain = plain_command(setup.runtime, setup.agent, script, arguments)
    if variant in EMPTY_FUNCTIONS:
        library, function = lua_string(os.fspath(setup.empty_hooks)), EMPTY_FUNCTIONS[variant]
        return _with_options(plain, "-e", f'assert(package.loadlib({library}, "{function}"))()')
    return plain


def _with_options(command: Command, *options: str) -> Command:
    name, *arguments = command.arguments
    return replace(command, arguments=(name, *options, *arguments))


def _program_command(setup: Setup, variant: Variant, program: Program, size: int) -> Command:
    return command_of(setup, variant, os.fspath(program.path), (str(size),))


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("LUA_INIT")}


def _expect_success(status: int, command: Command, said: str = "") -> None:
    if status != 0:
        last_line = "".join(said.strip().splitlines()[-1:])
        raise BenchError(f"{' '.join(command.arguments)!r} ended with status {status} {last_line}".rstrip())


# ---- What it costs ------------------------------------------------------------

Costs = Mapping[Variant, Sequence[float]]
"""One figure a repeat; the i-th of all variants were taken one right after the other."""


@dataclass(frozen=True, slots=True)
class Comparison:
    name: str
    over: Variant
    under: Variant


TRACE_TO_FLOOR = Comparison("trace ÷ empty hooks", Variant.TRACE, Variant.EMPTY_HOOKS)
HITS_TO_FLOOR = Comparison("hits only ÷ empty line", Variant.HITS, Variant.EMPTY_LINE)


def paired_ratios(costs: Costs, comparison: Comparison) -> list[float]:
    return [a / b for a, b in zip(costs[comparison.over], costs[comparison.under], strict=True)]


def mean_ratios(all_costs: Sequence[Costs], comparison: Comparison) -> list[float]:
    """The geometric mean over programs, for each repeat."""
    return [
        geometric_mean(repeat)
        for repeat in zip(*(paired_ratios(costs, comparison) for costs in all_costs), strict=True)
    ]


def cpu_costs(setup: Setup, program: Program, repeats: int) -> Costs:
    """Seconds.  Variants take turns, so that a slow minute of the machine meets all of them."""
    costs: dict[Variant, list[float]] = {variant: [] for variant in Variant}
    for _ in range(repeats):
        for variant, figures in costs.items():
            figures.append(cpu_seconds(_program_command(setup, variant, program, program.cpu_size)))
    return costs


def cpu_seconds(command: Command) -> float:
    process = subprocess.Popen(
        command.arguments, executable=command.program, stdout=subprocess.DEVNULL, env=_environment()
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    _expect_success(process.returncode, command)
    return usage.ru_utime + usage.ru_stime


def instruction_costs(setup: Setup, program: Program, variants: Sequence[Variant]) -> Costs:
    """Instructions between the program's two sizes; there is no noise, so once is enough."""

    def between_sizes(variant: Variant) -> float:
        small, large = (
            instructions(_program_command(setup, variant, program, size))
            for size in (program.small, program.large)
        )
        return large - small

    return {variant: [between_sizes(variant)] for variant in variants}


_COLLECTED = re.compile(r"Collected : (\d+)")


def instructions(command: Command) -> int:
    valgrind = shutil.which("valgrind")
    if not valgrind:
        raise BenchError("instructions cannot be counted: valgrind is not installed")
    callgrind = (valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null")
    run = subprocess.run(
        (*callgrind, command.program, *command.arguments[1:]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env=_environment(),
    )
    collected = _COLLECTED.search(run.stderr)
    if not collected or run.returncode != 0:
        raise BenchError(f"callgrind ended with status {run.returncode}: {run.stderr.strip()[-500:]}")
    return int(collected[1])


# ---- Memory -------------------------------------------------------------------

EVENTS_A_CALL = 4  # of fib: the call, the return, and two lines

# Counted before the state is closed; what is mapped from the heat file is not anonymous.
_FIB_AND_MEMORY = """\
local function fib(n)
  if n < 2 then return n end
  return fib(n - 1) + fib(n - 2)
end
fib(tonumber(arg[1]))
collectgarbage()
for line in io.lines("/proc/self/smaps_rollup") do
  local anonymous = line:match("^Anonymous:%s*(%d+) kB")
  if anonymous then print(anonymous) end
end
"""


@dataclass(frozen=True, slots=True)
class Memory:
    """What tracing holds at the end of a long run."""

    events: int
    private_bytes: int  # more than the same run without the agent
    heat_file_bytes: int  # as allocated

    @property
    def total_bytes(self) -> int:
        return self.private_bytes + self.heat_file_bytes


def agent_memory(setup: Setup, events: int) -> Memory:
    size, calls = fib_of_calls(events // EVENTS_A_CALL)
    traced = _private_bytes(command_of(setup, Variant.TRACE, "-", (str(size),)))
    plain = _private_bytes(command_of(setup, Variant.PLAIN, "-", ("1",)))
    heat_file_bytes = setup.heat_file.stat().st_blocks * 512
    return Memory(calls * EVENTS_A_CALL, traced - plain, heat_file_bytes)


def fib_of_calls(least: int) -> tuple[int, int]:
    """The first n for which fib(n) calls fib, itself included, so often; and how often."""
    n, calls, calls_of_next = 0, 1, 1
    while calls < least:
        n, calls, calls_of_next = n + 1, calls_of_next, calls + calls_of_next + 1
    return n, calls


def _private_bytes(command: Command) -> int:
    run = subprocess.run(
        command.arguments,
        executable=command.program,
        input=_FIB_AND_MEMORY,
        capture_output=True,
        encoding="utf-8",
        env=_environment(),
    )
    _expect_success(run.returncode, command, run.stderr)
    return int(run.stdout) * 1024
