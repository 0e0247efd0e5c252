"""What a tracer counted: slots and call tree -> figures of lines and functions.

    self of a line       the self of its slots, in all runs of its function
    total of a line      its self where it is not at work further up, and the totals of
                         the outermost rows that were called from it
    total of a function  the totals of its outermost rows

A line is at work in a row when some outer activation of the row's function has
called from it.  Only rows with a run of their own can have such lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

from lineheat.analysis.lines import Lines
from lineheat.analysis.sums import NOWHERE, add_up, add_up_sparse, column, empty_sums, tree_totals
from lineheat.model.snapshot import Snapshot
from lineheat.model.tables import NO_FUNCTION, CallTree, Column, Function, LineSlots


class CallShape:
    """Where each slot and each row of the tree counts.  What is published never changes, so it only grows."""

    def __init__(self, lines: Lines) -> None:
        self.self_line = Column("i")  # by slot: the line that its self, hits, ... belong to
        self.total_line = Column("i")  # by slot: the same; NOWHERE if the line is at work further up
        self.function = Column("i")  # by row
        self.outer_function = Column("i")  # by row; NOWHERE if the function is at work further up
        self.outer_line = Column("i")  # by row: the calling line; NOWHERE if it is at work further up
        self._lines = lines
        self._published: tuple[range, ...] = ()
        self._at_work = Column("I")  # by row: which of the sets of lines at work
        self._sets: list[tuple[int, ...]] = [()]
        self._set_numbers: dict[tuple[int, ...], int] = {(): 0}

    def extend(self, snapshot: Snapshot, new_functions: Sequence[int]) -> None:
        functions = snapshot.functions
        for places in (self.self_line, self.total_line):
            _pad(places, len(snapshot.lines.hits or ()), NOWHERE)
        for row in new_functions:
            function = functions[row]
            if function is not None:
                self._add_run(function.first_slot, self._lines.first_row[row], function.slots)
        calls = snapshot.calls
        for column_ in (self.function, self.outer_function, self.outer_line):
            _pad(column_, len(calls.parent), NOWHERE)
        _pad(self._at_work, len(calls.parent), 0)
        for rows in new_rows(self._published, calls.published):
            self._add_rows(calls, rows)
            self._add_own_runs(calls, functions, rows)
        self._published = calls.published

    def _add_run(self, first: int, line: int, slots: int) -> None:
        """A run of slots counts for the lines from row 'line' on."""
        lines = Column("i", range(line, line + slots))
        self.self_line[first : first + slots] = lines
        self.total_line[first : first + slots] = lines

    def _add_rows(self, calls: CallTree, rows: range) -> None:
        new = slice(rows.start, rows.stop)
        shown, line, slots = self._lines.shown, self.self_line, len(self.self_line)
        functions = [shown[f] if f != NO_FUNCTION else NOWHERE for f in calls.function[new]]
        self.function[new] = Column("i", functions)
        self.outer_function[new] = Column(
            "i", [NOWHERE if via else f for f, via in zip(functions, calls.via[new], strict=True)]
        )
        called_from = zip(calls.call_slot[new], calls.inner_line[new], strict=True)
        self.outer_line[new] = Column(
            "i", [NOWHERE if inner or slot >= slots else line[slot] for slot, inner in called_from]
        )

    def _add_own_runs(self, calls: CallTree, functions: Sequence[Function | None], rows: range) -> None:
        """Runs of rows whose function is at work further up, without the lines that are at work there."""
        via, first_slot, parent, function = calls.via, calls.first_slot, calls.parent, calls.function
        first_row, at_work = self._lines.first_row, self._at_work
        for row in compress(rows, via[rows.start : rows.stop]):
            definition = functions[function[row]]
            if first_slot[row] and definition is not None and definition.slots:
                slots = definition.slots
                line = first_row[function[row]]
                outer = via[row]
                self._add_run(first_slot[row], line, slots)
                at_work[row] = self._with_line(at_work[parent[outer]], calls.call_slot[outer], line, slots)
                self._leave_out(self._sets[at_work[row]], first_slot[row], line)

    def _with_line(self, number: int, call_slot: int, first: int, slots: int) -> int:
        """The set of lines at work that has one line more; lines are rows, 'first' stands for no line."""
        line = self.self_line[call_slot] if call_slot < len(self.self_line) else NOWHERE
        lines = self._sets[number]
        if not first < line < first + slots or line in lines:
            return number
        wider = (*lines, line)
        found = self._set_numbers.setdefault(wider, len(self._sets))
        if found == len(self._sets):
            self._sets.append(wider)
        return found

    def _leave_out(self, lines: tuple[int, ...], first_slot: int, first_row: int) -> None:
        for line in lines:
            self.total_line[first_slot + line - first_row] = NOWHERE
            if line == first_row + 1:  # slot 0 counts for the function's first line
                self.total_line[first_slot] = NOWHERE


@dataclass(frozen=True, slots=True)
class Spread:
    """One quantity (ticks, instructions) over lines, functions and the rows of the call tree."""

    whole: int  # the root's total; where a file lacks parts of its tree, what its lines have
    line_self: Column
    line_total: Column
    function_total: Column
    tree: Column  # totals by row


@dataclass(frozen=True, slots=True)
class CallCosts:
    """Figures by line row and by function; None where the mode does not measure."""

    hits: Column
    calls: Column
    off_cpu_ticks: Column | None  # by line
    ticks: Spread | None
    instructions: Spread | None


def call_costs(snapshot: Snapshot, shape: CallShape, lines: Lines) -> CallCosts:
    slots, tree = snapshot.lines, snapshot.calls
    hits, cut_calls = _hits(slots, shape, lines)
    is_whole = not snapshot.recording.missing
    return CallCosts(
        hits=hits,
        calls=_calls(tree, shape, lines, cut_calls),
        off_cpu_ticks=_off_cpu_ticks(slots, shape, lines),
        ticks=_spread(slots.self_ticks, tree.self_ticks, tree, shape, lines, is_whole),
        instructions=_spread(slots.instructions, tree.instructions, tree, shape, lines, is_whole),
    )


def _hits(slots: LineSlots, shape: CallShape, lines: Lines) -> tuple[Column, dict[int, int]]:
    """Hits by line.  Those of slots 0 stand apart, by row: they are calls that have no row in the tree."""
    hits = empty_sums(len(lines))
    if slots.hits is not None:
        add_up_sparse(hits, shape.self_line, slots.hits)
    cut_calls = lines.take_no_line(hits)
    return column(hits[:-1]), cut_calls


def _calls(calls: CallTree, shape: CallShape, lines: Lines, cut_calls: dict[int, int]) -> Column:
    sums = empty_sums(len(lines.shown))
    add_up(sums, shape.function, calls.calls)
    for row, count in cut_calls.items():
        sums[lines.function[row]] += count
    return column(sums[:-1])


def _off_cpu_ticks(slots: LineSlots, shape: CallShape, lines: Lines) -> Column | None:
    if slots.off_cpu_ticks is None:
        return None
    sums = empty_sums(len(lines))
    if any(slots.off_cpu_ticks):
        add_up_sparse(sums, shape.self_line, slots.off_cpu_ticks)
    lines.book_no_line(sums, sums)
    return column(sums[:-1])


def _spread(
    of_slots: Column | None,
    of_rows: Column | None,
    tree: CallTree,
    shape: CallShape,
    lines: Lines,
    is_whole: bool,
) -> Spread | None:
    if of_slots is None or of_rows is None:
        return None
    line_self, line_total = _selves(of_slots, shape, lines)
    lines_have = sum(line_self)
    own = of_rows[:]
    if is_whole and own:
        own[tree.row_at_work] += max(0, lines_have - sum(own))
    if own:
        own[0] = 0  # the host's time, before, between and after what it calls, is nobody's
    totals = tree_totals(tree.parent, own)
    lines.book_no_line(line_total, line_self)
    lines.book_no_line(line_self, line_self)
    add_up(line_total, shape.outer_line, totals)
    function_total = empty_sums(len(lines.shown))
    add_up(function_total, shape.outer_function, totals)
    return Spread(
        whole=max(totals[0] if totals else 0, lines_have - line_self[NOWHERE]),
        line_self=column(line_self[:-1]),
        line_total=column(line_total[:-1]),
        function_total=column(function_total[:-1]),
        tree=totals,
    )


def _selves(of_slots: Column, shape: CallShape, lines: Lines) -> tuple[list[int], list[int]]:
    """By line: all self, and the self in rows where the line is not at work further up."""
    line_self, line_total = empty_sums(len(lines)), empty_sums(len(lines))
    places = zip(compress(shape.self_line, of_slots), compress(shape.total_line, of_slots), strict=True)
    for (self_line, total_line), count in zip(places, filter(None, of_slots), strict=False):
        line_self[self_line] += count
        line_total[total_line] += count
    return line_self, line_total


def new_rows(before: Sequence[range], now: Sequence[range]) -> list[range]:
    """The rows published since; each range begins where it began before."""
    known = {rows.start: rows.stop for rows in before}
    return [new for rows in now if (new := range(known.get(rows.start, rows.start), rows.stop))]


def _pad(cells: Column, size: int, void: int) -> None:
    cells.extend(Column(cells.typecode, [void]) * max(0, size - len(cells)))
