"""lineheat sessions: what runs under the profiler, or ran, newest first."""

import json
import sys
import time
from pathlib import Path

from rich.table import Table

from lineheat.cli.options import Options
from lineheat.cli.terminal import printable, whole_console
from lineheat.heatfile import read_recording
from lineheat.model.errors import LineheatError
from lineheat.session.folder import SessionFolder, SessionRecord, recordings
from lineheat.session.folder import sessions as all_sessions
from lineheat.session.runner import adopt_abandoned


def sessions(options: Options) -> int:
    adopt_abandoned()
    found = [(folder.record, state_of(folder)) for folder in all_sessions()]
    if options.json:
        json.dump({"format": 1, "sessions": [_row(*entry) for entry in found]}, sys.stdout)
        sys.stdout.write("\n")
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("session", "began", "state", "mode", "runtime", "script", "profile"):
        table.add_column(heading, no_wrap=True)
    for record, state in found:
        began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.start_wall_ns / 1e9))
        where = (printable(record.script), printable(record.profile))
        table.add_row(record.id, began, state, record.mode, record.runtime, *where)
    whole_console().print(table if found else "nothing has been recorded yet")
    return 0


def state_of(folder: SessionFolder) -> str:
    """As the last recording says it; "gone" if its file is not there any more."""
    try:
        return read_recording(recordings(Path(folder.record.profile))[-1]).state.value
    except LineheatError:
        return "gone"


def _row(record: SessionRecord, state: str) -> dict[str, object]:
    return {
        "id": record.id,
        "script": record.script,
        "mode": record.mode,
        "runtime": record.runtime,
        "state": state,
        "profile": record.profile,
        "start_wall_ns": record.start_wall_ns,
        "pid": record.target.pid if record.target else None,
    }
