"""Reports of a view: the costliest lines and functions, the call tree, and how the run went."""

from collections.abc import Callable, Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lineheat.analysis.shares import heat_bucket, share
from lineheat.analysis.view import View
from lineheat.cli.sources import SourceTexts
from lineheat.cli.terminal import HEAT_GLYPHS, count, duration, heat_text, percent, place, printable
from lineheat.model.tables import NO_FUNCTION

LEAST_TREE_SHARE = 0.01

Report = Callable[[Console, View, int], None]


def print_lines(console: Console, view: View, top: int) -> None:
    table = _table("", "self", "self", "total", "hits", "line", "source")
    texts = SourceTexts(view)
    for line in view.hottest_lines(top):
        figures = (duration(line.self_ns), duration(line.total_ns), count(line.hits))
        where = place(line.file, line.chunk, line.line)
        table.add_row(
            *_heat(view.self_share(line)),
            *figures,
            where,
            printable(texts.line(line.file or line.chunk or "", line.line).strip()),
        )
    _print(console, table, "no line of the program has been recorded")


def print_functions(console: Console, view: View, top: int) -> None:
    table = _table("", "self", "self", "total", "calls", "function", "where")
    for function in view.hottest_functions(top):
        figures = (duration(function.self_ns), duration(function.total_ns), count(function.calls))
        where = place(function.file, function.chunk, function.line)
        table.add_row(*_heat(view.self_share(function)), *figures, printable(function.name), where)
    _print(console, table, "no function of the program has been recorded")


def print_tree(console: Console, view: View, top: int) -> None:
    """Depth first, the costliest call first; rows below 1 % of the run are left out."""
    table = _table("", "total", "total", "calls", "function")
    tree = view.snapshot.calls
    children: dict[int, list[int]] = {}
    for row in (row for rows in tree.published for row in rows if row > 0):
        children.setdefault(tree.parent[row], []).append(row)
    stack = [(row, 0) for row in _costliest(view, children.get(0, []))]
    while stack and table.row_count < top:
        row, depth = stack.pop()
        ticks = view.tree_ticks[row]
        part = share(ticks, view.total_ticks)
        if part < LEAST_TREE_SHARE:
            continue
        name = Text("  " * depth + _function_name(view, tree.function[row]))
        table.add_row(*_heat(part), duration(_ns(view, ticks)), count(tree.calls[row]), name)
        stack += [(child, depth + 1) for child in _costliest(view, children.get(row, []))]
    _print(console, table, "no call of the program has been recorded")


REPORTS: Mapping[str, Report] = {"lines": print_lines, "functions": print_functions, "tree": print_tree}


def print_summary(console: Console, view: View) -> None:
    """How the run went: what the percentages are parts of, and whatever was lost."""
    recording = view.recording
    parts = [f"{recording.runtime}, {recording.mode}: {recording.state.value}"]
    if view.total_ns:
        parts.append(f"100% = {duration(view.total_ns)} on the CPU")
    if recording.wall_ns:
        parts.append(f"{duration(recording.wall_ns)} wall")
    if view.overhead_ns:
        parts.append(f"about {duration(view.overhead_ns)} of it the tracer's own")
    console.print(Text(", ".join(parts), style="dim"), soft_wrap=True)
    for sentence in _losses(view):
        console.print(Text(sentence, style="yellow"), soft_wrap=True)


def _losses(view: View) -> list[str]:
    recording, losses = view.recording, view.recording.losses
    sentences = [f"note: {recording.note}"] if recording.note else []
    sentences += [f"incomplete: {sentence}" for sentence in recording.missing]
    if losses.cut_stacks:
        sentences.append(
            f"{losses.cut_stacks:,} paths were deeper than the tree goes; they count for their callers"
        )
    if losses.full_tables:
        sentences.append(f"{losses.full_tables:,} functions or paths found no room in the profile")
    if losses.evicted_threads:
        sentences.append(f"{losses.evicted_threads:,} coroutines were put aside to keep memory bounded")
    return sentences


def _table(*headings: str) -> Table:
    """The first column is the heat; numbers stand right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        is_text = heading in ("line", "function", "where", "source", "")
        table.add_column(
            heading,
            justify="left" if is_text else "right",
            no_wrap=True,
            overflow="ellipsis",
            min_width=1 if heading == "" else len(heading),
        )
    return table


def _print(console: Console, table: Table, otherwise: str) -> None:
    console.print(table if table.row_count else otherwise)


def _heat(part: float) -> tuple[Text, Text]:
    bucket = heat_bucket(part)
    return heat_text(HEAT_GLYPHS[bucket], bucket), heat_text(percent(part), bucket)


def _costliest(view: View, rows: list[int]) -> list[int]:
    """Greatest last, as a stack wants them."""
    return sorted(rows, key=lambda row: view.tree_ticks[row])


def _function_name(view: View, row: int) -> str:
    function = view.snapshot.functions[row] if row != NO_FUNCTION else None
    if function is None:
        return "?"
    file, chunk = view.places[row]
    where = place(file, chunk, function.first_line if function.kind != "native" else None)
    return f"{printable(function.name)}  {where}"


def _ns(view: View, ticks: int) -> float:
    return ticks * (view.recording.ns_per_tick or 0)
