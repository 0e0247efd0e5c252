"""What reports look like: numbers, heat and places, for rich.

Names and source text come from profiles and files, so nothing of them is taken
for markup, and control characters are shown, not sent.
"""

import os
import signal
import sys
from typing import TextIO

from rich.console import Console
from rich.style import Style
from rich.text import Text

PLAIN_WIDTH = 200
HEAT_GLYPHS = (" ", "▁", "▃", "▅", "▇")
HEAT_STYLES = tuple(
    Style.parse(style) for style in ("none", "blue", "cyan", "dark_orange", "bold orange_red1")
)
"""Five buckets from blue to orange; the glyph says the same without colour."""


def console_on(stream: TextIO) -> Console:
    """Colours on a terminal only (NO_COLOR honoured); elsewhere plain lines that are never wrapped."""
    width = None if stream.isatty() else PLAIN_WIDTH
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def stderr_console() -> Console:
    return console_on(sys.stderr)


def stdout_console() -> Console:
    return console_on(sys.stdout)


def whole_console() -> Console:
    """For tables whose every word counts: a narrow terminal wraps their lines."""
    console = stdout_console()
    console.width = max(console.width, PLAIN_WIDTH)
    return console


def printable(text: str) -> str:
    """Control characters as their symbols, so that a name cannot move the cursor."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else _symbol(letter) for letter in text)


def _symbol(letter: str) -> str:
    code = ord(letter)
    if letter == "\t":
        return "    "
    return chr(0x2400 + code) if code < 0x20 else "\ufffd"


def heat_text(text: str, bucket: int) -> Text:
    return Text(text, style=HEAT_STYLES[bucket])


def percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def duration(ns: int | float | None) -> str:
    """Three significant digits: 1.23 ms."""
    if ns is None:
        return ""
    for limit, unit in ((1e3, "ns"), (1e6, "µs"), (1e9, "ms")):
        if ns < limit:
            return f"{_significant(ns / limit * 1e3)} {unit}"
    return f"{_significant(ns / 1e9)} s"


def _significant(value: float) -> str:
    if value >= 99.95 or value == 0:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def place(file: str | None, chunk: str | None, line: int | None) -> str:
    """As editors and terminals link it: path:line, relative where that is shorter."""
    name = chunk or "?"
    if file is not None:
        relative = os.path.relpath(file)
        name = relative if not relative.startswith("..") else file
    return printable(name) if line is None else f"{printable(name)}:{line}"
