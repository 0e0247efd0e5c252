"""The sampler against programs whose shares are known."""

from pathlib import Path

import pytest

from lineheat.targets.runtime import Family, Runtime
from lineheat_runner import PROGRAMS, RUNTIMES, Lineheat, run_plain

each_runtime = pytest.mark.parametrize("runtime", RUNTIMES, ids=lambda runtime: runtime.name)

# Three quarters of the work are done in one coroutine.  Both run the same compiled code.
TWO_COROUTINES = """
local function spin(n)
  local sum = 0
  for i = 1, n do
    sum = sum + i % 7
  end
  return sum
end
local function worker(n)
  while true do
    spin(n)
    coroutine.yield()
  end
end
local function heavy(n) worker(n) end
local function light(n) worker(n) end
local a, b = coroutine.wrap(heavy), coroutine.create(light)
for _ = 1, arg[1] do
  a(30000)
  coroutine.resume(b, 10000)
end
"""


@each_runtime
def test_a_coroutine_has_its_share(lineheat: Lineheat, tmp_path: Path, runtime: Runtime) -> None:
    """Whoever resumed it; LuaJIT's tail calls hide heavy and light, so the line that calls tells."""
    (tmp_path / "two.lua").write_text(TWO_COROUTINES)
    turns = "60000" if runtime.family is Family.LUAJIT else "8000"
    profile = lineheat.record(runtime, "sample", "two.lua", [turns], cwd=tmp_path)
    totals = {f["name"]: f["total_samples"] for f in profile.functions if f["line"] in (15, 16)}
    assert len(totals) == 2, profile.functions
    smaller, greater = sorted(totals.values())
    assert greater / (smaller + greater) == pytest.approx(0.75, abs=0.06)


@each_runtime
def test_samples_add_up(lineheat: Lineheat, runtime: Runtime) -> None:
    profile = lineheat.record(runtime, "sample", "richards.lua", cwd=PROGRAMS)
    samples = profile.session["samples"]
    assert sum(profile.report["states"].values()) == samples
    assert sum(function["self_samples"] for function in profile.functions) <= samples
    for row in (*profile.lines, *profile.functions):
        assert 0 <= row["self_samples"] <= row["total_samples"] <= samples
        assert row.get("hits") is None


@each_runtime
@pytest.mark.parametrize(
    "name",
    ["coro.lua", "deltablue.lua", "strbuild.lua", "exit.lua", "runtime_errors.lua", "coroutine_errors.lua"],
)
def test_the_program_runs_as_alone(lineheat: Lineheat, runtime: Runtime, name: str) -> None:
    profile = lineheat.record(runtime, "sample", name, cwd=PROGRAMS)
    plain = run_plain(runtime, name, cwd=PROGRAMS)
    assert profile.outcome.masked() == plain.masked()
