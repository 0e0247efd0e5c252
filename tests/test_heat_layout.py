"""The layout stands in three places: the agent's header, the reader, and the page for people."""

import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from lineheat import heatfile
from lineheat.heatfile import CELLS, CHUNK_HEADER, CONTROLS, HEADER, STATES, ChunkHeader, Header, Kind
from lineheat.model.tables import NO_FUNCTION

SERVER = Path(__file__).resolve().parents[1] / "server"
LAYOUT = SERVER / "agent" / "heat_layout.h"
COMPILER = shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler")


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Numbers as the C compiler sees them: constants by name, offsets as 'HeatHeader.pid'."""
    text = LAYOUT.read_text()
    names = re.findall(r"^#define (HEAT_\w+) (?!\")\S", text, re.MULTILINE)
    names += re.findall(r"\b(HEAT_\w+) = \d+", text)
    names += [
        f"offsetof({struct}, {field})" for struct in ("HeatHeader", "HeatChunk") for field in _fields(struct)
    ]
    prints = "\n".join(f'  printf("%s=%llu\\n", "{name}", (unsigned long long)({name}));' for name in names)
    folder = tmp_path_factory.mktemp("layout")
    source = folder / "layout.c"
    source.write_text(
        f'#include "{LAYOUT}"\n#include <stdio.h>\nint main(void) {{\n{prints}\n  return 0;\n}}\n'
    )
    assert COMPILER is not None
    subprocess.run([COMPILER, "-o", folder / "layout", source], check=True)
    output = subprocess.run([folder / "layout"], check=True, capture_output=True, text=True).stdout
    pairs = (line.split("=") for line in output.splitlines())
    return {re.sub(r"offsetof\((\w+), (\w+)\)", r"\1.\2", name): int(number) for name, number in pairs}


def _fields(struct: str) -> list[str]:
    text = LAYOUT.read_text()
    body = text[text.index(f"typedef struct {struct} {{") : text.index(f"}} {struct};")]
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
    names = re.findall(r"\b(?:char|uint\d+_t) (\w+)", body)
    return [name for name in names if "padding" not in name and "spare" not in name]


@needs_compiler
def test_header_fields_stand_where_the_agent_writes_them(c: dict[str, int]) -> None:
    assert list(Header._fields) == _fields("HeatHeader")
    for name in Header._fields:
        assert _offset_in_header(name) == c[f"HeatHeader.{name}"], name
    assert c["HeatHeader.control"] == heatfile.CONTROL_AT
    assert c["HeatHeader.state"] == heatfile.STATE_AT
    assert c["HeatHeader.exit_kind"] == heatfile.EXIT_AT
    assert c["HeatHeader.file_bytes"] == heatfile.FILE_BYTES_AT


@needs_compiler
def test_chunk_fields_stand_where_the_agent_writes_them(c: dict[str, int]) -> None:
    names = [field.name for field in fields(ChunkHeader)]
    assert names == _fields("HeatChunk")
    for place, name in enumerate(names):
        values = [int(other == place) for other in range(len(names))]
        assert CHUNK_HEADER.pack(*values).index(1) == c[f"HeatChunk.{name}"], name
    assert c["HeatChunk.count"] == heatfile.COUNT_AT
    assert CHUNK_HEADER.size == heatfile.CHUNK_HEADER_BYTES


@needs_compiler
def test_numbers_are_the_same(c: dict[str, int]) -> None:
    for name in (
        "VERSION",
        "HEADER_BYTES",
        "CHUNK_HEADER_BYTES",
        "NOTE_BYTES",
        "INNER_LINE",
        "FUNCTION_MASK",
    ):
        assert getattr(heatfile, name) == c[f"HEAT_{name}"], name
    assert c["HEAT_NO_FUNCTION"] == NO_FUNCTION
    assert {f"HEAT_{kind.name}": kind.value for kind in Kind}.items() <= c.items()
    assert c["HEAT_KINDS"] == max(Kind) + 1
    assert {f"HEAT_{control.name}": word for control, word in CONTROLS.items()}.items() <= c.items()
    assert {f"HEAT_{state.name}": word for word, state in enumerate(STATES)}.items() <= c.items()
    for name in ("EXIT_UNKNOWN", "EXIT_STATUS", "EXIT_SIGNAL"):
        assert getattr(heatfile, name) == c[f"HEAT_{name}"], name
    assert f'#define HEAT_MAGIC "{heatfile.MAGIC.decode()}"' in LAYOUT.read_text()


def test_tables_have_the_cells_that_the_header_names() -> None:
    described = re.findall(r"HEAT_(\w+) = (\d+),\s*/\* width (\d)", LAYOUT.read_text())
    assert {(Kind[name], int(number), int(width)) for name, number, width in described} == {
        (kind, kind.value, width) for kind, (width, _) in CELLS.items()
    }


def test_tables_have_the_cells_that_the_page_names() -> None:
    described = re.findall(
        r"^\| ([\w ]+) \| (\d+) \| (\d) \|", (SERVER / "README.md").read_text(), re.MULTILINE
    )
    assert [(name.lower(), int(kind), int(width)) for name, kind, width in described] == [
        (kind.name.lower().replace("_", " "), kind.value, width) for kind, (width, _) in CELLS.items()
    ]


def _offset_in_header(name: str) -> int:
    values = {field: b"" if Header.__annotations__[field] is bytes else 0 for field in Header._fields}
    values[name] = b"\1" if values[name] == b"" else 1
    return HEADER.pack(*values.values()).index(1)
