"""What a Lua script says about the runtime it wants: its first line, and the project's `.luarc.json`."""

import json
import re
from pathlib import Path

LUARC_NAME = ".luarc.json"
FIRST_LINE_BYTES = 256  # as much as Linux looks at

_STRING_OR_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STRING_OR_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')


def shebang_program(script: Path) -> str | None:
    """The interpreter in the first line: a path, or (after `env`) a name.  None: no such line."""
    try:
        with script.open("rb") as file:
            line = file.readline(FIRST_LINE_BYTES)
    except OSError:
        return None  # the interpreter that cannot read it says so better
    if not line.startswith(b"#!"):
        return None
    words = line[2:].decode("utf-8", "replace").split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else None


def luarc_version(script: Path) -> str | None:
    """`runtime.version` ("Lua 5.4", "LuaJIT") of the nearest `.luarc.json` in the script's folders."""
    for folder in script.absolute().parents:
        file = folder / LUARC_NAME
        if file.is_file():
            return _runtime_version(file)
    return None


def _runtime_version(file: Path) -> str | None:
    """None also for a file that cannot be read: it is the language server's, which reports that itself."""
    try:
        settings: object = json.loads(_plain_json(file.read_text("utf-8")))
    except (OSError, ValueError):
        return None
    lua = _member(settings, "Lua") or settings
    version = _member(lua, "runtime.version") or _member(_member(lua, "runtime"), "version")
    return version if isinstance(version, str) else None


def _member(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, dict) else None


def _plain_json(text: str) -> str:
    """Without the comments and last commas that the Lua language server allows."""
    without_comments = _STRING_OR_COMMENT.sub(lambda match: match[1] or " ", text)
    return _STRING_OR_LAST_COMMA.sub(lambda match: match[1] or "", without_comments)
