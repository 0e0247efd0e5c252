"""'show --json': one object, whose format others script against and which therefore never changes.

A figure that a mode does not measure is null, not 0.
"""

import json
import sys
from dataclasses import asdict

from lineheat.analysis.view import View

FORMAT = 1


def write_json(view: View, script: str | None) -> None:
    report = {
        "format": FORMAT,
        "session": _session(view, script),
        "lines": [_row(asdict(line)) for line in view.lines],
        "functions": [_row(asdict(function)) for function in view.functions],
        "states": view.states,
    }
    json.dump(report, sys.stdout, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def _session(view: View, script: str | None) -> dict[str, object]:
    recording = view.recording
    return {
        "mode": recording.mode,
        "runtime": recording.runtime,
        "script": script or view.main_file,
        "state": recording.state.value,
        "exit_status": recording.exit_status,
        "wall_ns": recording.wall_ns,
        "cpu_ns": recording.cpu_ns,
        "samples": view.total_samples,
        "lost": recording.losses.lost_ticks if view.is_sampled else None,
        "interval_ns": recording.requested_interval_ns if view.is_sampled else None,
        "overhead_ns": view.overhead_ns,
        "note": recording.note or None,
        "missing": list(recording.missing),
    }


def _row(figures: dict[str, object]) -> dict[str, object]:
    """'chunk' only where there is no file."""
    return {name: value for name, value in figures.items() if name != "chunk" or figures["file"] is None}
