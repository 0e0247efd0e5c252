"""lineheat run: a script under the profiler, and a report of it on stderr."""

import sys
from pathlib import Path

from lineheat import heatfile
from lineheat.analysis.builder import view_of
from lineheat.cli.options import Options
from lineheat.cli.report import REPORTS, print_summary
from lineheat.cli.terminal import count, duration, signal_name, stderr_console
from lineheat.model.errors import LineheatError
from lineheat.session.folder import SessionFolder, recordings
from lineheat.session.runner import RunRequest, RunResult
from lineheat.session.runner import run as run_target
from lineheat.targets.runtime import choose_runtime


def run(options: Options) -> int:
    """The target's exit status."""
    script = Path(options.script)
    request = RunRequest(
        runtime=choose_runtime(options.runtime, script),
        script=script,
        arguments=options.arguments,
        mode=options.mode,
        output=options.output,
        interval_us=options.interval_us,
        paused=options.paused,
    )
    progress = Progress() if sys.stderr.isatty() and options.report != "none" else None
    result = run_target(request, progress.show if progress else None)
    if progress:
        progress.clear()
    _report(options, result)
    return result.exit_status


def _report(options: Options, result: RunResult) -> None:
    console = stderr_console()
    record = result.session.record
    if not result.was_armed:
        return  # the agent has said why
    if result.saved_elsewhere:
        console.print(
            f"lineheat: {options.output} cannot be written; the profile is in {record.profile}",
            soft_wrap=True,
        )
    if not result.was_recorded and options.paused:
        console.print("lineheat: nothing was recorded: no 'lineheat start' came", soft_wrap=True)
        return
    if not result.was_recorded:
        how = (
            f"exit status {result.exit_status}"
            if result.exit_status < 128
            else signal_name(result.exit_status - 128)
        )
        console.print(
            f"lineheat: nothing was recorded: {options.script} did not begin to run ({how})", soft_wrap=True
        )
        return
    if options.report == "none":
        return
    profiles = recordings(Path(record.profile))
    view = view_of(heatfile.read(profiles[-1]))
    REPORTS[options.report](console, view, options.top)
    print_summary(console, view)
    for profile in profiles:
        console.print(f"profile: {profile}", style="dim", soft_wrap=True)


class Progress:
    """One line on the terminal while a long target runs; never in the way of what the target prints."""

    QUIET_LOOKS = 4  # short runs show nothing

    def __init__(self) -> None:
        self._looks = 0
        self._is_shown = False

    def show(self, session: SessionFolder) -> None:
        self._looks += 1
        if self._looks <= self.QUIET_LOOKS:
            return
        try:
            recording = heatfile.read_recording(session.record.profile)
        except LineheatError:
            return
        wall = duration(recording.wall_ns) if recording.wall_ns else "…"
        self._write(f"lineheat: {recording.state.value}, {wall}{self._rows(session)}")

    def _rows(self, session: SessionFolder) -> str:
        sources = len(heatfile.read_sources(session.record.profile))
        return f", {count(sources)} sources"

    def clear(self) -> None:
        if self._is_shown:
            self._write("")

    def _write(self, line: str) -> None:
        sys.stderr.write(f"\r\x1b[2K{line}")
        sys.stderr.flush()
        self._is_shown = bool(line)
