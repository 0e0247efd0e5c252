"""An embedded interpreter runs a script as the installed command does: same output, errors and status."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from lineheat.targets.agent import agent_library
from lineheat.targets.lua import plain_command
from lineheat.targets.runtime import Family, Runtime, find_runtimes

RUNTIMES = find_runtimes()
INSTALLED = {runtime.family: runtime for runtime in reversed(RUNTIMES) if not runtime.embedded}
EMBEDDED = {runtime.family: runtime for runtime in RUNTIMES if runtime.embedded}
PUC = tuple(family for family in Family if family is not Family.LUAJIT)


@dataclass(frozen=True)
class Run:
    stdout: str
    stderr: str
    status: int


@dataclass(frozen=True)
class Case:
    script: str | None  # main.lua; None: there is no such file
    arguments: Sequence[str] = ()
    stdin: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    families: Sequence[Family] = tuple(Family)


CASES = {
    "output": Case("print('one', 2, nil) io.write('no newline')"),
    "arguments": Case(
        "print(select('#', ...), ...) for i = -2, 4 do print(i, arg[i]) end", ["a", "", "ä -e"]
    ),
    "changed arg": Case("print(...)", ["a", "b"], environment={"LUA_INIT": "arg = {'x', 'y', 'z'}"}),
    "arg that is no table": Case("print(...)", ["a"], environment={"LUA_INIT": "arg = 1"}),
    "standard input": Case(
        "print(io.read()) print(io.read('*n')) print(io.read('*a'))", stdin="line\n42 rest\n"
    ),
    "shebang": Case("#!/usr/bin/env lua\nprint(debug.getinfo(1, 'l').currentline)"),
    "nested require": Case("print(require('outer')) print(package.loaded.inner)"),
    "error in a module": Case("require('failing')"),
    "module that is not there": Case("require('nowhere.at.all')", families=PUC),
    "module path": Case("print(package.path) print(package.cpath)", families=PUC),
    "module path of the user": Case(
        "print(package.path) print(package.cpath)",
        environment={"LUA_PATH": "./x/?.lua;;", "LUA_CPATH": "./y/?.so"},
        families=PUC,
    ),
    "missing file": Case(None),
    "syntax error": Case("local x =\nprint('never'"),
    "error string": Case("print('before') error('what happened')"),
    "error without position": Case("error('bare', 0)"),
    "error in a function": Case("local function f() error('deep') end\nfunction g() f() return 1 end\ng()"),
    "error in a method": Case("local t = {}\nfunction t:m() local x = self.a.b end\nt:m()"),
    "error number": Case("error(42)"),
    "error table": Case("error({})"),
    "error nil": Case("error()"),
    "error boolean": Case("error(false)"),
    "error with __tostring": Case("error(setmetatable({}, {__tostring = function() return 'custom' end}))"),
    "error with a bad __tostring": Case("error(setmetatable({}, {__tostring = function() return {} end}))"),
    "error in __tostring": Case("error(setmetatable({}, {__tostring = function() error('inner') end}))"),
    "error of the runtime": Case("local x = nil\nprint(x.y)"),
    "error in a coroutine": Case("print(coroutine.resume(coroutine.create(function() error('c') end)))"),
    "error out of a coroutine": Case("local f = coroutine.wrap(function() error('w') end)\nf()"),
    "nested pcall": Case("print(pcall(pcall, error, 'e')) print(pcall(error, {}, 2) == false)"),
    "xpcall and traceback": Case("print(xpcall(function() error('t') end, debug.traceback))"),
    "no debug.traceback": Case("debug.traceback = nil error('plain')"),
    "own debug.traceback": Case("debug.traceback = function(m) return 'mine: ' .. m end error('plain')"),
    "stack overflow": Case("local function f(n) return 1 + f(n + 1) end\nf(1)"),
    "C stack overflow": Case("local function f() return pcall(f) end\nprint(f())"),
    "C stack overflow in gsub": Case("local function f() return (('x'):gsub('.', f)) end\nprint(pcall(f))"),
    "exit status": Case("io.write('partial') os.exit(3)"),
    "exit true": Case("os.exit(true, true)"),
    "exit false": Case("os.exit(false)"),
    "exit that closes": Case("x = setmetatable({}, {__gc = function() print('gc') end}) os.exit(true, true)"),
    "closing": Case("x = setmetatable({}, {__gc = function() print('gc') end}) print('end')"),
    "closing after an error": Case("x = setmetatable({}, {__gc = function() print('gc') end}) error('e')"),
    "closing in 5.1": Case(
        "local p = newproxy(true) getmetatable(p).__gc = function() io.stderr:write('gc\\n') end\n"
        "p = nil error('e')",
        families=(Family.LUA51, Family.LUAJIT),
    ),
    "error in __gc": Case("x = setmetatable({}, {__gc = function() error('in gc') end})"),
    "warnings": Case(
        "warn('unseen') warn('@on') warn('seen ', 'twice') warn('@off') warn('unseen')",
        families=(Family.LUA54,),
    ),
    "collector": Case("print(collectgarbage('count') < 100, pcall(collectgarbage, 'incremental'))"),
    "locale": Case("print(os.setlocale(), os.setlocale(nil, 'ctype'))", environment={"LC_ALL": "C.UTF-8"}),
    "environment": Case("os.execute('env | sort | grep -v ^_=')"),
    "signals of children": Case("os.execute('grep ^Sig /proc/self/status')"),
    "init": Case("print('main')", environment={"LUA_INIT": "print('init', arg and arg[0])"}),
    "init of the version": Case(
        "print('main')",
        environment=dict.fromkeys(
            ["LUA_INIT_5_2", "LUA_INIT_5_3", "LUA_INIT_5_4", "LUA_INIT_5_5"], "print('versioned')"
        )
        | {"LUA_INIT": "print('plain')"},
    ),
    "init from a file": Case("print(from_init)", environment={"LUA_INIT": "@init.lua"}),
    "init that fails": Case("print('main')", environment={"LUA_INIT": "error('in init')"}),
    "init that does not compile": Case("print('main')", environment={"LUA_INIT": "x ="}),
    "init that is missing": Case("print('main')", environment={"LUA_INIT": "@nowhere.lua"}),
}

MODULES = {
    "outer.lua": "return 'outer with ' .. require('inner')",
    "inner.lua": "return 'inner'",
    "failing.lua": "local x = ...\nerror('while loading ' .. x)",
    "init.lua": "from_init = 'set by init.lua'",
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def start(runtime: Runtime, case: Case, workspace: Path) -> "subprocess.Popen[str]":
    """As typed: `lua main.lua`, whatever the program's file is called."""
    if case.script is not None:
        (workspace / "main.lua").write_text(case.script)
    called_lua = replace(runtime, command="luajit" if runtime.family is Family.LUAJIT else "lua")
    command = plain_command(called_lua, agent_library(), "main.lua", case.arguments)
    ours = ("LUA_", "LC_", "LANG")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command.arguments,
        executable=command.program,
        cwd=workspace,
        env={**environment, **case.environment},
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        encoding="utf-8",
    )


def end(process: "subprocess.Popen[str]", stdin: str = "") -> Run:
    stdout, stderr = process.communicate(stdin, timeout=60)
    return Run(comparable(stdout), comparable(stderr), process.returncode)


def comparable(text: str) -> str:
    """Addresses differ from run to run; everything else counts."""
    return re.sub(r"0x[0-9a-f]+", "ADDRESS", text)


def run(runtime: Runtime, case: Case, workspace: Path) -> Run:
    with start(runtime, case, workspace) as process:
        return end(process, case.stdin)


def pair(family: Family) -> tuple[Runtime, Runtime]:
    """The embedded interpreter, and the command it must be like."""
    if family not in INSTALLED or family not in EMBEDDED:
        pytest.skip(f"{family.command} is not here both installed and embedded")
    return EMBEDDED[family], INSTALLED[family]


each_family = pytest.mark.parametrize("family", Family, ids=lambda family: family.value)


@each_family
@pytest.mark.parametrize("name", CASES)
def test_runs_as_the_installed_command_does(name: str, family: Family, workspace: Path) -> None:
    case = CASES[name]
    if family not in case.families:
        pytest.skip("says something else in this version")
    embedded, installed = pair(family)
    assert run(embedded, case, workspace) == run(installed, case, workspace)


# ---- Ctrl-C -------------------------------------------------------------------

ENDLESS = Case("if jit then jit.off() end print('ready') io.flush()\nwhile true do end")
ENDLESS_TWICE = Case(
    "if jit then jit.off() end print('ready') io.flush()\n"
    "print(pcall(function() while true do end end)) io.flush()\n"
    "while true do end"
)


def interrupt(process: "subprocess.Popen[str]", times: int) -> Run:
    """Sends SIGINT as often, each time after a line of output and when the target is in its loop."""
    assert process.stdout
    lines = []
    for _ in range(times):
        lines.append(process.stdout.readline())
        wait_until_busy(process.pid)
        process.send_signal(signal.SIGINT)
    rest = end(process)
    return replace(rest, stdout="".join(lines) + rest.stdout)


def wait_until_busy(pid: int) -> None:
    """Until it has burnt some CPU time since now: it is then past its C calls."""
    start_ticks = cpu_ticks(pid)
    while cpu_ticks(pid) < start_ticks + 3:
        pass


def cpu_ticks(pid: int) -> int:
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(after_name[11]) + int(after_name[12])


@each_family
@pytest.mark.parametrize(("case", "times"), [(ENDLESS, 1), (ENDLESS_TWICE, 2)], ids=["once", "twice"])
def test_ctrl_c(case: Case, times: int, family: Family, workspace: Path) -> None:
    results = []
    for runtime in pair(family):
        with start(runtime, case, workspace) as process:
            results.append(interrupt(process, times))
    assert results[0] == results[1]
    assert "interrupted!" in results[0].stderr + results[0].stdout


# ---- What no installed command shows ------------------------------------------

LUA55_RUNS = {
    "print(_VERSION, ...)": Run("Lua 5.5\ta\n", "", 0),
    "io.write('x') os.exit(3)": Run("x", "", 3),
    "print(collectgarbage('generational'))": Run("generational\n", "", 0),
    "error()": Run(
        "",
        "lua: (error object is a nil value)\n"
        "stack traceback:\n\t[C]: in global 'error'\n\tmain.lua:1: in main chunk\n\t[C]: in ?\n",
        1,
    ),
    "error(setmetatable({}, {__tostring = function() return 'custom' end}))": Run("", "lua: custom\n", 1),
    "x = = 1": Run("", "lua: main.lua:1: unexpected symbol near '='\n", 1),
    "warn('on from the start ', 'here') warn('@off') warn('unseen')": Run(
        "", "Lua warning: on from the start here\n", 0
    ),
    "setmetatable({}, {__gc = function() print('gc') end}) os.exit(true, true)": Run("gc\n", "", 0),
}


@pytest.mark.parametrize("script", LUA55_RUNS)
def test_lua55(script: str, workspace: Path) -> None:
    if Family.LUA55 not in EMBEDDED:
        pytest.skip("this lupa has no Lua 5.5")
    assert run(EMBEDDED[Family.LUA55], Case(script, ["a"]), workspace) == LUA55_RUNS[script]


@pytest.mark.parametrize("runtime", EMBEDDED.values(), ids=lambda runtime: runtime.name)
def test_modules_are_found_where_a_usual_installation_has_them(runtime: Runtime, workspace: Path) -> None:
    number = runtime.family.value.replace("luajit", "5.1")
    path, cpath, _ = run(runtime, Case("print(package.path) print(package.cpath)"), workspace).stdout.split(
        "\n"
    )
    assert f"/usr/share/lua/{number}/?.lua" in path.split(";")
    assert f"/usr/share/lua/{number}/?/init.lua" in path.split(";")
    assert f"/usr/lib/lua/{number}/?.so" in cpath.split(";")


def host(*arguments: str) -> Run:
    """The agent's host in a process that may have loaded no Lua."""
    code = (
        "import ctypes, sys; arguments = [a.encode() for a in sys.argv[2:]] + [None];"
        "sys.exit(ctypes.CDLL(sys.argv[1]).lineheat_host(len(arguments) - 1,"
        " (ctypes.c_char_p * len(arguments))(*arguments)))"
    )
    command = [sys.executable, "-c", code, str(agent_library()), *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    return Run(done.stdout, done.stderr, done.returncode)


def test_a_process_without_lua_gets_one_line() -> None:
    result = host("lua", "", "main.lua")
    assert result.status == 1
    assert result.stderr.startswith("lineheat: this program does not export Lua's C API")
    assert result.stderr.count("\n") == 1
