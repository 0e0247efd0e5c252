"""The runner: a small process that owns a target.

It starts the target with the agent armed, waits for it, keeps the text that
ran, and finishes the heat file.  The target's output and input are its own; if
the runner is killed, the target runs on, and the next lineheat process adopts
what is left (adopt_abandoned).
"""

import hashlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from lineheat import heatfile
from lineheat.model.errors import LineheatError
from lineheat.model.recording import Exit, ExitSignal, ExitStatus, State
from lineheat.session.folder import (
    Process,
    SessionFolder,
    abandoned_sessions,
    create_session,
    forget_old_sessions,
    heat_files,
    recordings,
    save_profile,
)
from lineheat.session.linux import ProcessWatch, original_environment
from lineheat.targets.agent import agent_library
from lineheat.targets.lua import Command, agent_command
from lineheat.targets.runtime import Runtime

LOOK_EVERY_S = 0.25
MOST_SOURCE_BYTES = 10 << 20

OnLook = Callable[[SessionFolder], None]
"""Called now and then while the target runs."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to run, and how."""

    runtime: Runtime
    script: Path
    arguments: Sequence[str]
    mode: str
    output: Path | None = None  # None: the session folder
    interval_us: int | None = None  # sampler; None: the agent's own
    paused: bool = False  # armed, and recording begins when it is told to

    def configuration(self, profile: str) -> str:
        """What the agent reads when it is armed."""
        lines = [f"file={profile}", f"mode={self.mode}"]
        if self.interval_us is not None:
            lines.append(f"interval_us={self.interval_us}")
        if self.paused:
            lines.append("paused=1")
        return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class RunResult:
    """How it went."""

    session: SessionFolder
    exit_status: int  # as a shell has it: 128 + signal
    was_armed: bool  # else the agent has said why not, and the script was not run
    was_recorded: bool  # the script has begun

    @property
    def saved_elsewhere(self) -> bool:
        """The place that was asked for could not be written."""
        record = self.session.record
        return record.output is not None and record.profile != record.output


class SourceKeeper:
    """Copies the text of each source when it is first named, by content hash.

    A file that changed after the recording began may not be what ran: it is left
    out, and its figures stay unverified.
    """

    def __init__(self, session: SessionFolder) -> None:
        self._session = session
        self.hashes: dict[str, str] = {}  # by absolute path

    def look(self) -> None:
        """At the recording that is live."""
        for path in self._named_files(Path(self._session.record.profile)).values():
            self._keep(path)

    def texts(self, profile: Path) -> dict[int, bytes]:
        """What is kept of a recording's sources, by source row."""
        named = {row: self.hashes.get(path) for row, path in self._named_files(profile).items()}
        return {row: (self._session.sources / digest).read_bytes() for row, digest in named.items() if digest}

    def _named_files(self, profile: Path) -> dict[int, str]:
        try:
            sources = heatfile.read_sources(profile)
        except LineheatError:
            return {}  # nothing is there yet
        named = {row: source.name for row, source in enumerate(sources) if source.kind == "file"}
        return {row: os.path.abspath(name) for row, name in named.items()}

    def _keep(self, path: str) -> None:
        if path in self.hashes:
            return
        text = _read_regular(Path(path), changed_before_ns=self._session.record.start_wall_ns)
        if text is None:
            return
        digest = hashlib.sha256(text).hexdigest()
        kept = self._session.sources / digest
        if not kept.exists():
            with open(os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(text)
        self.hashes[path] = digest


def run(request: RunRequest, on_look: OnLook | None = None) -> RunResult:
    """Runs the script to its end under the agent.  Raises LineheatError if it cannot be started."""
    _check_script(request.script)
    if request.output:
        _check_output(request.output)
    agent = agent_library()
    adopt_abandoned()
    forget_old_sessions()
    session = create_session(
        str(request.script.absolute()),
        request.mode,
        request.runtime.name,
        request.output.absolute() if request.output else None,
    )
    configuration = request.configuration(session.record.profile)
    command = agent_command(request.runtime, agent, configuration, str(request.script), request.arguments)
    return _run_to_end(session, command, on_look)


def adopt_abandoned() -> list[SessionFolder]:
    """Saves what sessions left whose runner was killed; how their targets ended is not known."""
    return [_finish(folder, None) for folder in abandoned_sessions()]


def _run_to_end(session: SessionFolder, command: Command, on_look: OnLook | None) -> RunResult:
    """Until all is saved, Ctrl-C is the target's affair."""
    with _interrupts_left_to_target() as interrupts:
        process = _start(command)
        interrupts.target = process
        session = session.with_record(target=Process.of(process.pid))
        keeper = SourceKeeper(session)
        _wait(process, lambda: _look(session, keeper, on_look))
        how = _exit_of(process.wait())
        keeper.look()
        starts = [_start_wall_ns(profile) for profile in recordings(Path(session.record.profile))]
        session = _finish(session, how, keeper)
    status = how.status if isinstance(how, ExitStatus) else 128 + how.signal
    return RunResult(session, status, was_armed=starts[0] is not None, was_recorded=any(starts))


def _start(command: Command) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(command.arguments, executable=command.program, env=original_environment())
    except OSError as error:
        raise LineheatError(
            "interpreter-does-not-start",
            f"{command.program} does not start: {error.strerror}; 'lineheat runtimes' lists what does",
        ) from error


def _wait(process: "subprocess.Popen[bytes]", look: Callable[[], None]) -> None:
    watch = ProcessWatch(process.pid)
    while not watch.ended_within(LOOK_EVERY_S):
        look()
    watch.close()


def _look(session: SessionFolder, keeper: SourceKeeper, on_look: OnLook | None) -> None:
    keeper.look()
    if on_look:
        on_look(session)


def _finish(session: SessionFolder, how: Exit | None, keeper: SourceKeeper | None = None) -> SessionFolder:
    """Writes what only the runner knows into the heat files, and saves them."""
    live = Path(session.record.profile)
    if not live.exists():
        return session.with_record(finished=True)
    keeper = keeper or SourceKeeper(session)
    state = State.DIED if how is None or isinstance(how, ExitSignal) else State.FINISHED
    for profile in heat_files(live):
        _finish_file(profile, how, state, keeper)
    return save_profile(session.with_record(sources=dict(keeper.hashes)))


def _finish_file(profile: Path, how: Exit | None, state: State, keeper: SourceKeeper) -> None:
    try:
        heatfile.write_exit(profile, how, state)
        heatfile.embed_sources(profile, keeper.texts(profile))
    except LineheatError:
        return  # too damaged to be finished: it is saved as it is, and its reader says what is wrong


def _start_wall_ns(live: Path) -> int | None:
    """When recording began; 0: it has not; None: there is no recording."""
    try:
        return heatfile.read_recording(live).start_wall_ns or 0
    except LineheatError:
        return None


def _exit_of(return_code: int) -> Exit:
    return ExitStatus(return_code) if return_code >= 0 else ExitSignal(-return_code)


def _read_regular(path: Path, changed_before_ns: int) -> bytes | None:
    """None: not a regular file, too large, or changed since."""
    try:
        status = path.stat()
        if not path.is_file() or status.st_size > MOST_SOURCE_BYTES or status.st_mtime_ns > changed_before_ns:
            return None
        return path.read_bytes()
    except OSError:
        return None


def _check_script(script: Path) -> None:
    try:
        if script.is_dir():
            raise LineheatError("no-script", f"{script} is a folder; name the script in it that is to run")
        with script.open("rb"):
            pass
    except OSError as error:
        raise LineheatError(
            "no-script", f"{script} cannot be read: {error.strerror}; check the path"
        ) from error


def _check_output(output: Path) -> None:
    folder = output.absolute().parent
    if output.is_dir():
        raise LineheatError("output", f"{output} is a folder; name the file that is to hold the profile")
    if output.exists() and output.stat().st_size > 0 and not heatfile.is_heat_file(output):
        raise LineheatError(
            "output", f"{output} is there and is no heat file, so it is not overwritten; name another"
        )
    if not folder.is_dir():
        raise LineheatError("output", f"there is no folder {folder} to save {output.name} in; make it first")
    if not os.access(folder, os.W_OK):
        raise LineheatError("output", f"{folder} cannot be written, so {output.name} cannot be saved there")


class _Interrupts:
    """Ctrl-C reaches the target from the terminal; the second one sends TERM, the third KILL."""

    def __init__(self) -> None:
        self.target: subprocess.Popen[bytes] | None = None
        self.count = 0

    def on_interrupt(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.target and self.count > 1:
            self.target.send_signal(signal.SIGTERM if self.count == 2 else signal.SIGKILL)

    def on_terminate(self, number: int, frame: FrameType | None) -> None:
        if self.target:
            self.target.send_signal(number)


@contextmanager
def _interrupts_left_to_target() -> Iterator[_Interrupts]:
    interrupts = _Interrupts()
    handlers = {
        signal.SIGINT: signal.signal(signal.SIGINT, interrupts.on_interrupt),
        signal.SIGTERM: signal.signal(signal.SIGTERM, interrupts.on_terminate),
    }
    try:
        yield interrupts
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
