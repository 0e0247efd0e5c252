"""Tables of a profile.

A row is a number.  Small tables are tuples of values; tables that may hold 10^5
rows are columns, one array each, all of the same length.  Parents precede their
children: parent[row] < row, but for row 0, the root, which is its own parent.

A table may have holes, rows that nobody has published (yet).  A hole holds
nothing: parent 0, NO_FUNCTION, all counts 0.  'published' lists the other rows.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

NO_FUNCTION = 0x7FFFFFFF
"""In a function column: the root, a zone, a hole."""

if TYPE_CHECKING:
    Column: TypeAlias = "array[int]"
else:
    Column = array  # cannot be subscripted before Python 3.12


@dataclass(frozen=True, slots=True)
class Source:
    """A file, a string that was compiled, or native code; kinds are an open list."""

    name: str  # path of a file as the runtime knows it; undecodable bytes as os.fsdecode has them
    kind: str  # "file", "string", "native", ...
    text: str = ""  # of a string: its beginning
    hash: int = 0  # 64 bits of the content; 0 = not known


@dataclass(frozen=True, slots=True)
class Function:
    """Name, source and first line; its lines count in a run of slots.

    Slot 0 of the run is "no line yet", or all of a native function; slot k is
    line first_line - 1 + k.  Runs lie inside the table of slots and never overlap.
    """

    source: int | None  # row of the sources
    name: str
    kind: str  # "native" has no lines; other kinds are an open list
    first_line: int
    last_line: int
    first_slot: int
    slots: int  # 0 = no run


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread or coroutine."""

    kind: str
    name: str
    parent: int


@dataclass(frozen=True, slots=True)
class VmState:
    """What the virtual machine was at when it was sampled."""

    letter: str
    name: str


@dataclass(frozen=True, slots=True)
class LineSlots:
    """Counters of lines, by slot; None where the mode does not count.

    Slot 0 belongs to nobody.
    """

    hits: Column | None = None
    self_ticks: Column | None = None
    off_cpu_ticks: Column | None = None
    instructions: Column | None = None


@dataclass(frozen=True, slots=True)
class CallTree:
    """Grouped stacks of a tracer: row i says that function[i] was called from row parent[i].

    call_slot[i] is the calling line, in the run of the parent's function.  via[i]
    is the row just under the nearest row above with the same function, 0 if there
    is none; a row with a via that is not native counts its lines in a run of its
    own, first_slot[i] (0 = it has none).  inner_line[i] is 1 where a row above was
    called from the same line.

    What row_at_work counted for itself since it was entered, its lines have
    already, and the row not yet.
    """

    published: tuple[range, ...]
    row_at_work: int
    parent: Column
    call_slot: Column
    function: Column
    first_slot: Column
    via: Column
    inner_line: bytes
    calls: Column
    self_ticks: Column
    off_cpu_ticks: Column
    instructions: Column | None


@dataclass(frozen=True, slots=True)
class FrameTree:
    """Grouped stacks of a sampler: row i is function[i] at line[i], on top of row parent[i].

    A zone is a row without a function: zone[i] is its row + 1.  samples[s][i] are
    the ticks seen in row i, in VM state s.
    """

    published: tuple[range, ...]
    parent: Column
    function: Column
    line: Column
    zone: Column
    samples: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The last samples of one thread, oldest first."""

    thread: int
    delta_ns: Column  # since the row before
    frame: Column
    heap_bytes: Column


@dataclass(frozen=True, slots=True)
class Events:
    """The last events of one thread, oldest first; the kind explains the four values."""

    thread: int
    monotonic_ns: Column
    kind: Sequence[str]
    values: tuple[Column, Column, Column, Column]
