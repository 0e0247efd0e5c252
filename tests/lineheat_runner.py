"""Runs Lineheat as a person does, in folders of its own, and reads what comes out.

    lineheat = Lineheat(folder)
    profile = lineheat.record(runtime, "trace", "fib.lua", ["12"])
    profile.hits("/…/fib.lua") == {3: 1, 4: 1, ...}

Programs carry what they must cost in their margins:

    x = x + 1 --> 100                  hit 100 times; a line without a mark is not hit
    local function f() --> 1; 5 calls  ... and the functions that begin on this line are called 5 times
    end --> 3 luajit:4 5.1:2           ... and other runtimes count otherwise (see the program's head)
    compared = compared + 1 --> compared   as often as the program prints it: "compared 93"
"""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lineheat.analysis.builder import view_of
from lineheat.analysis.view import View
from lineheat.cli import main as lineheat_main
from lineheat.heatfile import read
from lineheat.targets.agent import agent_library
from lineheat.targets.lua import plain_command
from lineheat.targets.runtime import Family, Runtime, find_runtimes

PROGRAMS = Path(__file__).with_name("programs")
REFERENCE_COUNTER = Path(__file__).with_name("reference_counter.lua")
RUNTIMES = find_runtimes()
LONGEST_RUN_S = 60

Hits = dict[int, int]
"""By line; only lines that were hit."""

# ---- Programs and their margins ---------------------------------------------------------------

_MARGIN = re.compile(r"--> (?P<mark>.*)")
_HEAD = re.compile(r"^-- (runtimes|arguments|status|reference): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Program:
    """A Lua program of tests/programs, and what its text says about itself."""

    path: Path
    text: str
    head: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def arguments(self) -> list[str]:
        return self.head.get("arguments", "").split()

    @property
    def exit_status(self) -> int:
        return int(self.head.get("status", "0"))

    def runs_on(self, runtime: Runtime) -> bool:
        families = self.head.get("runtimes")
        return families is None or runtime.family.value in families.split()


def program(path: Path) -> Program:
    text = path.read_bytes().decode()
    return Program(path, text, {key: value.strip() for key, value in _HEAD.findall(text)})


def one_of_each_family() -> list[Runtime]:
    """Installed ones before embedded ones."""
    found: dict[Family, Runtime] = {}
    for runtime in RUNTIMES:
        found.setdefault(runtime.family, runtime)
    return list(found.values())


def programs() -> list[Program]:
    return [program(path) for path in sorted(PROGRAMS.glob("*.lua"))]


@dataclass(frozen=True)
class Margin:
    """What the marks of one file promise on one runtime."""

    hits: Hits
    calls: Hits  # by the line on which functions begin


def margin_of(text: str, family: Family, output: str) -> Margin:
    hits: Hits = {}
    calls: Hits = {}
    for number, line in enumerate(text.splitlines(), 1):
        mark = _MARGIN.search(line)
        for part in mark["mark"].split(";") if mark else ():
            counts = calls if "call" in part else hits
            count = _promised(part.split(), family, output)
            if count:
                counts[number] = count
    return Margin(hits, calls)


def _promised(words: Sequence[str], family: Family, output: str) -> int:
    """The count for this family, else the one for all; a word stands for a count in the output."""
    wanted: str | None = None
    for word in words:
        names, colon, count = word.rpartition(":")
        if (colon and family.value in names.split(",")) or (not colon and wanted is None):
            wanted = count
    assert wanted is not None, words
    if wanted.isdigit():
        return int(wanted)
    printed = re.search(rf"^{re.escape(wanted)} (\d+)$", output, re.MULTILINE)
    assert printed, f"the program did not print '{wanted} N'"
    return int(printed[1])


# ---- What a run leaves -------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a person sees of a run."""

    stdout: str
    stderr: str
    status: int

    def masked(self) -> "Outcome":
        """With addresses made equal: they differ from run to run."""
        return Outcome(_mask(self.stdout), _mask(self.stderr), self.status)


def _mask(text: str) -> str:
    """A hook needs 20 slots of the stack, any hook: what counts its own depth gets a little less deep."""
    return re.sub(
        r"^((?:depth|levels)\w*) \d+$", r"\1 …", re.sub(r"0x[0-9a-f]+", "0x…", text), flags=re.MULTILINE
    )


@dataclass(frozen=True)
class Profile:
    """One recording, as 'show --json' tells it."""

    path: Path
    outcome: Outcome
    report: dict[str, Any]

    @property
    def session(self) -> dict[str, Any]:
        session: dict[str, Any] = self.report["session"]
        return session

    @property
    def lines(self) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = self.report["lines"]
        return lines

    @property
    def functions(self) -> list[dict[str, Any]]:
        functions: list[dict[str, Any]] = self.report["functions"]
        return functions

    def hits(self, file: Path) -> Hits:
        return _sums(self.lines, "hits", file)

    def calls(self, file: Path) -> Hits:
        """By first line; the main chunk's are not among them."""
        return _sums([f for f in self.functions if f["name"] != "main chunk"], "calls", file)

    def all_hits(self) -> dict[str, Hits]:
        """By file, or chunk."""
        places = {line["file"] or line["chunk"] for line in self.lines}
        by_place = {place: Counter[int]() for place in places}
        for line in self.lines:
            by_place[line["file"] or line["chunk"]][line["line"]] += line["hits"]
        return {
            place: hit for place, hits in by_place.items() if (hit := {k: n for k, n in hits.items() if n})
        }

    def function(self, name: str) -> dict[str, Any]:
        """The only one of this name."""
        (found,) = [function for function in self.functions if function["name"] == name]
        return found

    def view(self) -> View:
        return view_of(read(self.path))


def _sums(rows: Sequence[Mapping[str, Any]], field: str, file: Path) -> Hits:
    sums = Counter[int]()
    for row in rows:
        if row["file"] == str(file) and row[field]:
            sums[row["line"]] += row[field]
    return dict(sums)


# ---- Running -----------------------------------------------------------------------------------


@dataclass
class Lineheat:
    """Lineheat with state and memory folders of its own, so that no test sees a person's sessions."""

    folder: Path
    extra_environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state.mkdir(mode=0o700, exist_ok=True)
        self.memory.mkdir(mode=0o700, exist_ok=True)

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def memory(self) -> Path:
        return self.folder / "memory"

    @property
    def environment(self) -> dict[str, str]:
        ours = {"XDG_STATE_HOME": str(self.state), "XDG_RUNTIME_DIR": str(self.memory)}
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LUA_", "PYTHON"))}
        return kept | ours | self.extra_environment

    def __call__(self, *arguments: str | Path, **options: Any) -> Outcome:
        """One call of the command line, to its end."""
        return outcome_of([*self.command, *map(str, arguments)], env=self.environment, **options)

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "lineheat"]

    def start(self, *arguments: str | Path, **options: Any) -> "subprocess.Popen[bytes]":
        """The same, without waiting."""
        return subprocess.Popen([*self.command, *map(str, arguments)], env=self.environment, **options)

    def record(
        self,
        runtime: Runtime,
        mode: str,
        script: str | Path,
        arguments: Sequence[str] = (),
        cwd: Path | None = None,
        **options: Any,
    ) -> Profile:
        path = self.folder / f"{runtime.name.replace(':', '-')}.{mode}.heat"
        run = ("run", "--runtime", runtime.name, "--mode", mode, "--report", "none", "-o", path, "--", script)
        outcome = self(*run, *arguments, cwd=cwd or self.folder, **options)
        assert path.exists(), outcome.stderr
        return self.profile(path, outcome)

    def profile(self, path: Path, outcome: Outcome) -> Profile:
        return Profile(path, outcome, self.show(path))

    def show(self, path: Path | str) -> dict[str, Any]:
        """'lineheat show --json', in this process: it is read hundreds of times."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), _environment(self.environment):
            assert lineheat_main(["show", "--json", str(path)]) == 0
        report: dict[str, Any] = json.loads(printed.getvalue())
        return report

    def sessions(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = json.loads(self("sessions", "--json").stdout)["sessions"]
        return listed


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Any:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def outcome_of(command: Sequence[str], stdin: str = "", **options: Any) -> Outcome:
    run = subprocess.run(
        command, input=stdin.encode(), capture_output=True, timeout=LONGEST_RUN_S, check=False, **options
    )
    return Outcome(
        run.stdout.decode("utf-8", "replace"), run.stderr.decode("utf-8", "replace"), run.returncode
    )


def run_plain(runtime: Runtime, script: str | Path, arguments: Sequence[str] = (), **options: Any) -> Outcome:
    """The script alone, as the interpreter runs it."""
    command = plain_command(runtime, agent_library(), str(script), arguments)
    return outcome_of(command.arguments, executable=command.program, **options)


def reference_hits(runtime: Runtime, script: Program, folder: Path) -> dict[str, Hits]:
    """By source, as Lua names it; what the runtime's own line hook counts."""
    out = folder / "reference"
    outcome = run_plain(runtime, REFERENCE_COUNTER, [str(out), script.name, *script.arguments], cwd=PROGRAMS)
    assert out.exists(), outcome.stderr
    hits: dict[str, Hits] = {}
    for row in out.read_bytes().decode("utf-8", "surrogateescape").split("\n")[:-1]:
        line, count, source = row.split(" ", 2)
        hits.setdefault(source, {})[int(line)] = int(count)
    return hits


def wait_until(condition: Callable[[], object], what: str, seconds: float = 20) -> None:
    """For what another process does; looks every 10 ms."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)
