"""Start, pause, resume, stop: what the control word asks of a running target.

The word is written, and the state word read until it answers.  A target that
sleeps or waits for input answers at its next instruction.
"""

import time
from dataclasses import dataclass
from pathlib import Path

from lineheat import heatfile
from lineheat.model.errors import LineheatError
from lineheat.model.recording import Control, State
from lineheat.session.folder import SessionFolder, recordings
from lineheat.session.linux import end_process

ANSWER_WITHIN_S = 3.0
LOOK_EVERY_S = 0.005
KILL_AFTER_S = 3.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the target is doing now."""

    state: State
    profile: Path  # of the recording that is meant
    has_answered: bool  # False: it will at its next instruction


@dataclass(frozen=True, slots=True)
class Wish:
    """A verb: in which states it makes sense, and the state that it leads to."""

    verb: str
    control: Control
    from_states: tuple[State, ...]
    to_state: State
    otherwise: str


START = Wish(
    "start",
    Control.RUN,
    (State.ARMED, State.STOPPED),
    State.RECORDING,
    "only an armed or stopped session starts",
)
PAUSE = Wish("pause", Control.PAUSE, (State.RECORDING,), State.PAUSED, "only a recording can be paused")
RESUME = Wish("resume", Control.RUN, (State.PAUSED,), State.RECORDING, "only a pause can be resumed")
STOP = Wish(
    "stop",
    Control.STOP,
    (State.ARMED, State.RECORDING, State.PAUSED),
    State.STOPPED,
    "there is no recording to stop",
)


def ask(session: SessionFolder, wish: Wish, within_s: float = ANSWER_WITHIN_S) -> Answer:
    """Raises LineheatError if the target is gone, or the wish makes no sense now."""
    _check_alive(session)
    profile = recordings(Path(session.record.profile))[-1]
    state = heatfile.read_recording(profile).state
    if state not in wish.from_states:
        raise LineheatError(
            "wrong-state",
            f"session {session.record.id} is {state.value}, so it cannot {wish.verb}: {wish.otherwise}",
        )
    heatfile.write_control(profile, wish.control)
    return _await_answer(session, profile, wish, within_s)


def terminate(session: SessionFolder) -> None:
    """Ends the target: TERM, after 3 s KILL."""
    _check_alive(session)
    target = session.record.target
    if target:
        end_process(target.pid, KILL_AFTER_S)


def _await_answer(session: SessionFolder, asked: Path, wish: Wish, within_s: float) -> Answer:
    """A start after a stop opens a recording of its own, in the file after the one that was asked."""
    deadline = time.monotonic() + within_s
    opens_next = heatfile.read_recording(asked).state is State.STOPPED and wish is START
    while True:
        profile = recordings(Path(session.record.profile))[-1]
        state = heatfile.read_recording(profile).state
        has_answered = state is wish.to_state and (profile != asked or not opens_next)
        if has_answered or time.monotonic() > deadline:
            return Answer(state, profile, has_answered)
        if not (session.record.target and session.record.target.is_alive):
            return Answer(state, profile, False)
        time.sleep(LOOK_EVERY_S)


def _check_alive(session: SessionFolder) -> None:
    target = session.record.target
    if session.record.finished or not (target and target.is_alive):
        raise LineheatError(
            "target-gone",
            f"the program of session {session.record.id} has ended; 'lineheat show' has its figures",
        )
