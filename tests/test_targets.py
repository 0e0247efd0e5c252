"""Which interpreter runs a script, and the command line that starts it with the agent."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from lineheat.model.errors import LineheatError
from lineheat.targets import probe
from lineheat.targets.agent import agent_library
from lineheat.targets.capabilities import AGENT_MODES, capabilities
from lineheat.targets.lua import agent_command, lua_string, plain_command
from lineheat.targets.runtime import (
    Family,
    Runtime,
    RuntimeUnknown,
    RuntimeUnusable,
    choose_runtime,
    find_runtimes,
)

# The interpreters of this machine, found before a test changes PATH.
HERE = find_runtimes()
INSTALLED = [runtime for runtime in HERE if not runtime.embedded]

each_runtime = pytest.mark.parametrize("runtime", HERE, ids=lambda runtime: runtime.name)
each_installed = pytest.mark.parametrize("runtime", INSTALLED, ids=lambda runtime: runtime.name)

Program = Callable[[str, str], Path]


@pytest.fixture
def path_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder which is all of PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def program(path_folder: Path) -> Program:
    """Places a program that answers to -v as an interpreter would."""

    def place(name: str, version: str) -> Path:
        file = path_folder / name
        file.write_text(f'#!/bin/sh\necho "{version}  Copyright"\n')
        file.chmod(0o755)
        return file

    return place


@pytest.fixture
def script(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "src"
    folder.mkdir(parents=True)
    file = folder / "main.lua"
    file.write_text("print(1)\n")
    return file


def luarc(script: Path, text: str) -> None:
    (script.parents[1] / ".luarc.json").write_text(text)


def programs() -> list[Runtime]:
    return [runtime for runtime in find_runtimes() if not runtime.embedded]


# ---- Finding ------------------------------------------------------------------


def test_programs_say_what_they_are(program: Program) -> None:
    file = program("lua5.4", "Lua 5.4.6")
    program("luajit", "LuaJIT 2.1.0-beta3 --")
    assert [(r.name, r.version) for r in programs()] == [
        ("lua5.4", "Lua 5.4.6"),
        ("luajit", "LuaJIT 2.1.0-beta3"),
    ]
    assert programs()[0] == Runtime("lua5.4", Family.LUA54, "Lua 5.4.6", file, "lua5.4", embedded=False)


def test_links_to_one_program_are_one_runtime(program: Program, path_folder: Path) -> None:
    program("lua5.3", "Lua 5.3.6")
    (path_folder / "lua53").symlink_to("lua5.3")
    (path_folder / "lua").symlink_to("lua5.3")
    assert [r.command for r in programs()] == ["lua5.3"]


def test_relative_folders_of_path_are_not_searched(
    program: Program, path_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("lua5.4", "Lua 5.4.6")
    monkeypatch.chdir(path_folder)
    monkeypatch.setenv("PATH", ":.:../bin")
    assert programs() == []


def test_what_does_not_work_is_not_listed(program: Program, path_folder: Path) -> None:
    program("lua", "Moon 1.0")
    program("luajit", "LuaJIT 2.0.5 --")
    (path_folder / "lua5.1").write_text("not even a script")
    (path_folder / "lua5.1").chmod(0o755)
    assert programs() == []


def test_lua_init_is_not_run(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program("lua", "${LUA_INIT}${LUA_INIT_5_4}Lua 5.4.6")
    monkeypatch.setenv("LUA_INIT", "init ran before -v")
    monkeypatch.setenv("LUA_INIT_5_4", "init ran before -v")
    assert [r.name for r in programs()] == ["lua5.4"]


# ---- Choosing -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "command"), [("lua5.3", "lua5.3"), ("lua53", "lua5.3"), ("lua", "lua"), ("luajit", "luajit")]
)
def test_by_name(request_: str, command: str, program: Program, script: Path) -> None:
    program("lua", "Lua 5.4.6")
    program("lua5.3", "Lua 5.3.6")
    program("luajit", "LuaJIT 2.1.17 --")
    assert choose_runtime(request_, script).command == command


def test_by_name_of_the_version_that_lua_is(program: Program, script: Path) -> None:
    program("lua", "Lua 5.4.6")
    assert choose_runtime("lua5.4", script).command == "lua"


def test_by_path(program: Program, script: Path) -> None:
    file = program("whatever", "Lua 5.1.5")
    runtime = choose_runtime(str(file), script)
    assert (runtime.name, runtime.path, runtime.command) == ("lua5.1", file, str(file))


def test_embedded(script: Path) -> None:
    assert choose_runtime("embedded", script).name == "embedded:5.4"
    assert choose_runtime("embedded:5.1", script).version == "Lua 5.1.5"
    assert choose_runtime("embedded:luajit", script).version.startswith("LuaJIT 2.1.")


@pytest.mark.parametrize(
    "line",
    [
        "#!/usr/bin/env lua5.3",
        "#!/nowhere/bin/lua5.3",
        "#! /usr/bin/env -S lua5.3 -W",
        "#!/usr/bin/env A=b lua5.3",
    ],
)
def test_by_shebang(line: str, program: Program, script: Path) -> None:
    program("lua", "Lua 5.4.6")
    program("lua5.3", "Lua 5.3.6")
    luarc(script, '{"runtime.version": "Lua 5.4"}')
    script.write_text(f"{line}\nprint(1)\n")
    assert choose_runtime(None, script).name == "lua5.3"


def test_by_shebang_with_a_path(program: Program, script: Path, tmp_path: Path) -> None:
    program("lua", "Lua 5.4.6")
    elsewhere = program("lua5.1", "Lua 5.1.5").rename(tmp_path / "lua5.1")
    script.write_text(f"#!{elsewhere}\n")
    assert choose_runtime(None, script).path == elsewhere


@pytest.mark.parametrize("line", ["#!/bin/sh", "#!", "#!/usr/bin/env", "#!./lua", "--!/usr/bin/lua5.1"])
def test_other_first_lines_say_nothing(line: str, program: Program, script: Path) -> None:
    program("lua", "Lua 5.4.6")
    program("lua5.1", "Lua 5.1.5")
    script.write_text(f"{line}\n")
    assert choose_runtime(None, script).name == "lua5.4"


@pytest.mark.parametrize(
    "text",
    [
        '{"runtime.version": "Lua 5.1"}',
        '{"runtime": {"version": "Lua 5.1"}}',
        '{"Lua": {"runtime": {"version": "Lua 5.1"}}}',
        '{"x": "http://a//b, }", /* } */ "runtime.version": "Lua 5.1", // last\n}',
        '{\n// "runtime.version": "Lua 5.4"\n"runtime.version": "Lua 5.1",\n}',
    ],
)
def test_by_luarc(text: str, program: Program, script: Path) -> None:
    program("lua", "Lua 5.4.6")
    program("lua5.1", "Lua 5.1.5")
    luarc(script, text)
    assert choose_runtime(None, script).name == "lua5.1"


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", '{"runtime": 1}', '{"runtime.version": "Lua 6"}', '"Lua 5.1"']
)
def test_other_luarcs_say_nothing(text: str, program: Program, script: Path) -> None:
    program("lua", "Lua 5.4.6")
    luarc(script, text)
    assert choose_runtime(None, script).name == "lua5.4"


def test_the_nearest_luarc_counts(program: Program, script: Path) -> None:
    program("luajit", "LuaJIT 2.1.17 --")
    luarc(script, '{"runtime.version": "Lua 5.1"}')
    (script.parent / ".luarc.json").write_text('{"runtime.version": "LuaJIT"}')
    assert choose_runtime(None, script).name == "luajit"


def test_a_version_that_is_not_installed_is_taken_from_the_embedded_ones(
    program: Program, script: Path
) -> None:
    program("lua", "Lua 5.4.6")
    luarc(script, '{"runtime.version": "Lua 5.2"}')
    assert choose_runtime(None, script).name == "embedded:5.2"


def test_by_default_lua_then_the_newest_then_luajit_then_embedded(program: Program, script: Path) -> None:
    assert choose_runtime(None, script).name == "embedded:5.4"
    program("luajit", "LuaJIT 2.1.17 --")
    assert choose_runtime(None, script).name == "luajit"
    program("lua5.1", "Lua 5.1.5")
    program("lua5.3", "Lua 5.3.6")
    assert choose_runtime(None, script).name == "lua5.3"
    program("lua", "Lua 5.2.4")
    assert choose_runtime(None, script).name == "lua5.2"


# ---- What cannot be chosen ----------------------------------------------------


@pytest.mark.parametrize("name", ["lua5.9", "lua5.3", "embedded:5.9", "perl", "", "sh"])
def test_unknown_names_list_what_there_is(name: str, program: Program, script: Path) -> None:
    program("lua", "Lua 5.4.6")
    program("sh", "Lua 5.4.6")
    with pytest.raises(
        RuntimeUnknown, match=r"there are: lua5\.4, embedded:5\.1, .*embedded:luajit"
    ) as problem:
        choose_runtime(name, script)
    assert problem.value.exit_status == 2
    assert problem.value.slug == "runtime-unknown"


def test_a_path_that_is_no_interpreter(program: Program, script: Path, tmp_path: Path) -> None:
    moon = program("moon", "Moon 1.0")
    for path, what in [
        (str(moon), "is no Lua .* it says 'Moon 1.0 Copyright'"),
        (str(tmp_path / "nothing"), "does not start: No such file"),
        (str(tmp_path), "does not start: Permission denied"),
        (str(script), "does not start: Permission denied"),
    ]:
        with pytest.raises(RuntimeUnusable, match=what) as problem:
            choose_runtime(path, script)
        assert problem.value.exit_status == 1


def test_an_interpreter_that_hangs(
    program: Program, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "ANSWER_SECONDS", 0.2)
    hanging = program("lua5.4", "Lua 5.4.6")
    hanging.write_text("#!/bin/sh\n/bin/cat /dev/zero > /dev/null\n")
    with pytest.raises(RuntimeUnusable, match=r"does not answer within 0\.2 s"):
        choose_runtime(str(hanging), script)
    assert choose_runtime(None, script).embedded


# ---- Starting -----------------------------------------------------------------

EVERY_BYTE = bytes(range(1, 256)).decode("utf-8", "surrogateescape")


def output(arguments: tuple[str, ...], program: Path) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(arguments, executable=program, capture_output=True, timeout=60, check=False)


@each_installed
def test_strings_are_read_back_as_they_were(runtime: Runtime) -> None:
    code = f"io.write({lua_string(EVERY_BYTE + '0')})"
    assert output((runtime.command, "-e", code), runtime.path).stdout == bytes(range(1, 256)) + b"0"


def test_the_script_and_its_arguments_come_last(program: Program, script: Path) -> None:
    runtime = choose_runtime(str(program("lua5.4", "Lua 5.4.6")), script)
    command = agent_command(runtime, Path("/agent.so"), "mode=trace\n", "a.lua", ["-x", ""])
    assert command.arguments[1] == "-e"
    assert command.arguments[3:] == ("a.lua", "-x", "")
    assert plain_command(runtime, Path("/agent.so"), "-a.lua", []).arguments[1:] == ("--", "-a.lua")
    assert plain_command(runtime, Path("/agent.so"), "-", []).arguments[1:] == ("-",)


@each_runtime
def test_an_agent_that_cannot_be_loaded_gives_one_line(
    runtime: Runtime, script: Path, tmp_path: Path
) -> None:
    command = agent_command(runtime, tmp_path / "no.so", "mode=trace\n", str(script), [])
    result = output(command.arguments, command.program)
    assert result.returncode == 1
    assert result.stdout == b""
    assert result.stderr.startswith(b"lineheat: ")
    assert b"no.so" in result.stderr
    assert result.stderr.count(b"\n") == 1


@each_runtime
def test_an_agent_that_will_not_arm_gives_one_line(runtime: Runtime, script: Path) -> None:
    command = agent_command(runtime, agent_library(), "no configuration", str(script), [])
    result = output(command.arguments, command.program)
    assert result.returncode == 1
    assert result.stdout == b""
    assert result.stderr.startswith(b"lineheat: ")
    assert result.stderr.count(b"\n") == 1


# ---- Capabilities -------------------------------------------------------------


@each_runtime
def test_the_agent_works_in_all_that_was_found(runtime: Runtime) -> None:
    found = capabilities(runtime, agent_library())
    assert found.obstacle is None
    assert found.modes == AGENT_MODES


def test_a_runtime_that_cannot_load_the_agent_says_why(
    program: Program, script: Path, tmp_path: Path
) -> None:
    silent = choose_runtime(str(program("lua5.4", "Lua 5.4.6")), script)
    silent.path.write_text("#!/bin/sh\nexit 1\n")
    assert capabilities(silent, agent_library()).obstacle == "it ends at once, without a word"
    silent.path.unlink()
    assert capabilities(silent, agent_library()).obstacle == "it does not start: No such file or directory"


@each_runtime
def test_a_library_that_is_missing_is_an_obstacle(runtime: Runtime, tmp_path: Path) -> None:
    found = capabilities(runtime, tmp_path / "no.so")
    assert found.modes == ()
    assert found.obstacle
    assert "no.so" in found.obstacle


def test_a_missing_agent_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lineheat.targets.agent.LIBRARY_NAME", "libnowhere.so")
    with pytest.raises(LineheatError, match="not built") as problem:
        agent_library()
    assert problem.value.slug == "agent-missing"
