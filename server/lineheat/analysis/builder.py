"""Snapshots of one reader -> views.

    reader.snapshot() -> ViewBuilder.view(snapshot) -> View

What never changes once it is published is worked out once and kept here, so
that a refresh only adds up counters.  A view knows nothing of the next.
"""

from collections.abc import Sequence
from functools import cache

from lineheat.analysis.calls import CallCosts, CallShape, Spread, call_costs
from lineheat.analysis.frames import FrameShape, SampleCosts, sample_costs
from lineheat.analysis.lines import Lines, shown_functions
from lineheat.analysis.places import Place, Resolve, place_of
from lineheat.analysis.sums import add_up, column, empty_sums
from lineheat.analysis.view import Costs, View
from lineheat.model.snapshot import Snapshot
from lineheat.model.tables import Column, Function


def view_of(snapshot: Snapshot, resolve: Resolve | None = None) -> View:
    """The view of a single snapshot."""
    return ViewBuilder(resolve).view(snapshot)


class ViewBuilder:
    """Makes views of the snapshots of one reader, in the order in which they were read."""

    def __init__(self, resolve: Resolve | None = None) -> None:
        self._resolve: Resolve = cache(resolve) if resolve else str
        self._functions: Sequence[Function | None] = ()
        self._begin()

    def _begin(self) -> None:
        self._places: list[Place] = []
        self._lines = Lines()
        self._calls = CallShape(self._lines)
        self._frames = FrameShape(self._lines)

    def view(self, snapshot: Snapshot) -> View:
        new_functions = self._learn_functions(snapshot)
        self._calls.extend(snapshot, new_functions)
        self._frames.extend(snapshot)
        lines = self._lines
        calls = call_costs(snapshot, self._calls, lines)
        samples = sample_costs(snapshot, self._frames, lines) if snapshot.frames.parent else None
        line_costs = _line_costs(snapshot, calls, samples)
        return View(
            snapshot=snapshot,
            places=self._places,
            line_function=lines.function[:],
            line_number=lines.number[:],
            line_costs=line_costs,
            function_costs=_function_costs(line_costs, lines, calls, samples),
            tree_ticks=calls.ticks.tree if calls.ticks else snapshot.calls.self_ticks,
            tree_instructions=calls.instructions.tree if calls.instructions else None,
            frame_samples=samples.tree if samples else Column("Q"),
            total_ticks=calls.ticks.whole if calls.ticks else 0,
            total_instructions=calls.instructions.whole if calls.instructions else None,
            total_samples=samples.tree[0] if samples else None,
        )

    def _learn_functions(self, snapshot: Snapshot) -> list[int]:
        """New functions and better names; returns the functions whose runs of slots are new.

        A name may change which functions are the same one: then all begins again.
        """
        if snapshot.functions == self._functions:
            return []
        self._functions = snapshot.functions
        places = [place_of(function, snapshot.sources, self._resolve) for function in snapshot.functions]
        shown = shown_functions(snapshot.functions, places)
        if shown[: len(self._lines.shown)] != self._lines.shown:
            self._begin()
        self._places = places
        return self._lines.extend(snapshot.functions, shown)


def _line_costs(snapshot: Snapshot, calls: CallCosts, samples: SampleCosts | None) -> Costs:
    is_traced = snapshot.lines.hits is not None
    ticks, instructions = calls.ticks, calls.instructions
    return Costs(
        count=calls.hits if is_traced else None,
        self_ticks=ticks.line_self if ticks else None,
        total_ticks=_within(ticks.line_total, ticks.line_self, ticks.whole) if ticks else None,
        off_cpu_ticks=calls.off_cpu_ticks,
        instructions=instructions.line_self if instructions else None,
        total_instructions=_within(instructions.line_total, instructions.line_self, instructions.whole)
        if instructions
        else None,
        self_samples=samples.line_self if samples else None,
        total_samples=samples.line_total if samples else None,
        states=samples.line_states if samples else (),
        zones=samples.line_zones if samples else {},
    )


def _function_costs(of_lines: Costs, lines: Lines, calls: CallCosts, samples: SampleCosts | None) -> Costs:
    """A function's self is that of its lines."""
    self_ticks = _of_functions(of_lines.self_ticks, lines)
    instructions = _of_functions(of_lines.instructions, lines)
    return Costs(
        count=None if of_lines.count is None else calls.calls,
        self_ticks=self_ticks,
        total_ticks=_function_total(calls.ticks, self_ticks),
        off_cpu_ticks=_of_functions(of_lines.off_cpu_ticks, lines),
        instructions=instructions,
        total_instructions=_function_total(calls.instructions, instructions),
        self_samples=_of_functions(of_lines.self_samples, lines),
        total_samples=samples.function_total if samples else None,
        states=tuple(_sums(states, lines) for states in of_lines.states),
        zones=_function_zones(of_lines.zones, lines),
    )


def _function_total(spread: Spread | None, selves: Column | None) -> Column | None:
    return _within(spread.function_total, selves, spread.whole) if spread and selves is not None else None


def _of_functions(counts: Column | None, lines: Lines) -> Column | None:
    return None if counts is None else _sums(counts, lines)


def _sums(counts: Column, lines: Lines) -> Column:
    sums = empty_sums(len(lines.shown))
    add_up(sums, lines.function, counts)
    return column(sums[:-1])


def _function_zones(of_lines: dict[int, dict[int, int]], lines: Lines) -> dict[int, dict[int, int]]:
    zones: dict[int, dict[int, int]] = {}
    for row, line_zones in of_lines.items():
        of_function = zones.setdefault(lines.function[row], {})
        for zone, samples in line_zones.items():
            of_function[zone] = of_function.get(zone, 0) + samples
    return zones


def _within(totals: Column, selves: Column, whole: int) -> Column:
    """Totals between self and the whole run, also where counters of a running target are of two moments,
    or where a call was too deep for the tree, so that its self has no row."""
    pairs = zip(selves, totals, strict=True)
    return column([own if total < own else total if total < whole else whole for own, total in pairs])
