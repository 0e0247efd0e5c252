"""lineheat annotate: source with hits, self and total in the margin."""

import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from lineheat.analysis.builder import view_of
from lineheat.analysis.figures import LineFigures
from lineheat.analysis.shares import heat_bucket
from lineheat.analysis.view import View
from lineheat.cli.options import Options
from lineheat.cli.sources import SourceText, SourceTexts, read_source
from lineheat.cli.terminal import (
    HEAT_GLYPHS,
    HEAT_STYLES,
    count,
    duration,
    percent,
    printable,
    stdout_console,
)
from lineheat.heatfile import read
from lineheat.model.errors import LineheatError
from lineheat.session.folder import find_profile


def annotate(options: Options) -> int:
    profile = find_profile(options.file)
    view = view_of(read(profile))
    texts = SourceTexts(view, profile)
    console = stdout_console()
    for place in _places(view, options.sources):
        print_annotated(console, view, place, texts.of(place) or read_source(Path(place)))
    return 0


def print_annotated(console: Console, view: View, place: str, text: SourceText) -> None:
    """The whole text; a line that holds parts of several functions shows their sum, and the largest total."""
    figures: dict[int, list[LineFigures]] = {}
    for line in view.lines_of(place):
        figures.setdefault(line.line, []).append(line)
    console.print(Text(printable(place), style="bold"))
    if not text.is_what_ran:
        console.print(Text("the text that ran was not kept: this is what the file says now", style="yellow"))
    console.print(Text(f"  {'self':>6} {'self':>9} {'total':>9} {'hits':>13} {'line':>6}", style="bold"))
    for number, content in enumerate(text.lines, 1):
        if number == len(text.lines) and not content:
            break  # what follows the last line end is no line
        console.print(
            _annotated_line(view, number, figures.get(number, ()), content), no_wrap=True, crop=False
        )


def _annotated_line(view: View, number: int, figures: Sequence[LineFigures], content: str) -> Text:
    if not figures:
        return Text(f"  {'':>6} {'':>9} {'':>9} {'':>13} {number:>6} │ {printable(content)}", style="dim")
    part = sum(view.self_share(line) for line in figures)
    bucket = heat_bucket(part)
    self_ns = _sum([line.self_ns for line in figures])
    total_ns = max(
        (ns for ns in (self_ns, *(line.total_ns for line in figures)) if ns is not None), default=None
    )
    hits = count(_sum([line.hits for line in figures]))
    columns = f"{percent(part):>6} {duration(self_ns):>9} {duration(total_ns):>9} {hits:>13}"
    text = Text(f"{HEAT_GLYPHS[bucket]} {columns} {number:>6} ", style=HEAT_STYLES[bucket])
    return text.append("│ ", style="dim").append(printable(content), style="default")


def _sum(values: Sequence[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _places(view: View, wanted: Sequence[str]) -> list[str]:
    """Files of the profile, hottest first, or those that were asked for."""
    if not wanted:
        files = view.files
        if not files:
            raise LineheatError("nothing-recorded", "no line of a file has been recorded in this profile")
        return sorted(
            files, key=lambda file: -sum(line.self_ns or line.hits or 0 for line in view.lines_of(file))
        )
    places = [os.path.abspath(name) for name in wanted]
    for name, path in zip(wanted, places, strict=True):
        if path not in view.files:
            raise LineheatError(
                "no-source", f"no line of {name} was recorded in this profile; 'lineheat show' lists what was"
            )
    return places
