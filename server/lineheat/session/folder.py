"""The session folder: one folder a session, and how any lineheat process finds them.

    $XDG_STATE_HOME/lineheat/sessions/ID/
        session.json    what runs or ran, and where its files are
        sources/HASH    the text that ran, by content hash
        profile.heat    the recording, if it was not saved elsewhere
        output.log      what the target printed, where no terminal shows it

Folders are 0700 and files 0600: nobody else can read or control a session.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from lineheat import heatfile
from lineheat.model.errors import LineheatError
from lineheat.session.linux import memory_folder, process_mark

MOST_SESSIONS = 100
MOST_BYTES = 2 << 30
RECORD_NAME = "session.json"
PROFILE_NAME = "profile.heat"
SOURCES_NAME = "sources"


@dataclass(frozen=True, slots=True)
class Process:
    """A process, and what tells it from a later one with the same number."""

    pid: int
    mark: str | None

    @staticmethod
    def of(pid: int) -> "Process":
        return Process(pid, process_mark(pid))

    @property
    def is_alive(self) -> bool:
        mark = process_mark(self.pid)
        return mark is not None and mark == self.mark


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """What session.json says.  Arguments and environment are not in it: they may hold secrets."""

    id: str
    script: str  # absolute path
    mode: str
    runtime: str
    cwd: str
    start_wall_ns: int  # since the epoch
    profile: str  # where the heat file is now: live, or at the end saved
    output: str | None  # where it is to be saved; None: in the session folder
    runner: Process
    target: Process | None = None
    finished: bool = False
    sources: dict[str, str] = field(default_factory=dict)  # absolute path: content hash


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """One session's folder and its record."""

    path: Path
    record: SessionRecord

    @property
    def sources(self) -> Path:
        return self.path / SOURCES_NAME

    @property
    def saved_profile(self) -> Path:
        """Where the heat file goes when the target has ended."""
        return Path(self.record.output) if self.record.output else self.path / PROFILE_NAME

    def with_record(self, **changes: object) -> "SessionFolder":
        """This folder with a changed record, written to disk."""
        changed = replace(self, record=replace(self.record, **changes))  # type: ignore[arg-type]  # checked by replace
        _write_record(changed.path, changed.record)
        return changed


def sessions_root() -> Path:
    state_home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(state_home) / "lineheat" / "sessions"


def create_session(script: str, mode: str, runtime: str, output: Path | None) -> SessionFolder:
    """A new folder with its record.  Its live profile does not exist yet."""
    now = time.time_ns()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(now / 1e9))
    identity = f"{stamp}-{os.getpid()}"
    path = sessions_root() / identity
    memory = memory_folder()
    live = memory / f"{identity}.heat" if memory else path / PROFILE_NAME
    record = SessionRecord(
        id=identity,
        script=script,
        mode=mode,
        runtime=runtime,
        cwd=os.getcwd(),
        start_wall_ns=now,
        profile=str(live),
        output=str(output) if output else None,
        runner=Process.of(os.getpid()),
    )
    try:
        _make_private(path)
        (path / SOURCES_NAME).mkdir(mode=0o700)
        _write_record(path, record)
    except OSError as error:
        raise LineheatError(
            "session-folder",
            f"the session folder {path} cannot be made: {error.strerror}; set XDG_STATE_HOME",
        ) from error
    return SessionFolder(path, record)


def sessions() -> list[SessionFolder]:
    """All sessions, newest first.  Folders that hold no readable record are none."""
    try:
        names = sorted((entry.name for entry in sessions_root().iterdir()), reverse=True)
    except OSError:
        return []
    found = [_read_folder(sessions_root() / name) for name in names]
    return [folder for folder in found if folder is not None]


def find_session(name: str) -> SessionFolder:
    """The session that an ID or a profile's path names."""
    wanted = os.path.abspath(name)
    for folder in sessions():
        record = folder.record
        own = {record.output, *(str(path) for path in recordings(Path(record.profile)))}
        if record.id == name or wanted in own:
            return folder
    raise LineheatError(
        "no-such-session", f"there is no session {name}; 'lineheat sessions' lists those there are"
    )


def find_profile(name: str) -> Path:
    """The heat file that a path names, or the last recording of a session that an ID or output path names."""
    path = Path(name)
    if path.is_file():
        return path
    wanted = os.path.abspath(name)
    for folder in sessions():
        if folder.record.id == name or folder.record.output == wanted:
            return recordings(Path(folder.record.profile))[-1]
    if path.exists():
        raise LineheatError(
            "not-a-profile", f"{name} is no file; give a profile, or a session's ID from 'lineheat sessions'"
        )
    raise LineheatError(
        "no-such-profile", f"there is no file or session {name}; 'lineheat sessions' lists what was recorded"
    )


def session_of_profile(profile: Path) -> SessionFolder | None:
    """The session that made a heat file; None if it is not (or no longer) known here."""
    wanted = os.path.abspath(profile)
    found = (f for f in sessions() if wanted in map(str, recordings(Path(f.record.profile))))
    return next(found, None)


def save_profile(folder: SessionFolder) -> SessionFolder:
    """Moves the heat files of a target that has ended to where they are to stay.

    If that place cannot be written, they stay in the session folder.
    """
    live = Path(folder.record.profile)
    saved = folder.saved_profile
    files = heat_files(live)
    try:
        move(live, saved)
    except OSError:
        saved = folder.path / PROFILE_NAME
        move(live, saved)
    for file in files[1:]:
        move(file, saved.with_name(saved.stem + file.name[len(live.stem) :]))
    return folder.with_record(profile=str(saved), finished=True)


def heat_files(profile: Path) -> list[Path]:
    """The first recording, then the later ones (STEM.2.heat, …) and those of forked children that have
    ended (STEM.PID.heat, STEM.PID.2.heat, …)."""
    others = [path for path in profile.parent.glob(f"{profile.stem}.*.heat") if _is_complete(path, profile)]
    return [profile, *sorted(others, key=lambda path: [int(word) for word in _numbers(path, profile)])]


def recordings(profile: Path) -> list[Path]:
    """The recordings of the target itself, in order; the last one hears what is asked of the target."""
    pid = _pid_of(profile)
    return [path for path in heat_files(profile) if path == profile or (pid and _pid_of(path) == pid)]


def _numbers(path: Path, profile: Path) -> list[str]:
    """The words between STEM and .heat; empty unless they are numbers."""
    words = path.name[len(profile.stem) + 1 : -len(".heat")].split(".")
    return words if all(word.isascii() and word.isdigit() for word in words) else []


def _is_complete(path: Path, profile: Path) -> bool:
    """One of this target's own, or of a child that is gone."""
    if not _numbers(path, profile):
        return False
    pid = _pid_of(path)
    return pid is not None and (pid == _pid_of(profile) or process_mark(pid) is None)


def _pid_of(path: Path) -> int | None:
    try:
        return heatfile.read_recording(path).pid
    except LineheatError:
        return None


def move(source: Path, target: Path) -> None:
    """Also across file systems; whoever looks sees the old file or the whole new one."""
    if source == target or not source.exists():
        return
    try:
        os.replace(source, target)
    except OSError:
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            shutil.copyfile(source, part)
            part.chmod(0o600)
            os.replace(part, target)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        source.unlink()


def abandoned_sessions() -> Iterator[SessionFolder]:
    """Sessions whose runner and target are both gone, but whose profile was never saved."""
    for folder in sessions():
        record = folder.record
        processes: Sequence[Process | None] = (record.runner, record.target)
        if not record.finished and not any(process and process.is_alive for process in processes):
            yield folder


def forget_old_sessions() -> None:
    """Keeps the newest sessions, in number and in bytes; live ones always."""
    used = 0
    for count, folder in enumerate(sessions()):
        used += _size(folder.path)
        if folder.record.finished and (count >= MOST_SESSIONS or used > MOST_BYTES):
            shutil.rmtree(folder.path, ignore_errors=True)


def _size(folder: Path) -> int:
    return sum(entry.stat().st_size for entry in folder.rglob("*") if entry.is_file())


def _make_private(path: Path) -> None:
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.mkdir(mode=0o700)


def _write_record(path: Path, record: SessionRecord) -> None:
    part = path / f".{RECORD_NAME}.{os.getpid()}"
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(asdict(record), file, indent=1)
    os.replace(part, path / RECORD_NAME)


def _read_folder(path: Path) -> SessionFolder | None:
    try:
        raw = json.loads((path / RECORD_NAME).read_text("utf-8"))
        target = raw.pop("target")
        runner = raw.pop("runner")
        record = SessionRecord(**raw, runner=Process(**runner), target=Process(**target) if target else None)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return SessionFolder(path, record) if record.id == path.name else None
