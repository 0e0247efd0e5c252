"""One recording: which target, which mode, how long, what was lost.

Times end in _ns; CPU and wall are always said.  None means "not known".
"""

from dataclasses import dataclass
from enum import Enum


class State(Enum):
    """armed -> recording <-> paused -> stopped -> finished or died."""

    ARMED = "armed"
    RECORDING = "recording"
    PAUSED = "paused"
    STOPPED = "stopped"
    FINISHED = "finished"
    DIED = "died"

    @property
    def is_final(self) -> bool:
        """Nothing will be counted any more; the file is complete."""
        return self in (State.STOPPED, State.FINISHED, State.DIED)


class Control(Enum):
    """What a target is asked to do."""

    RUN = "run"
    PAUSE = "pause"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """The target ended by itself."""

    status: int


@dataclass(frozen=True, slots=True)
class ExitSignal:
    """The target was ended by a signal."""

    signal: int


Exit = ExitStatus | ExitSignal


@dataclass(frozen=True, slots=True)
class Losses:
    """What was lost or folded, each with its own counter."""

    lost_ticks: int = 0  # timer ticks without a sample
    cut_stacks: int = 0  # deeper than the tree goes; counted for their caller's row
    full_tables: int = 0  # rows that found no room
    folded_calls: int = 0  # recursion folded into an outer row
    resyncs: int = 0  # frames found open instead of being seen to open
    evicted_threads: int = 0  # shadow stacks given up
    unseen_states: int = 0  # states or threads that could not be recorded
    dropped_timeline: int = 0  # rows of the ring overwritten
    dropped_events: int = 0
    off_cpu_ticks: int = 0  # preempted, asleep, blocked: in no line's self time
    agent_ticks: int = 0  # the agent's own slow paths: in no line's self time


@dataclass(frozen=True, slots=True)
class Recording:
    """The facts of one recording, without its tables."""

    mode: str
    runtime: str
    pid: int
    number: int  # 1 for the first recording of a target
    state: State
    exit: Exit | None
    start_wall_ns: int | None  # since the epoch
    wall_ns: int | None  # recorded wall time: from start to stop, pauses taken off
    cpu_ns: int | None  # CPU time of the recorded thread from start to stop
    paused_ns: int
    requested_interval_ns: int | None
    samples: int  # stacks taken
    ns_per_tick: float | None
    line_event_ns: float | None  # calibrated cost of one line event
    call_event_ns: float | None  # the same for a call and its return
    losses: Losses
    note: str  # why a recording stopped by itself
    missing: tuple[str, ...] = ()  # sentences: what a cut or damaged file lacks

    @property
    def exit_status(self) -> int | None:
        """As a shell has it: the status, or 128 + signal."""
        match self.exit:
            case ExitStatus(status):
                return status
            case ExitSignal(signal):
                return 128 + signal
            case None:
                return None
