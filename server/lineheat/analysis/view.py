"""A snapshot and all that is derived from it.

Sums were made once, when the view was (builder.py); asking for the figures of
a file only looks them up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nlargest

from lineheat.analysis.figures import Figures, FunctionFigures, LineFigures
from lineheat.analysis.places import Place
from lineheat.analysis.shares import share
from lineheat.model.recording import Recording
from lineheat.model.snapshot import Snapshot
from lineheat.model.tables import Column, Function

UNKNOWN_FUNCTION = Function(None, "?", "", 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Costs:
    """Figures of all lines, or of all functions, by row; None where the mode does not measure."""

    count: Column | None  # hits or calls
    self_ticks: Column | None
    total_ticks: Column | None
    off_cpu_ticks: Column | None
    instructions: Column | None
    total_instructions: Column | None
    self_samples: Column | None
    total_samples: Column | None
    states: tuple[Column, ...]  # self samples, a column for each VM state
    zones: dict[int, dict[int, int]]  # row -> zone -> self samples


@dataclass(frozen=True)
class View:
    """Immutable.  Rows of lines and functions are numbers; figures are made when asked for.

    Totals of the run are sums of self; shares are parts of them.
    """

    snapshot: Snapshot
    places: Sequence[Place]  # file and chunk, by function
    line_function: Column  # by row of line
    line_number: Column  # 0 = no line
    line_costs: Costs
    function_costs: Costs
    tree_ticks: Column  # totals by row of snapshot.calls; 0 where the mode measures no time
    tree_instructions: Column | None
    frame_samples: Column  # totals by row of snapshot.frames
    total_ticks: int
    total_instructions: int | None
    total_samples: int | None

    @property
    def recording(self) -> Recording:
        return self.snapshot.recording

    @property
    def is_sampled(self) -> bool:
        return self.total_samples is not None

    @cached_property
    def total_ns(self) -> int | None:
        """The whole run: time on the CPU that lines and functions are parts of."""
        if self.line_costs.self_ticks is None:
            return self._sampled_ns(self.total_samples)
        return self._ns(self.total_ticks)

    @cached_property
    def states(self) -> dict[str, int] | None:
        """All samples, by name of the VM state."""
        if not self.is_sampled:
            return None
        frames = self.snapshot.frames
        sums = zip(self.snapshot.vm_states, map(sum, frames.samples), strict=True)
        return {state.name: samples for state, samples in sums}

    @cached_property
    def overhead_ns(self) -> int | None:
        """An estimate of the agent's cost within the times; None if it was not calibrated."""
        hits, calls = self.line_costs.count, self.function_costs.count
        line_ns, call_ns = self.recording.line_event_ns, self.recording.call_event_ns
        if hits is None or calls is None or line_ns is None or call_ns is None:
            return None
        return round(line_ns * sum(hits) + call_ns * sum(calls))

    # -- lines --

    @cached_property
    def lines(self) -> tuple[LineFigures, ...]:
        """All lines that have any figure, by file, line and function."""
        return tuple(line for place in sorted(self._rows_by_place) for line in self.lines_of(place))

    @property
    def files(self) -> list[str]:
        """Files that have any figure."""
        chunks = {chunk for _, chunk in self.places}
        return sorted(place for place in self._rows_by_place if place not in chunks)

    @property
    def main_file(self) -> str | None:
        """The first file that was called: the script."""
        return next((file for file, _ in self.places if file is not None), None)

    def lines_of(self, place: str) -> list[LineFigures]:
        """Lines of a file or chunk, in their order; none if nothing ran there."""
        lines = [self.line_figures(row) for row in self._rows_by_place.get(place, ())]
        return sorted(lines, key=lambda line: (line.line, line.function))

    def hottest_lines(self, most: int) -> list[LineFigures]:
        """The lines with the greatest self, greatest first."""
        return [self.line_figures(row) for row in _greatest(most, self.line_costs, self.line_number)]

    def line_figures(self, row: int) -> LineFigures:
        function = self.line_function[row]
        file, chunk = self.places[function]
        costs = self.line_costs
        return LineFigures(
            file=file,
            chunk=chunk,
            line=self.line_number[row],
            function=self._function(function).name,
            hits=_cell(costs.count, row),
            self_ns=self._self_ns(costs, row),
            total_ns=self._total_ns(costs, row),
            self_samples=_cell(costs.self_samples, row),
            total_samples=_cell(costs.total_samples, row),
            instructions=_cell(costs.instructions, row),
            total_instructions=_cell(costs.total_instructions, row),
            off_cpu_ns=self._ns(_cell(costs.off_cpu_ticks, row)),
            states=self._states(costs, row),
            zones=self._zones(costs, row),
        )

    def recorded_text(self, place: str) -> bytes | None:
        """The text that ran, where the profile has it: of a file, embedded; of a chunk, its own."""
        for row, (file, chunk) in enumerate(self.places):
            function = self.snapshot.functions[row]
            if place in (file, chunk) and function is not None and function.source is not None:
                text = self.snapshot.texts.get(function.source)
                return text if text is not None else self._chunk_text(function.source)
        return None

    # -- functions --

    @cached_property
    def functions(self) -> tuple[FunctionFigures, ...]:
        """All functions that have any figure, in the order in which they were first seen."""
        return tuple(self.function_figures(row) for row in _rows_with_figures(self.function_costs))

    def hottest_functions(self, most: int) -> list[FunctionFigures]:
        """The functions with the greatest self, greatest first."""
        costs = self.function_costs
        return [self.function_figures(row) for row in _greatest(most, costs, range(1, len(self.places) + 1))]

    def function_figures(self, row: int) -> FunctionFigures:
        function = self._function(row)
        file, chunk = self.places[row]
        costs = self.function_costs
        return FunctionFigures(
            name=function.name,
            file=file,
            chunk=chunk,
            line=None if function.kind == "native" else function.first_line,
            calls=_cell(costs.count, row),
            self_ns=self._self_ns(costs, row),
            total_ns=self._total_ns(costs, row),
            self_samples=_cell(costs.self_samples, row),
            total_samples=_cell(costs.total_samples, row),
            instructions=_cell(costs.instructions, row),
            total_instructions=_cell(costs.total_instructions, row),
            off_cpu_ns=self._ns(_cell(costs.off_cpu_ticks, row)),
            states=self._states(costs, row),
            zones=self._zones(costs, row),
        )

    # -- shares --

    def self_share(self, figures: Figures) -> float:
        """Part of the run that was spent there itself: of the samples, else the time, else the hits."""
        if figures.self_samples is not None:
            return share(figures.self_samples, self.total_samples or 0)
        if figures.self_ns is not None:
            return share(figures.self_ns, self.total_ns or 0)
        return share(figures.hits or 0, self._total_hits) if isinstance(figures, LineFigures) else 0.0

    def total_share(self, figures: Figures) -> float:
        """The same with all that was called; 0 where no totals are measured."""
        if figures.total_samples is not None:
            return share(figures.total_samples, self.total_samples or 0)
        return share(figures.total_ns or 0, self.total_ns or 0)

    # -- private --

    @cached_property
    def _total_hits(self) -> int:
        return sum(self.line_costs.count or ())

    @cached_property
    def _rows_by_place(self) -> dict[str, list[int]]:
        rows_by_place: dict[str, list[int]] = {}
        for row in _rows_with_figures(self.line_costs):
            if self.line_number[row]:
                file, chunk = self.places[self.line_function[row]]
                rows_by_place.setdefault(file or chunk or "", []).append(row)
        return rows_by_place

    def _chunk_text(self, source: int) -> bytes | None:
        text = self.snapshot.sources[source].text
        return text.encode("utf-8", "surrogateescape") if text else None

    def _function(self, row: int) -> Function:
        return self.snapshot.functions[row] or UNKNOWN_FUNCTION

    def _ns(self, ticks: int | None) -> int | None:
        rate = self.recording.ns_per_tick
        return None if ticks is None or rate is None else round(ticks * rate)

    def _sampled_ns(self, samples: int | None) -> int | None:
        """Share of the measured time; never samples x interval, for timers tick as they can."""
        measured = self.recording.cpu_ns if self.recording.cpu_ns is not None else self.recording.wall_ns
        if samples is None or measured is None:
            return None
        return round(share(samples, self.total_samples or 0) * measured)

    def _self_ns(self, costs: Costs, row: int) -> int | None:
        if costs.self_ticks is not None:
            return self._ns(costs.self_ticks[row])
        return self._sampled_ns(_cell(costs.self_samples, row))

    def _total_ns(self, costs: Costs, row: int) -> int | None:
        if costs.total_ticks is not None:
            return self._ns(costs.total_ticks[row])
        return self._sampled_ns(_cell(costs.total_samples, row))

    def _states(self, costs: Costs, row: int) -> dict[str, int] | None:
        if not self.is_sampled:
            return None
        counts = zip(self.snapshot.vm_states, costs.states, strict=True)
        return {state.name: column[row] for state, column in counts if column[row]}

    def _zones(self, costs: Costs, row: int) -> dict[str, int] | None:
        if not self.is_sampled:
            return None
        return {self.snapshot.zones[zone]: samples for zone, samples in costs.zones.get(row, {}).items()}


def _cell(column: Column | None, row: int) -> int | None:
    return None if column is None else column[row]


def _rows_with_figures(costs: Costs) -> list[int]:
    columns = (
        costs.count,
        costs.self_ticks,
        costs.total_ticks,
        costs.off_cpu_ticks,
        costs.instructions,
        costs.total_instructions,
        costs.self_samples,
        costs.total_samples,
    )
    measured = [column for column in columns if column is not None]
    return [row for row, figures in enumerate(zip(*measured, strict=True)) if any(figures)]


def _greatest(most: int, costs: Costs, is_shown: Sequence[int]) -> list[int]:
    """Rows with the greatest self (hits or calls, where nothing else is measured), greatest first."""
    weights = costs.self_samples or costs.self_ticks or costs.count or ()
    rows = (row for row, weight in enumerate(weights) if weight and is_shown[row])
    return nlargest(most, rows, key=weights.__getitem__)
