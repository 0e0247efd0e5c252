"""Writes heat files without any agent: what the tests read.

Stacks stand root first, one path a line.  A frame is [FUNCTION@]FILE:LINE; the
function is 'main' where none is named.  FUNCTION@[C] is native, <zone> a zone.

    sampled:  main.lua:3;fib@main.lua:2 5            5 ticks in the first VM state
              main.lua:3;<physics>;main.lua:9 N2 C1  by letters of the VM states
    traced:   main.lua:3;fib@main.lua:2 hits=4 ticks=30 off=1 instructions=9 calls=2

hits, ticks, off and instructions are those of the last frame's line, in the
activation that this path is; calls are those of its row.  A function's lines go
from the first to the last one that a text names, or as 'fib@main.lua:2-4' says.
"""

import re
import textwrap
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from struct import pack_into, unpack_from

from lineheat.heatfile import (
    CELLS,
    CHUNK_HEADER,
    CHUNK_HEADER_BYTES,
    COUNT_AT,
    FUNCTION_MASK,
    HEADER,
    HEADER_BYTES,
    INNER_LINE,
    MAGIC,
    PAGE_BYTES,
    RINGS,
    VERSION,
    Header,
    Kind,
)
from lineheat.model.recording import State

CELL_LETTERS = {1: "B", 4: "I", 8: "Q"}
STATE_WORDS = {state: word for word, state in enumerate(State)}


@dataclass(frozen=True)
class Frame:
    """A frame as the notation has it."""

    function: str
    file: str
    line: int  # 0 = none

    @property
    def is_native(self) -> bool:
        return self.file == "[C]"


@dataclass
class Function:
    row: int
    first_line: int
    first_slot: int
    slots: int
    is_native: bool


@dataclass
class Row:
    """A row of the call tree, as its writer remembers it."""

    row: int
    parent: "Row | None"
    function: Function | None
    call_slot: int
    first_slot: int
    children: dict[tuple[int, int], "Row"] = field(default_factory=dict)

    def above(self) -> Iterator["Row"]:
        row: Row | None = self
        while row is not None:
            yield row
            row = row.parent


class HeatWriter:
    """A heat file in memory; save() puts it where a reader finds it, again and again."""

    def __init__(
        self,
        mode: str = "trace",
        runtime: str = "Toy 1.0",
        states: Sequence[str] = ("N native", "I interpreted", "C c", "G gc", "J jit"),
        capacity: int | None = None,
    ) -> None:
        self.image = bytearray(HEADER_BYTES)
        self.header = _first_header(mode, runtime)
        self._capacity = capacity
        self._columns = {kind: columns[0] for kind, (_, columns) in CELLS.items()}
        self._columns[Kind.LINE] = {"coverage": 1, "count": 4}.get(mode, 3)
        self._columns[Kind.TREE_COST] = 4 if mode == "count" else 3
        self._chunks: dict[Kind, list[tuple[int, int]]] = {kind: [] for kind in Kind}  # first row, byte
        self._strings: dict[str, int] = {}
        self._sources: dict[str, int] = {}
        self._functions: dict[tuple[str, str], Function] = {}
        self._frames: dict[tuple[int, int, int, int], int] = {}
        self._zones: dict[str, int] = {}
        self._letters: list[str] = []
        self.append(Kind.STRING, (0, 0))
        if mode == "sample":
            self._begin_sampled(states)
        else:
            self._begin_traced()

    def _begin_sampled(self, states: Sequence[str]) -> None:
        self._columns[Kind.FRAME_SAMPLES] = len(states)
        for state in states:
            letter, _, name = state.partition(" ")
            self._letters.append(letter)
            self.append(Kind.VM_STATE, (self.string(letter), self.string(name)))
        self.append(Kind.FRAME_SAMPLES, [0] * len(states))
        self.append(Kind.FRAME, (0, FUNCTION_MASK, 0, 0))

    def _begin_traced(self) -> None:
        self.new_slots(1)
        self.append(Kind.TREE_COST, [0] * self._columns[Kind.TREE_COST])
        self.append(Kind.TREE, (0, 0, FUNCTION_MASK, 0, 0))
        self._root = Row(0, None, None, 0, 0)

    # -- the file --

    def set(self, **fields: int | bytes) -> "HeatWriter":
        """Fields of the header."""
        values = {**self.header._asdict(), **fields}
        self.header = Header._make(values[name] for name in Header._fields)
        return self

    def finish(self) -> "HeatWriter":
        return self.set(state=STATE_WORDS[State.FINISHED], exit_kind=1)

    def to_bytes(self) -> bytes:
        HEADER.pack_into(self.image, 0, *self.header._replace(file_bytes=len(self.image)))
        return bytes(self.image)

    def save(self, path: Path) -> Path:
        path.touch()
        with path.open("r+b") as file:
            file.write(self.to_bytes())
        return path

    # -- tables --

    def append(self, kind: Kind, *rows: Sequence[int]) -> int:
        """Rows side by side at the end of a table; the number of the first."""
        width, columns = CELLS[kind][0], self._columns[kind]
        first, at = self._room(kind, len(rows))
        for number, row in enumerate(rows):
            pack_into(f"<{columns}{CELL_LETTERS[width]}", self.image, at + number * columns * width, *row)
        self._publish(kind, len(rows))
        return first

    def add_to(self, kind: Kind, row: int, counts: Sequence[int]) -> None:
        """Adds to the counters of a row."""
        columns = self._columns[kind]
        first, chunk = self._chunks[kind][bisect_right(self._chunks[kind], (row, 1 << 62)) - 1]
        at = chunk + CHUNK_HEADER_BYTES + (row - first) * columns * 8
        cells = unpack_from(f"<{columns}Q", self.image, at)
        new = (cell + count for cell, count in zip(cells, counts, strict=False))
        pack_into(f"<{columns}Q", self.image, at, *new)

    def ring(self, kind: Kind, capacity: int, rows: Sequence[Sequence[int]]) -> None:
        """A ring into which rows were written, the first ones perhaps overwritten."""
        _, at = self._room(kind, capacity)
        columns = self._columns[kind]
        for number, row in enumerate(rows):
            pack_into(f"<{columns}Q", self.image, at + number % capacity * columns * 8, *row)
        pack_into("<Q", self.image, at - CHUNK_HEADER_BYTES + COUNT_AT, len(rows))

    def _room(self, kind: Kind, rows: int) -> tuple[int, int]:
        """First row number, and the byte it goes to."""
        row_bytes = CELLS[kind][0] * self._columns[kind]
        if not self._chunks[kind] or kind in RINGS:
            self._add_chunk(kind, 0, rows)
        first_row, chunk = self._chunks[kind][-1]
        capacity, count = unpack_from("<I4xQ", self.image, chunk + 24)
        if count + rows > capacity and kind not in RINGS:
            first_row, chunk, count = (
                first_row + capacity,
                self._add_chunk(kind, first_row + capacity, rows),
                0,
            )
        return first_row + count, chunk + CHUNK_HEADER_BYTES + count * row_bytes

    def _add_chunk(self, kind: Kind, first_row: int, rows: int) -> int:
        width, columns = CELLS[kind][0], self._columns[kind]
        usual = self._capacity or (PAGE_BYTES - CHUNK_HEADER_BYTES) // (width * columns)
        capacity = rows if kind in RINGS else max(rows, usual)
        size = -(-(CHUNK_HEADER_BYTES + capacity * width * columns) // PAGE_BYTES) * PAGE_BYTES
        at = len(self.image)
        self.image += CHUNK_HEADER.pack(kind, 0, size, first_row, capacity, columns, width, 0).ljust(
            size, b"\0"
        )
        self._chunks[kind].append((first_row, at))
        return at

    def _publish(self, kind: Kind, rows: int) -> None:
        at = self._chunks[kind][-1][1] + COUNT_AT
        pack_into("<Q", self.image, at, unpack_from("<Q", self.image, at)[0] + rows)

    # -- definitions --

    def string(self, text: str) -> int:
        if text and text not in self._strings:
            raw = text.encode(errors="surrogateescape")
            offset = self.append(Kind.TEXT, *zip(raw, strict=True))
            self._strings[text] = self.append(Kind.STRING, (offset, len(raw)))
        return self._strings.get(text, 0)

    def source(self, name: str, kind: str = "file", text: str = "", content_hash: int = 0) -> int:
        if name not in self._sources:
            cells = (self.string(name), self.string(kind), self.string(text))
            hashes = (content_hash & 0xFFFFFFFF, content_hash >> 32)
            self._sources[name] = self.append(Kind.SOURCE, cells + hashes)
        return self._sources[name]

    def function(self, name: str, file: str, first_line: int, last_line: int) -> Function:
        if (name, file) not in self._functions:
            self._functions[name, file] = self._new_function(name, file, first_line, last_line)
        return self._functions[name, file]

    def _new_function(self, name: str, file: str, first_line: int, last_line: int) -> Function:
        is_native = file == "[C]"
        source = self.source(file, "native" if is_native else "file")
        slots = 0 if self._letters else 1 if is_native else last_line - first_line + 2
        first_slot = self.new_slots(slots) if slots else 0
        kind = self.string("native" if is_native else "toy")
        row = self.append(
            Kind.FUNCTION, (source, self.string(name), kind, first_line, last_line, first_slot, slots)
        )
        return Function(row, first_line, first_slot, slots, is_native)

    def rename(self, name: str, file: str, better_name: str) -> None:
        self.append(Kind.NAME, (self._functions[name, file].row, self.string(better_name)))

    def new_slots(self, slots: int) -> int:
        return self.append(Kind.LINE, *([[0] * self._columns[Kind.LINE]] * slots))

    def define(self, *functions: str) -> "HeatWriter":
        """Functions as 'name@file:first-last'."""
        for function in functions:
            name, file, first, last = re.fullmatch(r"(.+)@(.+):(\d+)-(\d+)", function).groups()  # type: ignore[union-attr]  # a test's own text
            self.function(name, file, int(first), int(last))
        return self

    def _define_all(self, paths: list[tuple[list[str], list[str]]]) -> None:
        lines: dict[tuple[str, str], list[int]] = {}
        for path, _ in paths:
            for frame in map(_frame, path):
                if frame is not None:
                    lines.setdefault((frame.function, frame.file), []).append(frame.line)
        for (name, file), numbers in lines.items():
            known = [number for number in numbers if number] or [0]
            self.function(name, file, min(known), max(known))

    # -- stacks --

    def sampled(self, stacks: str) -> "HeatWriter":
        paths = _paths(stacks)
        self._define_all(paths)
        for path, counts in paths:
            row = 0
            for word in path:
                row = self._frame_row(row, word)
            self.add_to(Kind.FRAME_SAMPLES, row, self._by_state(counts))
        return self

    def _frame_row(self, parent: int, word: str) -> int:
        frame = _frame(word)
        if frame is None:
            key = (parent, FUNCTION_MASK, 0, self._zone(word[1:-1]) + 1)
        else:
            key = (parent, self._functions[frame.function, frame.file].row, frame.line, 0)
        if key not in self._frames:
            self.append(Kind.FRAME_SAMPLES, [0] * self._columns[Kind.FRAME_SAMPLES])
            self._frames[key] = self.append(Kind.FRAME, key)
        return self._frames[key]

    def _zone(self, name: str) -> int:
        if name not in self._zones:
            self._zones[name] = self.append(Kind.ZONE, (self.string(name),))
        return self._zones[name]

    def _by_state(self, counts: list[str]) -> list[int]:
        samples = [0] * len(self._letters)
        for count in counts:
            letter, number = re.fullmatch(r"(\D?)(\d+)", count).groups()  # type: ignore[union-attr]  # a test's own text
            samples[self._letters.index(letter) if letter else 0] += int(number)
        return samples

    def traced(self, paths: str) -> "HeatWriter":
        parsed = _paths(paths)
        self._define_all(parsed)
        for path, figures in parsed:
            frames = [frame for word in path if (frame := _frame(word))]
            counts = {name: int(number) for name, number in (figure.split("=") for figure in figures)}
            self._count(frames, counts)
        return self

    def _count(self, frames: list[Frame], counts: dict[str, int]) -> None:
        row, call_slot = self._root, 0
        for frame in frames:
            function = self._functions[frame.function, frame.file]
            row = self._call(row, call_slot, function)
            offset = 0 if function.is_native or not frame.line else frame.line - function.first_line + 1
            call_slot = function.first_slot + offset
        ticks, off, instructions = counts.get("ticks", 0), counts.get("off", 0), counts.get("instructions", 0)
        self.add_to(Kind.LINE, row.first_slot + offset, (counts.get("hits", 0), ticks, off, instructions))
        self.add_to(Kind.TREE_COST, row.row, (counts.get("calls", 0), ticks, off, instructions))

    def _call(self, parent: Row, call_slot: int, function: Function) -> Row:
        key = (call_slot, function.row)
        if key not in parent.children:
            parent.children[key] = self._new_row(parent, call_slot, function)
        return parent.children[key]

    def _new_row(self, parent: Row, call_slot: int, function: Function) -> Row:
        above = list(parent.above())
        outer = next((place for place, row in enumerate(above) if row.function is function), None)
        first_slot = function.first_slot
        if outer is not None and not function.is_native:
            first_slot = self.new_slots(function.slots)
        number = self.append(Kind.TREE_COST, [0] * self._columns[Kind.TREE_COST])
        via = 0 if outer is None else above[outer - 1].row if outer else number
        inner = INNER_LINE if any(row.parent and row.call_slot == call_slot for row in above) else 0
        self.append(Kind.TREE, (parent.row, call_slot, function.row | inner, first_slot, via))
        return Row(number, parent, function, call_slot, first_slot)


def _first_header(mode: str, runtime: str) -> Header:
    """A tick is a nanosecond, and the run took a second."""
    zeros = Header._make(b"" if kind == "bytes" else 0 for kind in map(_type_name, Header._fields))
    return zeros._replace(
        magic=MAGIC,
        version=VERSION,
        header_bytes=HEADER_BYTES,
        pid=4711,
        recording=1,
        mode=mode.encode(),
        runtime=runtime.encode(),
        state=STATE_WORDS[State.RECORDING],
        first_monotonic_ns=1_000,
        first_ticks=1_000,
        now_monotonic_ns=2_000_000_000,
        now_ticks=2_000_000_000,
        start_wall_ns=1_700_000_000_000_000_000,
        start_monotonic_ns=1_000_000_000,
        stop_monotonic_ns=2_000_000_000,
        now_cpu_ns=900_000_000,
    )


def _type_name(name: str) -> str:
    return "bytes" if Header.__annotations__[name] in (bytes, "bytes") else "int"


def _paths(text: str) -> list[tuple[list[str], list[str]]]:
    """(frames, figures) of each line."""
    lines = [line.split() for line in textwrap.dedent(text).splitlines() if line.strip()]
    return [(words[0].split(";"), words[1:]) for words in lines]


def _frame(word: str) -> Frame | None:
    """None for a zone."""
    if word.startswith("<"):
        return None
    name, at, place = word.rpartition("@")
    file, colon, line = place.rpartition(":")
    if not colon:
        file, line = place, "0"
    return Frame(name if at else "main", file, int(line))
