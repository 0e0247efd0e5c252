"""The exact tracer counts what ran: every program of tests/programs, on every runtime of this machine.

What a program must cost stands in its margin (see lineheat_runner).  On PUC Lua the
hits are held, besides, to what the runtime's own line hook counts.
"""

import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from lineheat.targets.runtime import Family, Runtime
from lineheat_runner import (
    PROGRAMS,
    RUNTIMES,
    Hits,
    Lineheat,
    Profile,
    Program,
    margin_of,
    one_of_each_family,
    programs,
    reference_hits,
    run_plain,
)

CASES = [
    pytest.param(program, runtime, id=f"{program.path.stem}-{runtime.name}")
    for program in programs()
    for runtime in RUNTIMES
    if program.runs_on(runtime)
]

each_case = pytest.mark.parametrize(("program", "runtime"), CASES)
each_runtime = pytest.mark.parametrize("runtime", RUNTIMES, ids=lambda runtime: runtime.name)
each_mode = pytest.mark.parametrize("mode", ["trace", "coverage"])


# ---- Every program, on every runtime -----------------------------------------------------------


@each_case
def test_trace(lineheat: Lineheat, program: Program, runtime: Runtime) -> None:
    """Hits, calls and sums of a run, and nothing that the program or its user could notice."""
    profile = lineheat.record(runtime, "trace", program.name, program.arguments, cwd=PROGRAMS)
    plain = run_plain(runtime, program.name, program.arguments, cwd=PROGRAMS)
    assert profile.outcome.masked() == plain.masked()
    assert profile.outcome.status == program.exit_status
    check_hits(profile, program, runtime)
    check_calls(profile, program, runtime)
    check_sums(profile)


@pytest.mark.parametrize(
    ("program", "runtime"), [case for case in CASES if case.values[1] in one_of_each_family()]
)
def test_coverage(lineheat: Lineheat, tmp_path: Path, program: Program, runtime: Runtime) -> None:
    """The same hits at less cost, without calls and times.

    On PUC Lua the hits of all files and chunks are what the runtime's own line hook counts.
    """
    profile = lineheat.record(runtime, "coverage", program.name, program.arguments, cwd=PROGRAMS)
    assert profile.outcome.status == program.exit_status
    check_hits(profile, program, runtime)
    if runtime.family is not Family.LUAJIT and "reference" not in program.head:
        assert by_text(profile.all_hits()) == by_text(reference_hits(runtime, program, tmp_path))
    assert all(line["self_ns"] is None and line["total_ns"] is None for line in profile.lines)


def check_hits(profile: Profile, program: Program, runtime: Runtime) -> None:
    files = {program.path, *(Path(line["file"]) for line in profile.lines if line["file"])}
    for file in files:
        margin = margin_of(file.read_bytes().decode(), runtime.family, profile.outcome.stdout)
        assert differences(profile.hits(file), margin.hits) == {}, file.name


def check_calls(profile: Profile, program: Program, runtime: Runtime) -> None:
    margin = margin_of(program.text, runtime.family, profile.outcome.stdout)
    assert differences(profile.calls(program.path), margin.calls) == {}
    assert [
        f["calls"] for f in profile.functions if f["file"] == str(program.path) and f["name"] == "main chunk"
    ] == [1]


def check_sums(profile: Profile) -> None:
    """Self of lines sums to self of functions, within the rounding of each row; nothing exceeds the whole."""
    native = [
        function
        for function in profile.functions
        if function["chunk" if function["file"] is None else "file"] == "[C]"
    ]
    line_self = sum(line["self_ns"] for line in profile.lines) + sum(
        function["self_ns"] for function in native
    )
    function_self = sum(function["self_ns"] for function in profile.functions)
    rows = len(profile.lines) + len(profile.functions)
    assert line_self == pytest.approx(function_self, rel=0, abs=rows)
    whole = profile.view().total_ns
    assert whole is not None
    assert function_self <= whole + rows
    for row in [*profile.lines, *profile.functions]:
        assert 0 <= row["self_ns"] <= row["total_ns"] + 1
        assert row["total_ns"] <= whole + 1


def differences(ours: Hits, theirs: Hits) -> dict[int, tuple[int, int]]:
    """By line: what was counted, and what it should have been."""
    lines = sorted({*ours, *theirs})
    return {
        line: pair
        for line in lines
        if (pair := (ours.get(line, 0), theirs.get(line, 0))) and pair[0] != pair[1]
    }


def by_text(hits: dict[str, Hits]) -> list[list[tuple[int, int]]]:
    """Sources go by different names (paths, hashes), so only their counts are compared."""
    return sorted(sorted(lines.items()) for lines in hits.values())


# ---- Sums --------------------------------------------------------------------------------------


@each_runtime
def test_self_of_all_functions_is_the_total_of_main(lineheat: Lineheat, runtime: Runtime) -> None:
    profile = lineheat.record(runtime, "trace", "fib.lua", ["15"], cwd=PROGRAMS)
    self_ns = sum(function["self_ns"] for function in profile.functions)
    assert profile.function("main chunk")["total_ns"] == pytest.approx(
        self_ns, rel=0, abs=len(profile.functions)
    )


@each_runtime
def test_total_of_main_is_the_whole_run(lineheat: Lineheat, runtime: Runtime) -> None:
    """Nothing runs before it or after it that a report could name."""
    profile = lineheat.record(runtime, "trace", "fib.lua", ["15"], cwd=PROGRAMS)
    main = profile.function("main chunk")
    assert profile.view().total_ns == pytest.approx(main["total_ns"], rel=0, abs=len(profile.functions))


@each_runtime
def test_recursion_counts_once(lineheat: Lineheat, runtime: Runtime) -> None:
    profile = lineheat.record(runtime, "trace", "fib.lua", ["15"], cwd=PROGRAMS)
    fib, main = profile.function("fib"), profile.function("main chunk")
    assert fib["calls"] == 1973
    assert fib["self_ns"] <= fib["total_ns"] <= main["total_ns"]
    lines = {line["line"]: line for line in profile.lines if line["function"] == "fib"}
    assert all(line["total_ns"] <= fib["total_ns"] for line in lines.values())


@each_runtime
def test_calls_of_native_functions(lineheat: Lineheat, tmp_path: Path, runtime: Runtime) -> None:
    (tmp_path / "native.lua").write_text(
        "local rep = string.rep\n"
        "local function twice(text) return rep(text, 2) end\n"
        "for _ = 1, 7 do local _ = twice('x') end\n"
        "for _ = 1, 5 do local _ = type(rep) end\n"
        "print(#rep('x', 3))\n"
    )
    profile = lineheat.record(runtime, "trace", "native.lua")
    assert profile.function("twice")["calls"] == 7
    assert profile.function("type")["calls"] == 5
    assert profile.function("print")["calls"] == 1
    assert profile.function("string.rep")["calls"] == 8


# ---- Chunks ------------------------------------------------------------------------------------


@each_runtime
@each_mode
def test_equal_lines_of_different_texts_stay_apart(lineheat: Lineheat, runtime: Runtime, mode: str) -> None:
    """Eight texts, each compiled three times into memory that the one before it has left."""
    profile = lineheat.record(runtime, mode, "equal_chunks.lua", cwd=PROGRAMS)
    chunks = [hits for place, hits in profile.all_hits().items() if not place.startswith("/")]
    turns = [hits[2] for hits in chunks]
    assert sorted(turns) == [3 * i for i in range(1, 9)]
    assert all(hits[6] == hits[2] and hits[8] == 3 for hits in chunks)


@each_runtime
@each_mode
def test_chunks_are_named_by_their_text(
    lineheat: Lineheat, tmp_path: Path, runtime: Runtime, mode: str
) -> None:
    (tmp_path / "named.lua").write_text(
        "local compile = loadstring or load\n"
        "compile('local one = 1\\nreturn one')()\n"
        "compile('local two = 2\\nreturn two', '=two')()\n"
        "compile('local three = 3\\nreturn three', '@three.lua')()\n"
    )
    profile = lineheat.record(runtime, mode, "named.lua")
    one, two, three = sorted(
        set(profile.all_hits()) - {str(tmp_path / "named.lua")},
        key=lambda place: "one two three".find(re.findall("one|two|three", place)[0]),
    )
    assert one.startswith('[string "local one = 1')
    assert two == "two"
    assert three == str(tmp_path / "three.lua")


# ---- What the program sees ---------------------------------------------------------------------

ARGUMENTS = ["first", "", "--report", "with space", "größe", "-e"]


@each_runtime
def test_arguments_reach_the_program(lineheat: Lineheat, tmp_path: Path, runtime: Runtime) -> None:
    (tmp_path / "echo.lua").write_text(
        "for i = 0, #arg do print(i, arg[i]) end\nprint(select('#', ...), ...)\n", "utf-8"
    )
    profile = lineheat.record(runtime, "trace", "echo.lua", ARGUMENTS)
    plain = run_plain(runtime, "echo.lua", ARGUMENTS, cwd=tmp_path)
    assert profile.outcome == plain
    assert "5\t-e" not in plain.stdout
    assert "5\twith space" not in plain.stdout
    assert "6\t-e" in plain.stdout


@each_runtime
def test_standard_input_reaches_the_program(lineheat: Lineheat, tmp_path: Path, runtime: Runtime) -> None:
    (tmp_path / "read.lua").write_text(
        "local lines = 0\nfor line in io.lines() do\n  lines = lines + 1\nend\nprint(lines)\n"
    )
    profile = lineheat.record(runtime, "trace", "read.lua", stdin="line\n" * 500)
    assert profile.outcome.stdout == "500\n"
    assert profile.hits(tmp_path / "read.lua")[3] == 500


@each_runtime
@each_mode
def test_a_child_of_the_program_is_left_alone(
    lineheat: Lineheat, tmp_path: Path, runtime: Runtime, mode: str
) -> None:
    """It finds nothing of ours in its environment or open files, and its end is not the program's."""
    (tmp_path / "child.lua").write_text(
        "local function ask(command)\n"
        "  local pipe = assert(io.popen(command))\n"
        "  local said = pipe:read('*a')\n"
        "  pipe:close()\n"
        "  return said\n"
        "end\n"
        "io.write(ask('env | sort | grep -v ^_='))\n"
        "io.write(ask('ls /proc/self/fd | wc -l'))\n"
        "os.execute('exit 3')\n"
        "os.execute('kill -9 $$')\n"
        "print('on')\n"
    )
    plain = run_plain(runtime, "child.lua", cwd=tmp_path, env=lineheat.environment)
    if "'popen' not supported" in plain.stderr:
        pytest.skip("this build has no io.popen")
    profile = lineheat.record(runtime, mode, "child.lua")
    assert profile.outcome == plain
    assert profile.hits(tmp_path / "child.lua")[3] == 2


# ---- Ends ---------------------------------------------------------------------------------------


@each_runtime
@each_mode
def test_what_was_counted_survives_sigkill(
    lineheat: Lineheat, tmp_path: Path, runtime: Runtime, mode: str
) -> None:
    (tmp_path / "endless.lua").write_text(
        "local n = 0\n"
        "local function step()\n"
        "  n = n + 1\n"
        "end\n"
        "for _ = 1, 1000 do\n"
        "  step()\n"
        "end\n"
        "io.write('running\\n')\n"
        "io.flush()\n"
        "while n do\n"
        "  n = n + 1\n"
        "end\n"
    )
    runner = lineheat.start(
        *("run", "--runtime", runtime.name, "--mode", mode, "--report", "none", "-o", tmp_path / "x.heat"),
        "endless.lua",
        cwd=tmp_path,
        stdout=subprocess.PIPE,
    )
    assert runner.stdout is not None
    assert runner.stdout.readline() == b"running\n"
    (session,) = lineheat.sessions()
    assert session["state"] == "recording"
    kill(session["pid"])
    assert runner.wait(20) == 137
    runner.stdout.close()
    report = lineheat.show(tmp_path / "x.heat")
    assert report["session"]["state"] == "died"
    assert report["session"]["exit_status"] == 137
    hits = {line["line"]: line["hits"] for line in report["lines"] if line["hits"]}
    assert (hits[3], hits[6], hits[8], hits[9]) == (1000, 1000, 1, 1)
    assert abs(hits[11] - hits[10]) <= 1


def kill(pid: int) -> None:
    subprocess.run(["kill", f"-{signal.SIGKILL.value}", str(pid)], check=True)


# ---- Forks --------------------------------------------------------------------------------------

FORK_MODULE = """
#include <unistd.h>
#include <sys/wait.h>
#include "lua_abi.h"
static int fork_process(lua_State *L) { lua_pushinteger(L, (lua_Integer)fork()); return 1; }
static int wait_for(lua_State *L) { int status; (void)L; wait(&status); return 0; }
int luaopen_forker(lua_State *L);
int luaopen_forker(lua_State *L)
{
  lua_pushcfunction(L, fork_process);
  lua_setglobal(L, "fork");
  lua_pushcfunction(L, wait_for);
  lua_setglobal(L, "wait");
  return 0;
}
"""
FORKS = """\
require("forker")
local n = 0
for _ = 1, 10 do
  n = n + 1 -- before
end
local pid = fork()
if pid == 0 then
  for _ = 1, 20 do
    n = n + 1 -- child
  end
  os.exit(0)
end
for _ = 1, 30 do
  n = n + 1 -- parent
end
wait()
print(n)
"""
BEFORE, CHILD, PARENT = 4, 9, 14


@pytest.fixture(scope="session")
def fork_modules(tmp_path_factory: pytest.TempPathFactory) -> dict[Family, Path]:
    """A C module that forks, for each Lua; it binds to the functions of whichever loads it."""
    compiler = shutil.which("cc") or pytest.skip("there is no C compiler")
    agent = Path(__file__).parents[1] / "server" / "agent"
    folders: dict[Family, Path] = {}
    for family in Family:
        folder = folders[family] = tmp_path_factory.mktemp(f"fork-{family.value}")
        (folder / "forker.c").write_text(FORK_MODULE)
        flags = ("-shared", "-fPIC", f"-DLUA_ABI={family.abi}", f"-I{agent}")
        subprocess.run(
            [compiler, *flags, "-o", str(folder / "forker.so"), str(folder / "forker.c")], check=True
        )
    return folders


@each_runtime
@each_mode
def test_a_forked_child_counts_into_a_file_of_its_own(
    lineheat: Lineheat, tmp_path: Path, runtime: Runtime, mode: str, fork_modules: dict[Family, Path]
) -> None:
    script = tmp_path / "forks.lua"
    script.write_text(f'package.cpath = "{fork_modules[runtime.family]}/?.so"\n' + FORKS)
    before, child, parent = BEFORE + 1, CHILD + 1, PARENT + 1
    profile = lineheat.record(runtime, mode, script)
    assert profile.outcome.stdout == "40\n"
    assert [profile.hits(script).get(line) for line in (before, child, parent)] == [10, None, 30]
    (child_file,) = profile.path.parent.glob(f"{profile.path.stem}.*.heat")
    assert re.fullmatch(r"\d+", child_file.name.split(".")[-2])
    forked = lineheat.profile(child_file, profile.outcome)
    assert [forked.hits(script).get(line) for line in (before, child, parent)] == [None, 20, None]
    assert not list(lineheat.memory.rglob("*.heat"))
