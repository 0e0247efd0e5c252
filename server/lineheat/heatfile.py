"""Heat files: bytes to model, and the few words that are written back.

The only file that knows the layout; agent/heat_layout.h is its other half.

    header | chunk | chunk | chunk | ...      chunks are only ever appended;
                                              each holds rows of one table

All numbers in a file are hostile until checked here.  A file that is cut or
damaged reads as far as it is whole, and the recording says what is missing;
only a header that cannot be read is an error.  Files are read, not mapped: a
mapping of a file that somebody shortens ends the process that looks at it.

The target may run on while we read.  Counts of rows are read users first, so
that a row's references are there when the row is; what still names a row that
is not published stays for the next snapshot.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from io import FileIO
from itertools import compress
from operator import lt
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import NamedTuple, TypeVar

from lineheat.model.errors import LineheatError
from lineheat.model.recording import Control, Exit, ExitSignal, ExitStatus, Losses, Recording, State
from lineheat.model.snapshot import Snapshot
from lineheat.model.tables import (
    NO_FUNCTION,
    CallTree,
    Column,
    Events,
    FrameTree,
    Function,
    LineSlots,
    Source,
    Thread,
    Timeline,
    VmState,
)

# ---- Layout ----------------------------------------------------------------------------------

MAGIC = b"LINEHEAT"
VERSION = 1
HEADER_BYTES = 4096
CHUNK_HEADER_BYTES = 64
NOTE_BYTES = 256
PAGE_BYTES = 4096
INNER_LINE = 0x80000000
FUNCTION_MASK = 0x7FFFFFFF

CONTROLS = {Control.RUN: 0, Control.PAUSE: 1, Control.STOP: 2}
STATES = (State.ARMED, State.RECORDING, State.PAUSED, State.STOPPED, State.FINISHED, State.DIED)
EXIT_UNKNOWN, EXIT_STATUS, EXIT_SIGNAL = range(3)


class Header(NamedTuple):
    """The header page, field by field; paddings and spare fields are left out."""

    magic: bytes
    version: int
    header_bytes: int
    pid: int
    recording: int
    mode: bytes
    runtime: bytes
    control: int
    state: int
    exit_kind: int
    exit_value: int
    first_monotonic_ns: int
    first_ticks: int
    now_monotonic_ns: int
    now_ticks: int
    start_wall_ns: int
    start_monotonic_ns: int
    stop_monotonic_ns: int
    file_bytes: int
    start_cpu_ns: int
    now_cpu_ns: int
    requested_interval_ns: int
    samples: int
    paused_ns: int
    line_event_ticks_x16: int
    call_event_ticks_x16: int
    current_row: int
    lost_ticks: int
    cut_stacks: int
    full_tables: int
    folded_calls: int
    resyncs: int
    evicted_threads: int
    unseen_states: int
    dropped_timeline: int
    dropped_events: int
    off_cpu_ticks: int
    agent_ticks: int
    note: bytes


HEADER = Struct("<8s4I16s24s I60x 3I52x 8Q 8Q 11Q40x 256s")
CONTROL_AT = 64
STATE_AT = 128
EXIT_AT = 132
FILE_BYTES_AT = 248


@dataclass(slots=True)
class ChunkHeader:
    """What stands before the rows of a chunk."""

    kind: int
    owner: int
    bytes: int
    first_row: int
    capacity: int
    columns: int
    width: int
    count: int


CHUNK_HEADER = Struct("<IIQQIHHQ24x")
COUNT_AT = 32


class Kind(IntEnum):
    """Tables, by the kind of their chunks."""

    TEXT = 1
    STRING = 2
    SOURCE = 3
    FUNCTION = 4
    THREAD = 5
    VM_STATE = 6
    ZONE = 7
    LINE = 8
    TREE = 9
    TREE_COST = 10
    FRAME = 11
    FRAME_SAMPLES = 12
    TIMELINE = 13
    EVENT = 14
    NAME = 15
    SOURCE_TEXT = 16


MOST_STATES = 64
CELLS: dict[Kind, tuple[int, Sequence[int]]] = {
    Kind.TEXT: (1, (1,)),
    Kind.STRING: (4, (2,)),
    Kind.SOURCE: (4, (5,)),
    Kind.FUNCTION: (4, (7,)),
    Kind.THREAD: (4, (3,)),
    Kind.VM_STATE: (4, (2,)),
    Kind.ZONE: (4, (1,)),
    Kind.LINE: (8, (1, 3, 4)),
    Kind.TREE: (4, (5,)),
    Kind.TREE_COST: (8, (3, 4)),
    Kind.FRAME: (4, (4,)),
    Kind.FRAME_SAMPLES: (8, range(1, MOST_STATES + 1)),
    Kind.TIMELINE: (8, (3,)),
    Kind.EVENT: (8, (6,)),
    Kind.NAME: (4, (2,)),
    Kind.SOURCE_TEXT: (1, (1,)),
}
"""Bytes in a cell, and the numbers of columns that a table may have."""

RINGS = (Kind.TIMELINE, Kind.EVENT)
USERS_FIRST = (
    Kind.SOURCE_TEXT, Kind.FRAME_SAMPLES, Kind.TREE_COST, Kind.TREE, Kind.FRAME, Kind.NAME, Kind.FUNCTION,
    Kind.LINE, Kind.ZONE, Kind.VM_STATE, Kind.THREAD, Kind.SOURCE, Kind.STRING, Kind.TEXT,
)  # fmt: skip
SOURCES_ALONE = (Kind.SOURCE, Kind.STRING, Kind.TEXT)

# ---- Limits: what no honest file reaches -----------------------------------------------------

MOST_TABLE_BYTES = 1 << 30
MOST_COUNT = 1 << 56  # ticks of 300 days
MOST_LINE = 1 << 31
MOST_READINGS_OF_TEXT = 4  # all strings together, in sizes of the text
MOST_SENTENCES = 20
MOST_EMBEDDED_BYTES = 10 << 20

# ---- Public ----------------------------------------------------------------------------------


class HeatFileError(LineheatError):
    """A heat file that cannot be read, or is none."""


def read(path: str | Path) -> Snapshot:
    """The whole file, read once.  Damaged rows are left out and named in recording.missing."""
    with HeatFileReader(path) as reader:
        return reader.last_snapshot()


def is_heat_file(path: str | Path) -> bool:
    """Of whatever version; False also where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_recording(path: str | Path) -> Recording:
    """The header alone."""
    with _open(path, "r") as file:
        return _recording(_header(file, path))


def read_sources(path: str | Path) -> tuple[Source, ...]:
    """The table of sources alone."""
    with HeatFileReader(path) as reader:
        return reader.sources()


def write_control(path: str | Path, word: Control) -> None:
    """Asks the target to run, pause or stop."""
    with _open(path, "r+") as file:
        _header(file, path)
        _write_at(file, CONTROL_AT, CONTROLS[word].to_bytes(4, "little"))


def write_exit(path: str | Path, how: Exit | None, state: State) -> None:
    """Notes how the target ended (None: not known), then the recording's last state."""
    match how:
        case ExitStatus(status):
            kind, value = EXIT_STATUS, status
        case ExitSignal(signal):
            kind, value = EXIT_SIGNAL, signal
        case None:
            kind, value = EXIT_UNKNOWN, 0
    with _open(path, "r+") as file:
        _header(file, path)
        _write_at(file, EXIT_AT, kind.to_bytes(4, "little") + (value & 0xFFFFFFFF).to_bytes(4, "little"))
        _write_at(file, STATE_AT, STATES.index(state).to_bytes(4, "little"))


def embed_sources(path: str | Path, texts: Mapping[int, bytes]) -> list[int]:
    """Appends the text that ran, by source row; only when no agent writes any more.

    Texts that are there already stay.  Returns the rows that found no room: a
    heat file takes 10 MB of text.
    """
    with _open(path, "r+") as file:
        header = _header(file, path)
        chunks, trouble = _walk(file, HEADER_BYTES, header.file_bytes)
        at = HEADER_BYTES + sum(chunk.bytes for chunk in chunks)
        if trouble or not header.file_bytes == at <= _size(file):
            raise _damaged(path, trouble or min(at, _size(file)))
        embedded = [chunk for chunk in chunks if chunk.kind == Kind.SOURCE_TEXT]
        rows = sum(chunk.capacity for chunk in embedded)
        left_out: list[int] = []
        for source in sorted(texts.keys() - {chunk.owner for chunk in embedded}):
            if rows + len(texts[source]) > MOST_EMBEDDED_BYTES:
                left_out.append(source)
                continue
            at = _append_text(file, at, source, rows, texts[source])
            rows += len(texts[source])
        return left_out


class HeatFileReader:
    """Reads a heat file any number of times; what never changes is read once.

    Not for two threads at a time.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._file = _open(path, "r")
        self._chunks: dict[Kind, list[_Chunk]] = {kind: [] for kind in Kind}
        self._walked = HEADER_BYTES
        self._tables = _Tables()
        try:
            _header(self._file, path)
        except HeatFileError:
            self._file.close()
            raise

    def __enter__(self) -> "HeatFileReader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Snapshots stay good."""
        self._file.close()

    def snapshot(self) -> Snapshot:
        """The file as it is now."""
        header = _header(self._file, self._path)
        return self._snapshot(header, is_last=_state(header).is_final)

    def last_snapshot(self) -> Snapshot:
        """The same, but rows that name what is not there are damage, not "not yet"."""
        return self._snapshot(_header(self._file, self._path), is_last=True)

    def sources(self) -> tuple[Source, ...]:
        """The sources named so far; cheap to ask for again and again."""
        self._tables.begin(is_last=False)
        self._take_rows(SOURCES_ALONE)
        return tuple(self._tables.sources)

    # -- one snapshot --

    def _snapshot(self, header: Header, is_last: bool) -> Snapshot:
        tables = self._tables
        tables.begin(is_last)
        self._take_rows(USERS_FIRST)
        lines = tables.line_slots(self._counters(Kind.LINE))
        calls = tables.call_tree(
            self._published(Kind.TREE), self._counters(Kind.TREE_COST), header.current_row
        )
        frames = tables.frame_tree(self._published(Kind.FRAME), self._counters(Kind.FRAME_SAMPLES))
        recording = _recording(header)
        if lines.self_ticks is not None and recording.ns_per_tick is None:
            tables.miss("The clock was not calibrated: there are no times, only shares.")
        return Snapshot(
            lines=lines,
            calls=calls,
            frames=frames,
            timelines=tuple(self._timeline(chunk) for chunk in self._chunks[Kind.TIMELINE]),
            events=tuple(self._events(chunk) for chunk in self._chunks[Kind.EVENT]),
            sources=tuple(tables.sources),
            functions=tuple(tables.functions),
            threads=tuple(tables.threads),
            vm_states=tables.states_for(len(frames.samples)),
            zones=tuple(tables.zones),
            texts={source: text for source, text in tables.texts.items() if source < len(tables.sources)},
            recording=replace(recording, missing=recording.missing + tables.missing()),
        )

    def _find_chunks(self) -> None:
        """Chunks published since the last look."""
        size = _size(self._file)
        file_bytes = _number_at(self._file, FILE_BYTES_AT)
        if size < file_bytes:
            self._tables.miss(f"The file ends at byte {size:,} of {file_bytes:,}: the rest is missing.")
        if file_bytes < HEADER_BYTES:
            self._tables.miss("The header names no tables: all counts are missing.")
        chunks, trouble = _walk(self._file, self._walked, min(file_bytes, size))
        for chunk in chunks:
            self._add_chunk(chunk)
            self._walked = chunk.at + chunk.bytes
        if trouble:
            self._tables.miss(f"The file is damaged at byte {trouble:,}: what stood behind is missing.")
        for chunk in (chunk for chunks in self._chunks.values() for chunk in chunks):
            chunk.readable = max(0, min(chunk.capacity, (size - chunk.rows_at) // chunk.row_bytes))

    def _add_chunk(self, chunk: "_Chunk") -> None:
        if chunk.is_sound():
            self._chunks[Kind(chunk.kind)].append(chunk)
        else:
            self._tables.damage(f"The chunk at byte {chunk.at:,} is damaged: its rows are missing.")

    def _take_rows(self, kinds: Iterable[Kind]) -> None:
        """Reads counts from the last user to the first definition, then new rows the other way round."""
        tiles: dict[Kind, list[_Chunk]] = {}
        for kind in kinds:
            self._find_chunks()  # a table that this one names rows of may have grown by a chunk
            tiles[kind] = self._tiles(kind)
            for chunk in reversed(tiles[kind]):
                self._read_count(chunk)
        for kind, chunks in reversed(tiles.items()):
            if kind is Kind.LINE:
                self._tables.see_slots(chunks[-1].first_row + chunks[-1].count if chunks else 0)
            elif kind in self._tables.takers:
                self._take(chunks, self._tables.takers[kind])

    def _take(self, chunks: Sequence["_Chunk"], take: "Taker") -> None:
        for chunk in chunks:
            if chunk.count > chunk.taken:
                columns = self._columns(chunk, chunk.taken, chunk.count)
                chunk.taken += take(chunk.owner, chunk.first_row + chunk.taken, columns)

    def _tiles(self, kind: Kind) -> list["_Chunk"]:
        """The chunks of a table side by side, as far as there is no gap."""
        chunks = sorted(self._chunks[kind], key=lambda chunk: chunk.first_row)
        rows = 0
        for place, chunk in enumerate(chunks):
            rows_after = rows + chunk.capacity
            if (
                chunk.first_row != rows
                or chunk.columns != chunks[0].columns
                or rows_after * chunk.row_bytes > MOST_TABLE_BYTES
            ):
                self._tables.miss_if_last(f"The table {_name(kind)} lacks its rows from {rows:,} on.")
                return chunks[:place]
            rows = rows_after
        return chunks

    def _published(self, kind: Kind) -> tuple[range, ...]:
        tiles = self._tiles(kind)
        return tuple(range(tile.first_row, tile.first_row + tile.taken) for tile in tiles if tile.taken)

    # -- rows --

    def _read_count(self, chunk: "_Chunk") -> int:
        """Rows ever written; chunk.count becomes those that can be read."""
        written = _number_at(self._file, chunk.at + COUNT_AT)
        if written > chunk.capacity and chunk.kind not in RINGS:
            self._tables.miss(f"The table {_name(chunk.kind)} is damaged at byte {chunk.at + COUNT_AT:,}.")
        chunk.count = max(chunk.taken, min(written, chunk.readable))
        return written

    def _cells(self, chunk: "_Chunk", start: int, stop: int) -> Column:
        """Rows start to stop of the chunk as they lie there: row after row."""
        cells = Column({1: "B", 4: "I", 8: "Q"}[chunk.width], bytes((stop - start) * chunk.row_bytes))
        _read_into(self._file, chunk.rows_at + start * chunk.row_bytes, cells)
        if sys.byteorder == "big":
            cells.byteswap()
        return cells

    def _columns(self, chunk: "_Chunk", start: int, stop: int) -> list[Column]:
        cells = self._cells(chunk, start, stop)
        return [cells[column :: chunk.columns] for column in range(chunk.columns)]

    def _counters(self, kind: Kind) -> list[Column]:
        """All counters of a table, a column each; holes are 0."""
        tiles = self._tiles(kind)
        if not tiles:
            return []
        columns = [Column("Q") for _ in range(tiles[0].columns)]
        for chunk in tiles:
            cells = self._believable(self._cells(chunk, 0, chunk.count), chunk)
            for number, column in enumerate(columns):
                _pad(column, chunk.first_row)
                column.extend(cells[number :: chunk.columns])
        return columns

    def _believable(self, cells: Column, chunk: "_Chunk") -> Column:
        """A counter has a high byte only by damage."""
        high_bytes = cells.tobytes()[7 if sys.byteorder == "little" else 0 :: 8]
        if high_bytes.count(0) == len(high_bytes):
            return cells
        self._tables.miss(f"Counters of the table {_name(chunk.kind)} are damaged near byte {chunk.at:,}.")
        return Column("Q", (cell if cell < MOST_COUNT else 0 for cell in cells))

    # -- rings --

    def _ring(self, chunk: "_Chunk") -> list[Column]:
        """The rows of a ring, oldest first, without those overwritten while we read."""
        written = self._read_count(chunk)
        columns = self._columns(chunk, 0, chunk.count)
        if written <= chunk.capacity or not chunk.count:
            return columns
        oldest = written % chunk.capacity
        overwritten = self._read_count(chunk) - written
        if not self._tables.is_last:
            overwritten += 1  # the row that is being written
        return [(column[oldest:] + column[:oldest])[overwritten:] for column in columns]

    def _timeline(self, chunk: "_Chunk") -> Timeline:
        delta_ns, frame, heap_bytes = self._ring(chunk)
        frames = len(self._tables.frames[0])
        known = Column("Q", (row if row < frames else 0 for row in frame))
        return Timeline(chunk.owner, delta_ns, known, heap_bytes)

    def _events(self, chunk: "_Chunk") -> Events:
        monotonic_ns, kind, a, b, c, d = self._ring(chunk)
        strings = self._tables.strings
        kinds = tuple(_showable(strings[row]) if row < len(strings) else "" for row in kind)
        return Events(chunk.owner, monotonic_ns, kinds, (a, b, c, d))


# ---- Chunks ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Chunk(ChunkHeader):
    """A chunk that we know; 'count' is rows published and readable, when last looked at."""

    at: int = 0  # byte in the file
    readable: int = 0  # rows that the file has bytes for
    taken: int = 0  # rows that are in the tables

    @property
    def rows_at(self) -> int:
        return self.at + CHUNK_HEADER_BYTES

    @property
    def row_bytes(self) -> int:
        return self.columns * self.width

    def is_sound(self) -> bool:
        if self.kind not in CELLS:
            return False
        width, columns = CELLS[Kind(self.kind)]
        room = self.bytes - CHUNK_HEADER_BYTES
        return self.width == width and self.columns in columns and self.capacity * self.row_bytes <= room


def _walk(file: FileIO, at: int, end: int) -> tuple[list[_Chunk], int]:
    """The chunks between two bytes, and the byte where the walk had to stop; 0 = it came to the end."""
    chunks: list[_Chunk] = []
    while at + CHUNK_HEADER_BYTES <= end:
        chunk = _Chunk(*CHUNK_HEADER.unpack(_read_at(file, at, CHUNK_HEADER_BYTES)))
        chunk.at = at
        if chunk.bytes == 0 or chunk.bytes % PAGE_BYTES or chunk.bytes >= 1 << 62:
            return chunks, at
        chunk.count = 0
        chunks.append(chunk)
        at += chunk.bytes
    return chunks, 0


def _append_text(file: FileIO, at: int, source: int, first_row: int, text: bytes) -> int:
    """A SOURCE_TEXT chunk at byte 'at', published last; returns where the next one goes."""
    size = -(-(CHUNK_HEADER_BYTES + len(text)) // PAGE_BYTES) * PAGE_BYTES
    header = CHUNK_HEADER.pack(0, source, size, first_row, len(text), 1, 1, len(text))
    _write_at(file, at, (header + text).ljust(size, b"\0"))
    _write_at(file, at, Kind.SOURCE_TEXT.to_bytes(4, "little"))
    _write_at(file, FILE_BYTES_AT, (at + size).to_bytes(8, "little"))
    return at + size


# ---- Tables ----------------------------------------------------------------------------------

Taker = Callable[[int, int, list[Column]], int]
"""Enters rows: (owner of the chunk, number of the first row, columns) -> how many were entered."""


class _NotYet(Exception):
    """A row names a row that is not published yet."""


class _Tables:
    """Definitions and trees as far as they are read; rows only come."""

    def __init__(self) -> None:
        self.text = bytearray()
        self.strings: list[str] = []
        self.sources: list[Source] = []
        self.functions: list[Function | None] = []
        self.threads: list[Thread] = []
        self.vm_states: list[VmState] = []
        self.zones: list[str] = []
        self.calls = [Column("I") for _ in range(5)]  # as in the file, without the flag
        self.inner_line = bytearray()
        self.frames = [Column("I") for _ in range(4)]
        self.texts: dict[int, bytes] = {}
        self.takers: dict[Kind, Taker] = {
            Kind.TEXT: self._take_text,
            Kind.STRING: self._row_by_row(self._take_string),
            Kind.SOURCE: self._row_by_row(self._take_source),
            Kind.FUNCTION: self._row_by_row(self._take_function),
            Kind.THREAD: self._row_by_row(self._take_thread),
            Kind.VM_STATE: self._row_by_row(self._take_vm_state),
            Kind.ZONE: self._row_by_row(self._take_zone),
            Kind.NAME: self._row_by_row(self._take_name),
            Kind.TREE: self._take_calls,
            Kind.FRAME: self._take_frames,
            Kind.SOURCE_TEXT: self._take_source_text,
        }
        self._string_bytes = 0
        self._run_slots: list[int] = []  # of each function; 0 = it is native or has no run
        self._claimed = bytearray()  # slots that belong to a run
        self.is_last = False
        self._damage: list[str] = []
        self._missing: list[str] = []

    # -- what is missing --

    def begin(self, is_last: bool) -> None:
        """A new snapshot.  In the last one, references to rows that are not there are damage."""
        self.is_last = is_last
        self._missing = []

    def miss(self, sentence: str) -> None:
        if sentence not in self._missing and len(self._missing) < MOST_SENTENCES:
            self._missing.append(sentence)

    def miss_if_last(self, sentence: str) -> None:
        if self.is_last:
            self.miss(sentence)

    def damage(self, sentence: str) -> None:
        """Something that will not be looked at again."""
        if sentence not in self._damage and len(self._damage) < MOST_SENTENCES:
            self._damage.append(sentence)

    def missing(self) -> tuple[str, ...]:
        return tuple(self._missing + self._damage)

    def _is_known(self, row: int, rows: int, table: Kind) -> bool:
        """Whether a reference leads to a row; raises _NotYet while it still may."""
        if row < rows:
            return True
        if not self.is_last:
            raise _NotYet
        self.damage(f"Rows of the table {_name(table)} name what is not there.")
        return False

    # -- definitions --

    def _row_by_row(self, take: Callable[[int, Sequence[int]], None]) -> Taker:
        def take_rows(owner: int, first: int, columns: list[Column]) -> int:
            taken = 0
            try:
                for row in zip(*columns, strict=True):
                    take(first + taken, row)
                    taken += 1
            except _NotYet:
                pass
            return taken

        return take_rows

    def _take_text(self, owner: int, first: int, columns: list[Column]) -> int:
        self.text.extend(bytes(max(0, first - len(self.text))))
        self.text[first : first + len(columns[0])] = columns[0].tobytes()
        return len(columns[0])

    def _take_string(self, row: int, cells: Sequence[int]) -> None:
        offset, size = cells
        most = MOST_READINGS_OF_TEXT * len(self.text)
        if not self._is_known(offset + size, len(self.text) + 1, Kind.STRING):
            size = 0
        if self._string_bytes + size > most:
            self.damage("Strings are damaged: they are longer than their text.")
            size = 0
        self._string_bytes += size
        text = self.text[offset : offset + size].decode(errors="surrogateescape")
        _put(self.strings, row, text, "")

    def _path(self, row: int, user: Kind) -> str:
        """A string as os.fsdecode gives it."""
        return self.strings[row] if self._is_known(row, len(self.strings), user) else ""

    def _string(self, row: int, user: Kind) -> str:
        """A string that can be shown anywhere."""
        return _showable(self._path(row, user))

    def _take_source(self, row: int, cells: Sequence[int]) -> None:
        name, kind, text, low, high = cells
        source = Source(
            name=self._path(name, Kind.SOURCE),
            kind=self._string(kind, Kind.SOURCE),
            text=self._string(text, Kind.SOURCE),
            hash=high << 32 | low,
        )
        _put(self.sources, row, source, Source("", ""))

    def _take_function(self, row: int, cells: Sequence[int]) -> None:
        source, name, kind, first_line, last_line, first_slot, slots = cells
        kind_name = self._string(kind, Kind.FUNCTION)
        function_name = self._string(name, Kind.FUNCTION)
        known_source = source if self._is_known(source, len(self.sources), Kind.FUNCTION) else None
        lines_are_sane = first_line + slots <= MOST_LINE and last_line <= MOST_LINE
        if not lines_are_sane:
            self.damage("Functions are damaged: they have lines beyond belief.")
            first_line = last_line = 0
        if not lines_are_sane or not self._claim(first_slot, slots, Kind.FUNCTION):
            first_slot = slots = 0
        function = Function(known_source, function_name, kind_name, first_line, last_line, first_slot, slots)
        _put(self.functions, row, function, None)
        _put(self._run_slots, row, 0 if kind_name == "native" else slots, 0)

    def _take_thread(self, row: int, cells: Sequence[int]) -> None:
        kind, name, parent = cells
        kind_name, thread_name = self._string(kind, Kind.THREAD), self._string(name, Kind.THREAD)
        _put(self.threads, row, Thread(kind_name, thread_name, min(parent, row)), Thread("", "", 0))

    def _take_vm_state(self, row: int, cells: Sequence[int]) -> None:
        letter, name = (self._string(cell, Kind.VM_STATE) for cell in cells)
        if row < MOST_STATES:
            _put(self.vm_states, row, VmState(letter, name), VmState("", ""))

    def _take_zone(self, row: int, cells: Sequence[int]) -> None:
        _put(self.zones, row, self._string(cells[0], Kind.ZONE), "")

    def _take_name(self, row: int, cells: Sequence[int]) -> None:
        function, name = cells
        better_name = self._string(name, Kind.NAME)
        if self._is_known(function, len(self.functions), Kind.NAME):
            known = self.functions[function]
            if known is not None:
                self.functions[function] = replace(known, name=better_name)

    def _take_source_text(self, owner: int, first: int, columns: list[Column]) -> int:
        self.texts[owner] = self.texts.get(owner, b"") + columns[0].tobytes()
        return len(columns[0])

    def states_for(self, columns: int) -> tuple[VmState, ...]:
        """A VM state for each column of samples, also where its definition is missing."""
        unknown = [VmState("?", f"state {column}") for column in range(len(self.vm_states), columns)]
        return tuple((self.vm_states + unknown)[:columns])

    # -- line slots --

    def see_slots(self, slots: int) -> None:
        self._claimed.extend(bytes(max(0, slots - len(self._claimed))))

    def _claim(self, first: int, slots: int, user: Kind) -> bool:
        """Gives a run of slots to one owner; slot 0 of the file is nobody's, and stands for "no room"."""
        if not slots or not first:
            return False
        if not self._is_known(first + slots, len(self._claimed) + 1, user):
            return False
        if self._claimed.find(1, first, first + slots) >= 0:
            self.damage("Runs of line slots overlap: some lines are missing.")
            return False
        self._claimed[first : first + slots] = b"\1" * slots
        return True

    def line_slots(self, counters: list[Column]) -> LineSlots:
        """One column: hits; three: and times; four: and instructions."""
        if self._claimed and not counters:
            counters = [Column("Q")]  # somebody shortened the file since
        return LineSlots(*_fitted(counters, len(self._claimed)))

    # -- the tracer's tree --

    def _take_calls(self, owner: int, first: int, columns: list[Column]) -> int:
        functions = columns[2]
        inner_line = functions.tobytes()[3 if sys.byteorder == "little" else 0 :: 4].translate(_HIGH_BIT)
        columns[2] = Column("I", [function & FUNCTION_MASK for function in functions])
        rows = self._sound_rows(first, columns[0], columns[2])
        if max(columns[1], default=0) >= max(1, len(self._claimed)):
            columns[1] = _known(columns[1], len(self._claimed), 0)
            self.damage("Rows of the call tree are damaged: they were called from lines that are not there.")
        for mine, new, void in zip(self.calls, columns, (0, 0, NO_FUNCTION, 0, 0), strict=True):
            _place(mine, first, new[:rows], void)
        self.inner_line.extend(bytes(max(0, first - len(self.inner_line))))
        self.inner_line[first : first + rows] = inner_line[:rows]
        self._claim_runs(range(first, first + rows))
        return rows

    def _sound_rows(self, first: int, parent: Column, function: Column) -> int:
        """How many rows may be entered; in the last snapshot damaged ones are repaired, and all may."""
        if first == 0:
            parent[0], function[0] = 0, NO_FUNCTION
        start = 1 if first == 0 else 0
        rows = range(first + start, first + len(parent))
        functions = len(self.functions)
        if all(map(lt, parent[start:], rows)) and max(function[start:], default=0) < functions:
            return len(parent)
        sound = 0
        for row in range(first, first + len(parent)):
            here = row - first
            if row and (parent[here] >= row or functions <= function[here] != NO_FUNCTION):
                if not self.is_last:
                    return sound
                self.damage("Rows of the tree are damaged: what they counted stands at the root.")
                parent[here], function[here] = 0, NO_FUNCTION
            sound += 1
        return sound

    def _claim_runs(self, rows: range) -> None:
        """Checks every via, and the run of slots of each row that must have one."""
        parent, _, function, first_slot, via = self.calls
        run_slots = self._run_slots
        for row in compress(rows, via[rows.start : rows.stop]):
            outer = via[row]
            owner = function[row]
            if outer > row or owner == NO_FUNCTION or function[parent[outer]] != owner:
                self.damage("Rows of the call tree are damaged: their outer call is not there.")
                via[row] = first_slot[row] = 0
            elif not run_slots[owner] or not self._claim_own_run(first_slot[row], run_slots[owner]):
                first_slot[row] = 0

    def _claim_own_run(self, first: int, slots: int) -> bool:
        claimed = self._claimed
        if first and first + slots <= len(claimed) and claimed.find(1, first, first + slots) < 0:
            claimed[first : first + slots] = b"\1" * slots
            return True
        return False

    def call_tree(self, published: tuple[range, ...], counters: list[Column], at_work: int) -> CallTree:
        parent, call_slot, function, first_slot, via = (column[:] for column in self.calls)
        calls, self_ticks, off_cpu_ticks, *more = _fitted(
            counters or [Column("Q") for _ in range(3)], len(parent)
        )
        return CallTree(
            published=published,
            row_at_work=at_work if at_work < len(parent) else 0,
            parent=parent,
            call_slot=call_slot,
            function=function,
            first_slot=first_slot,
            via=via,
            inner_line=bytes(self.inner_line),
            calls=calls,
            self_ticks=self_ticks,
            off_cpu_ticks=off_cpu_ticks,
            instructions=more[0] if more else None,
        )

    # -- the sampler's tree --

    def _take_frames(self, owner: int, first: int, columns: list[Column]) -> int:
        parent, function, line, zone = columns
        if max(zone, default=0) > len(self.zones) or max(line, default=0) >= MOST_LINE:
            zone, line = _known(zone, len(self.zones) + 1, 0), _known(line, MOST_LINE, 0)
            self.damage("Rows of the frame tree are damaged: they name zones or lines that are not there.")
        function = Column("I", [NO_FUNCTION if z else f for f, z in zip(function, zone, strict=True)])
        rows = self._sound_rows(first, parent, function)
        new = (parent, function, line, zone)
        for mine, column, void in zip(self.frames, new, (0, NO_FUNCTION, 0, 0), strict=True):
            _place(mine, first, column[:rows], void)
        return rows

    def frame_tree(self, published: tuple[range, ...], counters: list[Column]) -> FrameTree:
        parent, function, line, zone = (column[:] for column in self.frames)
        samples = tuple(_fitted(counters, len(parent)))
        return FrameTree(published, parent, function, line, zone, samples)


_HIGH_BIT = bytes(byte >> 7 for byte in range(256))


def _name(kind: int) -> str:
    return Kind(kind).name.lower().replace("_", " ")


def _showable(text: str) -> str:
    """Bytes that are no UTF-8 become question marks."""
    return text if text.isascii() else text.encode(errors="surrogateescape").decode(errors="replace")


def _known(column: Column, limit: int, void: int) -> Column:
    return Column(column.typecode, [cell if cell < limit else void for cell in column])


def _pad(column: Column, rows: int, void: int = 0) -> None:
    """Holes up to a row."""
    column.extend(Column(column.typecode, [void]) * max(0, rows - len(column)))


def _place(column: Column, first: int, rows: Column, void: int) -> None:
    """Enters rows at their place: behind the others, or into a hole."""
    _pad(column, first, void)
    column[first : first + len(rows)] = rows


_Row = TypeVar("_Row")


def _put(rows: list[_Row], row: int, value: _Row, void: _Row) -> None:
    """The same for one row of a small table."""
    rows.extend([void] * (row + 1 - len(rows)))
    rows[row] = value


def _fitted(columns: Iterable[Column], rows: int) -> Iterator[Column]:
    """Counters cut or filled up to the rows of their tree."""
    for column in columns:
        del column[rows:]
        _pad(column, rows)
        yield column


# ---- Header ----------------------------------------------------------------------------------


def _header(file: FileIO, path: str | Path) -> Header:
    page = _read_at(file, 0, HEADER_BYTES)
    if page[: len(MAGIC)] != MAGIC[: max(1, len(page))]:
        what = "is not a heat file" if page else "is empty, not a heat file"
        raise HeatFileError("not-a-heat-file", f"{path} {what}: give one that 'lineheat run' wrote.")
    if len(page) < HEADER_BYTES:
        raise HeatFileError(
            "heat-file-cut",
            f"{path} is cut at byte {len(page)}, within its header: nothing in it can be read, record again.",
        )
    header = Header(*HEADER.unpack_from(page))
    if header.version != VERSION:
        raise HeatFileError(
            "other-heat-file-version",
            f"{path} is a heat file of version {header.version}, this lineheat reads version {VERSION}: "
            "use the lineheat that wrote it.",
        )
    if header.header_bytes != HEADER_BYTES:
        raise _damaged(path, 12)
    return header


def _damaged(path: str | Path, at: int) -> HeatFileError:
    return HeatFileError(
        "heat-file-damaged", f"{path} is damaged at byte {at}: use a copy that is whole, or record again."
    )


def _recording(header: Header) -> Recording:
    ns_per_tick = _ns_per_tick(header)
    return Recording(
        mode=_words(header.mode),
        runtime=_words(header.runtime),
        pid=header.pid,
        number=header.recording,
        state=_state(header),
        exit=_exit(header),
        start_wall_ns=header.start_wall_ns or None,
        wall_ns=_wall_ns(header),
        cpu_ns=_span(header.start_cpu_ns, header.now_cpu_ns),
        paused_ns=header.paused_ns,
        requested_interval_ns=header.requested_interval_ns or None,
        samples=header.samples,
        ns_per_tick=ns_per_tick,
        line_event_ns=_event_ns(header.line_event_ticks_x16, ns_per_tick),
        call_event_ns=_event_ns(header.call_event_ticks_x16, ns_per_tick),
        losses=Losses(*(getattr(header, loss.name) for loss in fields(Losses))),
        note=_words(header.note),
        missing=() if header.state < len(STATES) else (f"The state word is damaged (byte {STATE_AT}).",),
    )


def _state(header: Header) -> State:
    return STATES[header.state] if header.state < len(STATES) else State.STOPPED


def _exit(header: Header) -> Exit | None:
    match header.exit_kind:
        case 1:
            return ExitStatus(header.exit_value)
        case 2:
            return ExitSignal(header.exit_value)
        case _:
            return None


def _span(start: int, end: int) -> int | None:
    """Nanoseconds between two readings of a clock; None if the later one was never taken."""
    return end - start if end and 0 <= end - start < MOST_COUNT else None


def _wall_ns(header: Header) -> int | None:
    """From start to stop, or to the last sign of life, without the pauses."""
    if not header.start_monotonic_ns:
        return None
    end = header.stop_monotonic_ns or max(header.now_monotonic_ns, header.start_monotonic_ns)
    wall_ns = _span(header.start_monotonic_ns, end)
    return None if wall_ns is None else max(0, wall_ns - header.paused_ns)


def _ns_per_tick(header: Header) -> float | None:
    """The tick rate, if it can be one of a clock: from 1 kHz to 1 THz."""
    ticks = header.now_ticks - header.first_ticks
    ns = header.now_monotonic_ns - header.first_monotonic_ns
    if ticks <= 0 or ns <= 0 or not 1e-3 <= ns / ticks <= 1e6:
        return None
    return ns / ticks


def _event_ns(ticks_x16: int, ns_per_tick: float | None) -> float | None:
    if not ticks_x16 or ns_per_tick is None or ticks_x16 >= MOST_COUNT:
        return None
    return ticks_x16 / 16 * ns_per_tick


def _words(field: bytes) -> str:
    return field.partition(b"\0")[0].decode(errors="replace")


# ---- Files -----------------------------------------------------------------------------------


def _open(path: str | Path, mode: str) -> FileIO:
    try:
        return FileIO(path, mode)
    except OSError as error:
        raise _refused("open", path, error) from error


def _size(file: FileIO) -> int:
    return file.seek(0, 2)


def _number_at(file: FileIO, at: int) -> int:
    return int.from_bytes(_read_at(file, at, 8), "little")


def _read_at(file: FileIO, at: int, size: int) -> bytes:
    content = bytearray(size)
    return bytes(content[: _read_into(file, at, content)])


def _read_into(file: FileIO, at: int, buffer: Column | bytearray) -> int:
    """Fills the buffer as far as the file goes; returns bytes read."""
    view = memoryview(buffer).cast("B")
    done = 0
    try:
        file.seek(at)
        while done < len(view) and (read := file.readinto(view[done:])):
            done += read
    except OSError as error:
        raise _refused("read", file.name, error) from error
    return done


def _write_at(file: FileIO, at: int, content: bytes) -> None:
    view = memoryview(content)
    try:
        file.seek(at)
        while view:
            view = view[file.write(view) :]
    except OSError as error:
        raise _refused("write", file.name, error) from error


def _refused(verb: str, path: object, error: OSError) -> HeatFileError:
    what_to_do = "check its name, its permissions and the room on its disk"
    return HeatFileError("heat-file-not-accessible", f"cannot {verb} {path}: {error.strerror}; {what_to_do}.")
