"""Everything read from one heat file at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lineheat.model.recording import Recording
from lineheat.model.tables import (
    CallTree,
    Events,
    FrameTree,
    Function,
    LineSlots,
    Source,
    Thread,
    Timeline,
    VmState,
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Immutable: nobody writes to a column that stands here.

    Every reference was checked: it names a row that is here.  Counters may be a
    little newer than one another when the target ran on while they were read.
    """

    recording: Recording
    sources: tuple[Source, ...]
    functions: tuple[Function | None, ...]  # None = a hole
    threads: tuple[Thread, ...]
    vm_states: tuple[VmState, ...]  # one for each column of the frames' samples
    zones: tuple[str, ...]
    lines: LineSlots
    calls: CallTree
    frames: FrameTree
    timelines: tuple[Timeline, ...] = ()
    events: tuple[Events, ...] = ()
    texts: Mapping[int, bytes] = field(default_factory=dict)  # by source row: the text that ran
