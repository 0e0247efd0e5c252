"""Our declarations of Lua's C API (agent/lua_abi.h) against the real headers, by the compiler.

Both go into one C file.  Of ours, lua_Debug, the constants and the functions get
other names, so that nothing hides behind a redeclaration; the types stay, so
that the functions can be compared.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

LUA_ABI = Path(__file__).parents[1] / "server" / "agent" / "lua_abi.h"
COMPILER = shutil.which("gcc") or shutil.which("clang")
HEADERS = {
    501: Path("/usr/include/lua5.1"),
    502: Path("/usr/include/lua5.2"),
    503: Path("/usr/include/lua5.3"),
    504: Path("/usr/include/lua5.4"),
    505: Path("/usr/include/lua5.5"),
    210: Path("/usr/include/luajit-2.1"),
}

# Declared with one result type for all versions, which nobody uses.
ANY_RESULT = {"lua_sethook"}
# Constants that are no macros, and names that the version's own header lacks.
MACROS_OF_OURS = ("LUA_REGISTRYINDEX", "lua_upvalueindex(1)")
ABSENT = {501: {"LUA_OK"}}


def check(abi: int, declarations: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    source = folder / "compare.c"
    source.write_text(comparison(abi, declarations))
    command = [COMPILER or "", "-std=gnu11", "-fsyntax-only", f"-I{HEADERS[abi]}", str(source)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


def our_declarations(abi: int) -> str:
    """What the compiler sees of lua_abi.h in this version, without the system's headers."""
    command = [COMPILER or "", "-std=gnu11", "-E", f"-DLUA_ABI={abi}", "-x", "c", "-"]
    constants = "".join(f"OURS_{i} = {macro}," for i, macro in enumerate(MACROS_OF_OURS))
    text = f'#include "{LUA_ABI}"\nenum {{ {constants} }};\n'
    preprocessed = subprocess.run(
        command, input=text, capture_output=True, encoding="utf-8", check=True
    ).stdout
    kept, ours = [], False
    for line in preprocessed.splitlines():
        if line.startswith("# "):
            ours = str(LUA_ABI) in line or "<stdin>" in line
        elif ours:
            kept.append(line)
    return "\n".join(kept)


def function_names(declarations: str) -> list[str]:
    return re.findall(r"extern [^;]*?\b(lua\w+) ?\(", declarations)


def constant_names(declarations: str) -> list[str]:
    return re.findall(r"\b(LUA\w+) =", declarations)


def debug_fields(declarations: str) -> list[str]:
    body = re.search(r"struct lua_Debug \{(.*?)\}", declarations, re.DOTALL)
    assert body
    return re.findall(r"(\w+)(?:\[\d+\])?;", body[1])


def renamed(declarations: str) -> str:
    text = re.sub(
        r"(typedef struct )lua_Debug( \{.*?\} )lua_Debug;",
        r"\1our_lua_Debug\2our_lua_Debug;",
        declarations,
        flags=re.DOTALL,
    )
    text = text.replace(
        "typedef struct our_lua_Debug", "typedef struct lua_Debug lua_Debug; typedef struct our_lua_Debug"
    )
    names = "|".join([*function_names(declarations), *constant_names(declarations)])
    return re.sub(rf"\b({names})\b", r"our_\1", text)


def comparison(abi: int, declarations: str) -> str:
    lines = ["#include <stddef.h>", "#include <stdint.h>", "#include <limits.h>", renamed(declarations)]
    real = ["lua.h", "lauxlib.h", "lualib.h"] + (["luajit.h"] if abi == 210 else [])
    lines += [f"#include <{header}>" for header in real]
    lines.append(equal("sizeof(lua_Debug)", "sizeof(our_lua_Debug)"))
    # The last field is private: in the real headers it has another name.
    *fields, private = debug_fields(declarations)
    for name in fields:
        lines.append(equal(f"offsetof(lua_Debug, {name})", f"offsetof(our_lua_Debug, {name})"))
        lines.append(same_type(f"((lua_Debug *)0)->{name}", f"((our_lua_Debug *)0)->{name}"))
    assert private == "i_ci"
    lines.append(equal("offsetof(lua_Debug, i_ci)", "offsetof(our_lua_Debug, i_ci)"))
    lines += [equal(macro, f"OURS_{i}") for i, macro in enumerate(MACROS_OF_OURS)]
    lines += [
        equal(name, f"our_{name}") for name in constant_names(declarations) if name not in ABSENT.get(abi, ())
    ]
    lines += [
        same_type(name, f"our_{name}") for name in function_names(declarations) if name not in ANY_RESULT
    ]
    return "\n".join(lines) + "\n"


def equal(real: str, ours: str) -> str:
    return f'_Static_assert((long)({real}) == (long)({ours}), "{real}");'


def same_type(real: str, ours: str) -> str:
    return f'_Static_assert(__builtin_types_compatible_p(__typeof__({real}), __typeof__({ours})), "{real}");'


def needs_headers(abi: int) -> None:
    if not COMPILER:
        pytest.skip("there is no C compiler")
    if not (HEADERS[abi] / "lua.h").exists():
        pytest.skip(f"{HEADERS[abi]} is not installed")


@pytest.mark.parametrize("abi", HEADERS)
def test_declarations_are_those_of_the_real_headers(abi: int, tmp_path: Path) -> None:
    needs_headers(abi)
    declarations = our_declarations(abi)
    assert len(function_names(declarations)) > 50
    result = check(abi, declarations, tmp_path)
    assert result.stderr == ""
    assert result.returncode == 0


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("int currentline;", "short currentline;"),
        ("LUA_MASKCOUNT = 8", "LUA_MASKCOUNT = 16"),
        ("lua_gettop(lua_State *L)", "lua_gettop(lua_State *L, int more)"),
    ],
)
def test_a_wrong_declaration_is_noticed(right: str, wrong: str, tmp_path: Path) -> None:
    abi = 504
    needs_headers(abi)
    declarations = our_declarations(abi)
    assert right in declarations
    assert check(abi, declarations.replace(right, wrong), tmp_path).returncode != 0
