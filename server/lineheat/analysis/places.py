"""Where a function stands: in a file, or in a chunk that has none."""

from collections.abc import Callable, Sequence

from lineheat.model.tables import Function, Source

Place = tuple[str | None, str | None]
"""File and chunk; one of them is None."""

Resolve = Callable[[str], str]
"""The absolute path of a file as the target named it."""

MOST_LETTERS = 40


def place_of(function: Function | None, sources: Sequence[Source], resolve: Resolve) -> Place:
    if function is None or function.source is None:
        return None, "?"
    source = sources[function.source]
    if function.kind == "native":
        return None, source.name if source.kind == "native" and source.name else "[C]"
    if source.kind == "file":
        return resolve(source.name), None
    return None, chunk_name(source)


def chunk_name(source: Source) -> str:
    """[string "first line…"]#hash of compiled text; else the source's name."""
    if source.kind != "string" or not source.text:
        return source.name or "?"
    first_line, _, more = source.text.strip().partition("\n")
    shown = first_line[:MOST_LETTERS]
    dots = "…" if more or len(first_line) > MOST_LETTERS else ""
    return f'[string "{shown}{dots}"]#{source.hash >> 32:08x}'
