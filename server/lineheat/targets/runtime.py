"""Lua interpreters: which there are, and which one runs a script.

Programs come from absolute folders of PATH, or from where a person has pointed;
never from the current folder.  Embedded ones are the libraries in the `lupa`
package, found without importing it.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

from lineheat.model.errors import LineheatError
from lineheat.targets.probe import NoAnswer, answer_of
from lineheat.targets.script import LUARC_NAME, luarc_version, shebang_program

# ---- Values -------------------------------------------------------------------


class Family(Enum):
    """Which Lua; the value is what `lua…` and `embedded:…` end in."""

    LUA51 = "5.1"
    LUA52 = "5.2"
    LUA53 = "5.3"
    LUA54 = "5.4"
    LUA55 = "5.5"
    LUAJIT = "luajit"

    @property
    def abi(self) -> int:
        """The number of its C interface, as the agent's sources have it."""
        return 210 if self is Family.LUAJIT else int(self.value.replace(".", "0"))

    @property
    def command(self) -> str:
        """What its program is usually called."""
        return self.value if self is Family.LUAJIT else f"lua{self.value}"

    @property
    def commands(self) -> tuple[str, ...]:
        """All that its program may be called."""
        if self is Family.LUAJIT:
            return (self.command,)
        return (self.command, self.command.replace(".", ""), f"lua-{self.value}")

    @property
    def title(self) -> str:
        """Its name in `.luarc.json`."""
        return "LuaJIT" if self is Family.LUAJIT else f"Lua {self.value}"


NEWEST_FIRST = (Family.LUA55, Family.LUA54, Family.LUA53, Family.LUA52, Family.LUA51)


@dataclass(frozen=True, slots=True)
class Runtime:
    name: str  # lua5.4, luajit, embedded:5.4
    family: Family
    version: str  # as it says itself: Lua 5.4.4, LuaJIT 2.1.0-beta3
    path: Path  # absolute: its program, or the library if it is embedded
    command: str  # what it is called in messages: its argv[0]
    embedded: bool


class RuntimeUnknown(LineheatError):
    """Wrong usage: no such runtime."""

    exit_status = 2

    def __init__(self, message: str) -> None:
        super().__init__("runtime-unknown", message)


class RuntimeUnusable(LineheatError):
    """There is a program, but not one that can be used."""

    exit_status = 1

    def __init__(self, message: str) -> None:
        super().__init__("runtime-unusable", message)


# ---- Programs -----------------------------------------------------------------

_LUA_NAME = re.compile(r"lua[-_.\w]*", re.ASCII)
_NUMBERED_COMMANDS = tuple(command for family in NEWEST_FIRST for command in family.commands)
_VERSION = re.compile(r"(Lua (5\.[1-5])[.\w]*|LuaJIT 2\.1[.\w-]*)", re.ASCII)


def identify(program: Path, command: str) -> Runtime:
    """Starts the program to hear its version.  RuntimeUnusable: it is no Lua of ours."""
    try:
        said = answer_of(program, [command, "-v"])
    except NoAnswer as problem:
        raise RuntimeUnusable(f"{program} {problem}") from problem
    version = _VERSION.match(said)
    if not version:
        answer = said.strip().partition("\n")[0][:80]
        raise RuntimeUnusable(f"{program} is no Lua 5.1 to 5.5 and no LuaJIT 2.1; to -v it says {answer!r}")
    family = Family(version[2] or "luajit")
    return Runtime(family.command, family, version[1], program.absolute(), command, embedded=False)


def find_program(command: str) -> Path | None:
    """As a shell finds it, but not in PATH's relative folders: a workspace may be where we stand."""
    for folder in map(Path, os.get_exec_path()):
        program = folder / command
        if folder.is_absolute() and program.is_file() and os.access(program, os.X_OK):
            return program
    return None


def _programs(commands: Iterable[str]) -> Iterator[Runtime]:
    """Those of the commands that exist and work, each program once."""
    seen = set[str]()
    for command in commands:
        program = find_program(command)
        if program is None or os.path.realpath(program) in seen:
            continue
        seen.add(os.path.realpath(program))
        try:
            yield identify(program, command)
        except RuntimeUnusable:
            continue  # it was not asked for by name; there may be others


def _program_of(family: Family) -> Runtime | None:
    """The family's own command, or the plain `lua` if it is of that family."""
    found = _programs((*family.commands, "lua"))
    return next((runtime for runtime in found if runtime.family is family), None)


# ---- Libraries ----------------------------------------------------------------

_LIBRARIES = {
    "lua51": Family.LUA51,
    "lua52": Family.LUA52,
    "lua53": Family.LUA53,
    "lua54": Family.LUA54,
    "lua55": Family.LUA55,
    "luajit21": Family.LUAJIT,
}
_LIBRARY_VERSION = re.compile(rb"\$Lua(?:Version)?: (Lua 5\.\d\.\d+)|(LuaJIT 2\.1\.[\w-]+)")


def _embedded() -> Iterator[Runtime]:
    lupa = find_spec("lupa")
    for folder in map(Path, (lupa and lupa.submodule_search_locations) or []):
        for module, family in _LIBRARIES.items():
            library = _extension_module(folder, module)
            if library:
                yield _embedded_runtime(library, family)


def _extension_module(folder: Path, module: str) -> Path | None:
    candidates = (folder / (module + suffix) for suffix in EXTENSION_SUFFIXES)
    return next((file.absolute() for file in candidates if file.is_file()), None)


def _embedded_runtime(library: Path, family: Family) -> Runtime:
    """The version stands in the library's text, so that it need not be loaded."""
    version = _LIBRARY_VERSION.search(library.read_bytes())
    said = (version[1] or version[2]).decode() if version else family.command
    command = "luajit" if family is Family.LUAJIT else "lua"
    return Runtime(f"embedded:{family.value}", family, said, library, command, embedded=True)


def _embedded_of(family: Family) -> Runtime | None:
    return next((runtime for runtime in _embedded() if runtime.family is family), None)


# ---- All, and the one ---------------------------------------------------------


def find_runtimes() -> list[Runtime]:
    """All that work here: programs, newest first, then the embedded ones."""
    return [*_programs((*_NUMBERED_COMMANDS, *Family.LUAJIT.commands, "lua")), *_embedded()]


def choose_runtime(request: str | None, script: Path) -> Runtime:
    """What was asked for (`--runtime`), else what the script or its project says, else what is here."""
    if request is not None:
        return _requested(request)
    return _by_shebang(script) or _by_luarc(script) or _default()


def _requested(request: str) -> Runtime:
    if os.sep in request:
        return identify(Path(request).absolute(), request)
    runtime = _named_library(request) or _named_program(request)
    if runtime is None:
        raise _unknown(f"there is no runtime {request!r}")
    return runtime


def _named_library(name: str) -> Runtime | None:
    name = "embedded:5.4" if name == "embedded" else name
    return next((runtime for runtime in _embedded() if runtime.name == name), None)


def _named_program(name: str) -> Runtime | None:
    """By family where the name says one (lua5.4, lua54); else the command itself (lua, lua5.4.6)."""
    family = _family_of(name)
    if family:
        return _program_of(family)
    program = find_program(name) if _LUA_NAME.fullmatch(name) else None
    return identify(program, name) if program else None


def _family_of(command: str) -> Family | None:
    return next((family for family in Family if command in family.commands), None)


def _by_shebang(script: Path) -> Runtime | None:
    """None: the script names no interpreter, or none of ours, or a `lua` that is not here."""
    program = shebang_program(script)
    name = Path(program or "").name
    if program is None or not _LUA_NAME.fullmatch(name):
        return None
    if Path(program).is_absolute() and Path(program).exists():
        return identify(Path(program), program)
    family = _family_of(name)
    return _wanted(family, script, "in its first line") if family else _named_program(name)


def _by_luarc(script: Path) -> Runtime | None:
    version = luarc_version(script)
    family = next((family for family in Family if version == family.title), None)
    return _wanted(family, script, f"in {LUARC_NAME}") if family else None


def _wanted(family: Family, script: Path, where: str) -> Runtime:
    """Another version would run another language, so a wish that cannot be met is an error."""
    runtime = _program_of(family) or _embedded_of(family)
    if runtime is None:
        raise _unknown(f"{script} asks for {family.command} {where}, which is not here")
    return runtime


def _default() -> Runtime:
    programs = _programs(("lua", *_NUMBERED_COMMANDS, *Family.LUAJIT.commands))
    runtime = next(programs, None) or _embedded_of(Family.LUA54)
    if runtime is None:
        raise RuntimeUnusable("there is no Lua here; install lua5.4 or luajit, or the Python package lupa")
    return runtime


def _unknown(what: str) -> RuntimeUnknown:
    names = ", ".join(dict.fromkeys(runtime.name for runtime in find_runtimes())) or "none"
    return RuntimeUnknown(f"{what}; there are: {names}; choose one with --runtime NAME or a path")
