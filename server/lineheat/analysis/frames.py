"""What a sampler counted: frame tree -> figures of lines and functions.

Samples of a row were taken while its line was executing.  A line or function
that stands on a path twice counts once: in its outermost row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lineheat.analysis.calls import new_rows
from lineheat.analysis.lines import Lines
from lineheat.analysis.sums import NOWHERE, add_up, column, empty_sums, tree_totals
from lineheat.model.snapshot import Snapshot
from lineheat.model.tables import NO_FUNCTION, Column, FrameTree


class FrameShape:
    """Where each row of the frame tree counts."""

    def __init__(self, lines: Lines) -> None:
        self.line = Column("i")  # by row
        self.function = Column("i")
        self.zone: list[int] = []  # the innermost zone around the row, or NOWHERE
        self.outer_line = Column("i")  # NOWHERE if the line stands further up too
        self.outer_function = Column("i")
        self._lines = lines
        self._published: tuple[range, ...] = ()

    def extend(self, snapshot: Snapshot) -> None:
        frames = snapshot.frames
        more = len(frames.parent) - len(self.line)
        nowhere = Column("i", [NOWHERE]) * more
        self.line.extend(nowhere)
        self.function.extend(nowhere)
        self.zone.extend(nowhere)
        new = new_rows(self._published, frames.published)
        for rows in new:
            self._add_rows(frames, rows)
        if new:
            self.outer_line, self.outer_function = _outermost(frames.parent, self.line, self.function)
        self._published = frames.published

    def _add_rows(self, frames: FrameTree, rows: range) -> None:
        for row in rows:
            function = frames.function[row]
            if function != NO_FUNCTION:
                self.function[row] = self._lines.shown[function]
                self.line[row] = self._lines.row_of(function, frames.line[row])
            self.zone[row] = frames.zone[row] - 1 if frames.zone[row] else self.zone[frames.parent[row]]


def _outermost(parent: Column, line: Column, function: Column) -> tuple[Column, Column]:
    """Lines and functions of the rows, NOWHERE where a row above has the same: one walk, depth first."""
    outer_line, outer_function = line[:], function[:]
    first_child, next_sibling = _children(parent)
    lines_above, functions_above = set[int](), set[int]()
    to_visit = [0]
    while to_visit:
        row = to_visit.pop()
        if row < 0:  # all below ~row was visited
            lines_above.discard(outer_line[~row])
            functions_above.discard(outer_function[~row])
            continue
        if line[row] in lines_above:
            outer_line[row] = NOWHERE
        elif line[row] != NOWHERE:
            lines_above.add(line[row])
        if function[row] in functions_above:
            outer_function[row] = NOWHERE
        elif function[row] != NOWHERE:
            functions_above.add(function[row])
        to_visit.append(~row)
        child = first_child[row]
        while child:
            to_visit.append(child)
            child = next_sibling[child]
    return outer_line, outer_function


def _children(parent: Column) -> tuple[list[int], list[int]]:
    """First child and next sibling of each row; 0 = none."""
    first_child, next_sibling = [0] * len(parent), [0] * len(parent)
    for row in range(len(parent) - 1, 0, -1):
        next_sibling[row] = first_child[parent[row]]
        first_child[parent[row]] = row
    return first_child, next_sibling


@dataclass(frozen=True, slots=True)
class SampleCosts:
    """Samples by line row and by function."""

    line_self: Column
    line_total: Column
    line_states: tuple[Column, ...]  # self, a column for each VM state
    line_zones: dict[int, dict[int, int]]  # line row -> zone -> self
    function_total: Column
    tree: Column  # totals by row of the frame tree


def sample_costs(snapshot: Snapshot, shape: FrameShape, lines: Lines) -> SampleCosts:
    frames = snapshot.frames
    own = _all_states(frames)
    tree = tree_totals(frames.parent, own)
    return SampleCosts(
        line_self=_sums(len(lines), shape.line, own),
        line_total=_sums(len(lines), shape.outer_line, tree),
        line_states=tuple(_sums(len(lines), shape.line, samples) for samples in frames.samples),
        line_zones=_zones(shape, own) if snapshot.zones else {},
        function_total=_sums(len(lines.shown), shape.outer_function, tree),
        tree=tree,
    )


def _all_states(frames: FrameTree) -> Column:
    if not frames.samples:
        return Column("Q", bytes(8 * len(frames.parent)))
    return column([sum(states) for states in zip(*frames.samples, strict=True)])


def _sums(cells: int, places: Sequence[int], counts: Column) -> Column:
    sums = empty_sums(cells)
    add_up(sums, places, counts)
    return column(sums[:-1])


def _zones(shape: FrameShape, own: Column) -> dict[int, dict[int, int]]:
    zones: dict[int, dict[int, int]] = {}
    for row, samples in enumerate(own):
        if samples and shape.zone[row] != NOWHERE and shape.line[row] != NOWHERE:
            of_line = zones.setdefault(shape.line[row], {})
            of_line[shape.zone[row]] = of_line.get(shape.zone[row], 0) + samples
    return zones
