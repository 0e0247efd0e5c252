"""Start, pause, resume and stop in a running program, on every runtime.

    armed --start--> recording <--pause/resume--> paused --stop--> stopped --start--> the next recording

Each program runs until the file STOP appears beside it, so that no test hangs on time.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lineheat.targets.runtime import Runtime
from lineheat_runner import RUNTIMES, Lineheat, wait_until

MODES = ("sample", "trace")

# A hot loop that a JIT would compile, inside a function that stays open all the time.
LOOP = """
local function spin(n)
  local sum = 0
  for i = 1, n do
    sum = sum + i % 7
  end
  return sum
end
local function main()
  while not io.open("STOP") do
    spin(50000)
  end
end
main()
print("done")
"""

COROUTINES = """
local function spin(n)
  local sum = 0
  for i = 1, n do
    sum = sum + i % 7
  end
  return sum
end
local worker = coroutine.wrap(function()
  while true do
    spin(50000)
    coroutine.yield()
  end
end)
while not io.open("STOP") do
  worker()
end
print("done")
"""

each_runtime = pytest.mark.parametrize("runtime", RUNTIMES, ids=lambda runtime: runtime.name)
each_mode = pytest.mark.parametrize("mode", MODES)


class Target:
    """A program that runs under the profiler, and what is asked of it."""

    def __init__(self, lineheat: Lineheat, folder: Path) -> None:
        self._lineheat = lineheat
        self.profile = folder / "run.heat"
        self._stop_file = folder / "STOP"

    def ask(self, verb: str) -> str:
        """What it says; the state comes first."""
        outcome = self._lineheat(verb, self.profile)
        assert outcome.status == 0, outcome
        return outcome.stdout.partition(":")[0]

    def figures(self, number: int = 1) -> dict[str, object]:
        """Of a recording, live or saved."""
        return self._lineheat.show(self.recording(number))

    def recording(self, number: int) -> Path:
        """Where it is now: as saved, else as live."""
        suffix = "" if number == 1 else f".{number}"
        saved = self.profile.with_name(f"run{suffix}.heat")
        live = next(iter(self._lineheat.memory.rglob("*.heat")), saved)
        stem = live.name.split(".")[0]
        return saved if saved.exists() else live.with_name(f"{stem}{suffix}.heat")

    def end(self) -> None:
        self._stop_file.touch()


@contextmanager
def target(
    lineheat: Lineheat, folder: Path, text: str, runtime: Runtime, mode: str, *options: str
) -> Iterator[Target]:
    (folder / "program.lua").write_text(text)
    running = Target(lineheat, folder)
    arguments = ["--mode", mode, "--runtime", runtime.name, "--report", "none", "-o", str(running.profile)]
    process = lineheat.start(
        "run", *arguments, *options, "program.lua", cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        wait_until(lambda: lineheat.sessions() and lineheat.sessions()[0]["state"] != "gone", "a session")
        yield running
        running.end()
        output, errors = process.communicate(timeout=60)
        assert (output, errors, process.returncode) == (b"done\n", b"", 0)
    finally:
        running.end()
        process.kill()
        process.wait()


def work_of(figures: dict[str, object], mode: str) -> int:
    """How much has been seen of the hot line."""
    field = "self_samples" if mode == "sample" else "hits"
    return sum(line[field] for line in figures["lines"] if line["line"] in (4, 5))  # type: ignore[attr-defined, index]


@each_runtime
@each_mode
def test_every_state(lineheat: Lineheat, tmp_path: Path, runtime: Runtime, mode: str) -> None:
    with target(lineheat, tmp_path, LOOP, runtime, mode) as program:
        wait_until(lambda: work_of(program.figures(), mode) > 0, "work of the first recording")
        assert program.ask("pause") == "paused"
        paused_at = work_of(program.figures(), mode)
        assert program.ask("resume") == "recording"
        wait_until(lambda: work_of(program.figures(), mode) > paused_at, "work after the pause")
        assert program.ask("stop") == "stopped"
        assert program.ask("start") == "recording"
        wait_until(lambda: work_of(program.figures(2), mode) > 0, "work of the second recording")
        assert program.ask("pause") == "paused"
        assert program.ask("stop") == "stopped"
        assert program.ask("start") == "recording"
        wait_until(lambda: work_of(program.figures(3), mode) > 0, "work of the third recording")
    for number in (1, 2, 3):
        figures = program.figures(number)
        assert figures["session"]["state"] == "finished"  # type: ignore[index]
        assert work_of(figures, mode) > 0


@each_runtime
@each_mode
def test_armed_until_started(lineheat: Lineheat, tmp_path: Path, runtime: Runtime, mode: str) -> None:
    """Compiled loops that began while nothing was recorded are seen all the same, and no call is invented."""
    with target(lineheat, tmp_path, LOOP, runtime, mode, "--paused") as program:
        assert program.figures()["session"]["state"] == "armed"  # type: ignore[index]
        assert program.ask("start") == "recording"
        wait_until(lambda: work_of(program.figures(), mode) > 0, "work")
    functions = {f["name"]: f for f in program.figures()["functions"]}  # type: ignore[attr-defined, index]
    if mode == "trace":
        assert functions["main chunk"]["calls"] == 0


@each_runtime
@each_mode
def test_inside_a_coroutine(lineheat: Lineheat, tmp_path: Path, runtime: Runtime, mode: str) -> None:
    with target(lineheat, tmp_path, COROUTINES, runtime, mode, "--paused") as program:
        assert program.ask("start") == "recording"
        wait_until(lambda: work_of(program.figures(), mode) > 0, "work in the coroutine")
        assert program.ask("pause") == "paused"
        before = work_of(program.figures(), mode)
        assert program.ask("resume") == "recording"
        wait_until(lambda: work_of(program.figures(), mode) > before, "work after the pause")


def test_wishes_that_make_no_sense(lineheat: Lineheat, tmp_path: Path) -> None:
    with target(lineheat, tmp_path, LOOP, RUNTIMES[0], "trace") as program:
        wait_until(lambda: work_of(program.figures(), "trace") > 0, "work")
        for verb in ("start", "resume"):
            outcome = lineheat(verb, program.profile)
            assert outcome.status == 1
            assert outcome.stderr.startswith("lineheat: session ")
            assert outcome.stderr.count("\n") == 1
    outcome = lineheat("stop", program.profile)
    assert outcome.status == 1
    assert "has ended" in outcome.stderr
    assert lineheat("pause", "nothing.heat").stderr.startswith("lineheat: there is no session nothing.heat")


def test_terminate(lineheat: Lineheat, tmp_path: Path) -> None:
    (tmp_path / "program.lua").write_text(LOOP)
    process = lineheat.start(
        "run",
        "--runtime",
        RUNTIMES[0].name,
        "--report",
        "none",
        "-o",
        "run.heat",
        "program.lua",
        cwd=tmp_path,
    )
    wait_until(
        lambda: lineheat.sessions() and lineheat.sessions()[0]["state"] == "recording", "a live recording"
    )
    assert lineheat("terminate", tmp_path / "run.heat").status == 0
    assert process.wait(timeout=30) == 128 + 15
    session = lineheat.show(tmp_path / "run.heat")["session"]
    assert (session["state"], session["exit_status"]) == ("died", 143)
