"""The house: who may import whom (server/README.md, "Floors").

A floor stands above all that it imports.  Foreign packages have one floor each,
so that the day one of them changes, one folder changes.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "server" / "lineheat"

FLOORS: dict[str, set[str]] = {
    "model": set(),
    "heatfile": {"model"},
    "analysis": {"model"},
    "formats": {"model", "analysis"},
    "features": {"model", "analysis"},
    "targets": {"model"},
    "session": {"model", "heatfile", "analysis", "targets"},
    "lsp": {"model", "heatfile", "analysis", "formats", "features", "targets", "session"},
    "dap": {"model", "heatfile", "analysis", "formats", "features", "targets", "session"},
    "cli": {"model", "heatfile", "analysis", "formats", "features", "targets", "session", "lsp", "dap"},
    "__main__": {"cli"},
    "__init__": set(),
}

FOREIGN: dict[str, set[str]] = {
    "cli": {"rich"},
    "lsp": {"pygls", "lsprotocol"},
    "dap": {"debugpy"},
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def floor_of(module: Path) -> str:
    return module.relative_to(PACKAGE).with_suffix("").parts[0]


def imports_of(module: Path) -> Iterator[str]:
    """Dotted names, also of imports inside functions."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively; absolute names show the floor"
            module_name = node.module or ""
            yield from (f"lineheat.{alias.name}" for alias in node.names if module_name == "lineheat")
            yield module_name


@pytest.mark.parametrize("module", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_floor_imports_only_what_it_stands_on(module: Path) -> None:
    floor = floor_of(module)
    allowed = FLOORS[floor] | {floor}
    for name in imports_of(module):
        if name.startswith("lineheat.") and name != "lineheat.__version__":
            assert name.split(".")[1] in allowed, f"{floor} may not import {name}"


@pytest.mark.parametrize("module", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_foreign_package_has_one_floor(module: Path) -> None:
    allowed = FOREIGN.get(floor_of(module), set())
    for name in imports_of(module):
        top = name.split(".")[0]
        if top != "lineheat" and top not in sys.stdlib_module_names:
            assert top in allowed, f"{floor_of(module)} may not import {name}"


def test_only_the_command_line_reads_argv_and_prints() -> None:
    stand_alone = {PACKAGE / "targets" / "embedded_host.py", PACKAGE / "__main__.py"}
    for module in modules():
        if floor_of(module) == "cli" or module in stand_alone:
            continue
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", f"{module}:{node.lineno} prints"
            if isinstance(node, ast.Attribute):
                assert node.attr != "argv", f"{module}:{node.lineno} reads argv"


def test_what_the_embedded_host_needs_is_the_standard_library() -> None:
    host = PACKAGE / "targets" / "embedded_host.py"
    assert all(name.split(".")[0] in sys.stdlib_module_names for name in imports_of(host))
