"""Linux: where live files lie in memory, and how a process is waited for and told from another.

The one Python file that knows the system; another system brings its own with
the same functions.
"""

import os
import select
import signal
import stat
from pathlib import Path

LEAST_FREE_BYTES = 64 << 20  # below this a live file does not go into memory-backed storage


def memory_folder() -> Path | None:
    """A private folder in memory-backed storage with room to grow; None: there is none.

    Forced write-back of a mapped file costs the target up to a third of its speed,
    so live files do not lie on a disk if that can be helped.
    """
    candidates = []
    if runtime_folder := os.environ.get("XDG_RUNTIME_DIR"):
        candidates.append(Path(runtime_folder) / "lineheat")
    candidates.append(Path(f"/dev/shm/lineheat-{os.getuid()}"))
    return next((folder for folder in candidates if _is_usable(folder)), None)


def _is_usable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        room = os.statvfs(folder)
    except OSError:
        return False
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return is_ours and room.f_bavail * room.f_frsize >= LEAST_FREE_BYTES


def original_environment() -> dict[bytes, bytes]:
    """The environment as it was given to us.

    Where no locale is set, Python sets LC_CTYPE in its own (PEP 538), and a target
    would inherit that.
    """
    block = Path("/proc/self/environ").read_bytes()
    pairs = (entry.partition(b"=") for entry in block.split(b"\0") if b"=" in entry)
    return {name: value for name, _, value in pairs}


def process_mark(pid: int) -> str | None:
    """What tells a process from a later one with the same number; None: it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    is_zombie = fields[0] in "ZX"
    return None if is_zombie else fields[19]  # start time, in clock ticks since boot


def end_process(pid: int, kill_after_s: float) -> None:
    """TERM, then KILL if it does not end; returns when it has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        if not poll.poll(int(kill_after_s * 1000)):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            poll.poll()
    except ProcessLookupError:
        return  # it ended in between
    finally:
        os.close(handle)


class ProcessWatch:
    """Waits for a process that may or may not be a child of ours."""

    def __init__(self, pid: int) -> None:
        self._handle = os.pidfd_open(pid)
        self._poll = select.poll()
        self._poll.register(self._handle, select.POLLIN)

    def ended_within(self, seconds: float) -> bool:
        return bool(self._poll.poll(int(seconds * 1000)))

    def close(self) -> None:
        os.close(self._handle)
