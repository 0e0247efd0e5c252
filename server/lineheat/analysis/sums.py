"""Sums over columns: the loops that everything else is made of."""

from collections.abc import Iterable
from itertools import compress

from lineheat.model.tables import Column

NOWHERE = -1
"""A place that is not shown.  Sums have one more cell at their end, which catches it."""

MOST = 2**64 - 1


def empty_sums(cells: int) -> list[int]:
    return [0] * (cells + 1)


def add_up(sums: list[int], places: Iterable[int], counts: Iterable[int]) -> None:
    """sums[places[i]] += counts[i] for each i."""
    for place, count in zip(places, counts, strict=False):
        sums[place] += count


def add_up_sparse(sums: list[int], places: Iterable[int], counts: Column) -> None:
    """The same, quicker where many counts are 0."""
    add_up(sums, compress(places, counts), filter(None, counts))


def tree_totals(parent: Column, own: Column) -> Column:
    """What each row counted itself and in all rows below it; [0] is the whole tree."""
    total = own.tolist()
    for row, above in zip(range(len(total) - 1, 0, -1), reversed(parent), strict=False):
        total[above] += total[row]
    return column(total)


def column(sums: list[int]) -> Column:
    """64 bits a cell; sums of damaged counters that need more are cut."""
    try:
        return Column("Q", sums)
    except OverflowError:
        return Column("Q", [min(cell, MOST) for cell in sums])
