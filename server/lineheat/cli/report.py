"""Reports of a view: the costliest lines and functions, the call tree, and how the run went."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lineheat.analysis.shares import heat_bucket, share
from lineheat.analysis.view import View
from lineheat.cli.sources import SourceTexts
from lineheat.cli.terminal import (
    HEAT_GLYPHS,
    count,
    duration,
    heat_text,
    percent,
    place,
    printable,
    signal_name,
)
from lineheat.model.recording import ExitSignal, ExitStatus, Recording
from lineheat.model.tables import NO_FUNCTION, CallTree, FrameTree

LEAST_TREE_SHARE = 0.01
FEW_SAMPLES = 10

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
    """Depth first, the costliest first; rows below 1 % of the run are left out."""
    if view.is_sampled:
        _print_frames(console, view, top)
    else:
        _print_calls(console, view, top)


def _print_calls(console: Console, view: View, top: int) -> None:
    table = _table("", "total", "total", "calls", "function")
    tree = view.snapshot.calls
    for row, depth, part in _walk(tree, view.tree_ticks, view.total_ticks, top):
        name = Text("  " * depth + _function_name(view, tree.function[row]))
        figures = (duration(_ns(view, view.tree_ticks[row])), count(tree.calls[row]))
        table.add_row(*_heat(part), *figures, name)
    _print(console, table, "no call of the program has been recorded")


def _print_frames(console: Console, view: View, top: int) -> None:
    """A row is a function at the line that it was executing."""
    table = _table("", "total", "samples", "function")
    tree = view.snapshot.frames
    for row, depth, part in _walk(tree, view.frame_samples, view.total_samples or 0, top):
        name = Text("  " * depth + _frame_name(view, tree.function[row], tree.line[row]))
        table.add_row(*_heat(part), count(view.frame_samples[row]), name)
    _print(console, table, "no call of the program has been recorded")


def _walk(
    tree: CallTree | FrameTree, totals: Sequence[int], whole: int, top: int
) -> Iterator[tuple[int, int, float]]:
    """Row, depth and share of the rows that matter; the root is not among them."""
    children: dict[int, list[int]] = {}
    for row in (row for rows in tree.published for row in rows if row > 0):
        children.setdefault(tree.parent[row], []).append(row)
    stack = [(0, -1)] if totals else []
    shown = -1
    while stack and shown < top:
        row, depth = stack.pop()
        part = share(totals[row], whole)
        if part < LEAST_TREE_SHARE and row > 0:
            continue
        shown += 1
        if row > 0:
            yield row, depth, part
        below = sorted(children.get(row, []), key=lambda child: totals[child])  # greatest last: taken first
        stack += [(child, depth + 1) for child in below]


REPORTS: Mapping[str, Report] = {"lines": print_lines, "functions": print_functions, "tree": print_tree}


def print_summary(console: Console, view: View) -> None:
    """How the run went: what the percentages are parts of, and whatever was lost."""
    recording = view.recording
    parts = [f"{recording.runtime}, {recording.mode}: {recording.state.value}{_ending(recording)}"]
    if view.total_ns:
        parts.append(f"100% = {duration(view.total_ns)} on the CPU")
    if recording.wall_ns:
        parts.append(f"{duration(recording.wall_ns)} wall")
    if view.total_samples is not None:
        few = "only " if view.total_samples < FEW_SAMPLES else ""
        parts.append(f"{few}{count(view.total_samples)} samples")
    if view.overhead_ns:
        part = share(view.overhead_ns, view.total_ns or 0)
        parts.append(
            f"about {duration(view.overhead_ns)} of it the tracer's own"
            if part < 1
            else "nearly all the tracer's own"
        )
    console.print(Text(", ".join(parts), style="dim"), soft_wrap=True)
    for sentence in _losses(view):
        console.print(Text(sentence, style="yellow"), soft_wrap=True)


def _ending(recording: Recording) -> str:
    """How the target ended, where that is worth a word."""
    match recording.exit:
        case ExitStatus(status) if status != 0:
            return f" with exit status {status}"
        case ExitSignal(number):
            return f" by {signal_name(number)}"
    return ""


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


def _function_name(view: View, row: int) -> str:
    function = view.snapshot.functions[row] if row != NO_FUNCTION else None
    if function is None:
        return "?"
    file, chunk = view.places[row]
    where = place(file, chunk, function.first_line if function.kind != "native" else None)
    return f"{printable(function.name)}  {where}"


def _frame_name(view: View, row: int, line: int) -> str:
    function = view.snapshot.functions[row] if row != NO_FUNCTION else None
    if function is None:
        return "?"
    return f"{printable(function.name)}  {place(*view.places[row], line or None)}"


def _ns(view: View, ticks: int) -> float:
    return ticks * (view.recording.ns_per_tick or 0)
