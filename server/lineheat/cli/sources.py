"""The text that ran: embedded in the profile, kept by its session, or, unverified, what the file says now."""

import re
from dataclasses import dataclass
from pathlib import Path

from lineheat.analysis.view import View
from lineheat.model.errors import LineheatError
from lineheat.session.folder import session_of_profile

MOST_BYTES = 64 << 20
_LINE_END = re.compile(r"\r\n|\n\r|\n|\r")  # as Lua counts them


@dataclass(frozen=True, slots=True)
class SourceText:
    """Lines of one source; line n is lines[n - 1]."""

    lines: list[str]
    is_what_ran: bool


class SourceTexts:
    """Texts of one view's sources, each read once, when it is asked for."""

    def __init__(self, view: View, profile: Path | None = None) -> None:
        self._view = view
        self._texts: dict[str, SourceText | None] = {}
        session = session_of_profile(profile) if profile else None
        self._kept = (
            {path: session.sources / digest for path, digest in session.record.sources.items()}
            if session
            else {}
        )

    def of(self, place: str) -> SourceText | None:
        """Of a file or chunk; None: there is no text to be had."""
        if place not in self._texts:
            self._texts[place] = self._read(place)
        return self._texts[place]

    def line(self, place: str, line: int) -> str:
        """Empty where there is none."""
        text = self.of(place)
        return text.lines[line - 1] if text and 0 < line <= len(text.lines) else ""

    def _read(self, place: str) -> SourceText | None:
        recorded = self._view.recorded_text(place)
        if recorded is not None:
            return _text(recorded, is_what_ran=True)
        if place in self._kept:
            return _text(_read_file(self._kept[place]), is_what_ran=True)
        return _text(_read_file(Path(place)), is_what_ran=False) if place in self._view.files else None


def read_source(path: Path) -> SourceText:
    """A file as it is now.  LineheatError if it cannot be read."""
    text = _text(_read_file(path), is_what_ran=False)
    if text is None:
        raise LineheatError("no-source", f"{path} cannot be read; name a file that ran in this profile")
    return text


def _text(content: bytes | None, is_what_ran: bool) -> SourceText | None:
    if content is None:
        return None
    return SourceText(_LINE_END.split(content.decode("utf-8-sig", "replace")), is_what_ran)


def _read_file(path: Path) -> bytes | None:
    """Paths come from profiles: only regular files are opened, and not enormous ones."""
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            return None
        return path.read_bytes()
    except (OSError, ValueError):
        return None
