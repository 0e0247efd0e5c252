"""Which lines there are: one row for each line of each function.

    function 0            function 1         lines outside of any run
    none  2  3  4  5      none  9  10        (a sampler has no runs)
    row 0 1  2  3  4           5  6   7      8 9 ...

A function with a run of slots has a row for each slot, side by side; the first
is "no line yet", or all of a native function, and is never shown as a line.
Rows are only added.

Copies of one function (a file loaded twice, a row for each thread) are shown as
one: same place, name, first line and number of slots.  Agents see to it that
copies never stand on one path.
"""

from collections.abc import Sequence

from lineheat.analysis.places import Place
from lineheat.analysis.sums import NOWHERE
from lineheat.model.tables import Column, Function


def shown_functions(functions: Sequence[Function | None], places: Sequence[Place]) -> list[int]:
    """For each function the first one that is the same; native functions are all different."""
    first: dict[object, int] = {}
    same: list[int] = []
    for row, function in enumerate(functions):
        if function is None or function.kind == "native":
            same.append(row)
        else:
            key = (places[row], function.name, function.first_line, function.slots)
            same.append(first.setdefault(key, row))
    return same


class Lines:
    """Rows of lines, and which function and line each one is."""

    def __init__(self) -> None:
        self.function = Column("I")  # the shown one
        self.number = Column("I")  # 0 = no line
        self.shown: list[int] = []  # by function: the shown one
        self.first_row: list[int] = []  # by function: the row of its slot 0, or NOWHERE
        self._functions: Sequence[Function | None] = ()
        self._outside: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self.number)

    def extend(self, functions: Sequence[Function | None], shown: list[int]) -> list[int]:
        """Rows for the functions that are new; returns those that have a run of slots."""
        self._functions, self.shown = functions, shown
        self.first_row.extend([NOWHERE] * (len(functions) - len(self.first_row)))
        new: list[int] = []
        for row, function in enumerate(functions):
            if function is not None and function.slots and self.first_row[row] == NOWHERE:
                self.first_row[row] = self._rows_of(shown[row], function)
                new.append(row)
        return new

    def _rows_of(self, shown: int, function: Function) -> int:
        if self.first_row[shown] != NOWHERE:
            return self.first_row[shown]
        first = len(self.number)
        lines = 0 if function.kind == "native" else max(1, function.slots - 1)
        self.number.append(0)
        self.number.extend(Column("I", range(function.first_line, function.first_line + lines)))
        self.function.extend(Column("I", [shown]) * (lines + 1))
        return first

    def row_of(self, function: int, number: int) -> int:
        """The row of a line, made if need be.  Line 0, "no line yet", is the function's first."""
        definition = self._functions[function]
        if definition is None:
            return NOWHERE
        if number == 0 and definition.kind != "native":
            number = definition.first_line
        if self.first_row[function] != NOWHERE and 0 <= number - definition.first_line < definition.slots - 1:
            return self.first_row[function] + 1 + number - definition.first_line
        return self._outside_row(self.shown[function], number)

    def _outside_row(self, function: int, number: int) -> int:
        row = self._outside.setdefault((function, number), len(self.number))
        if row == len(self.number):
            self.number.append(number)
            self.function.append(function)
        return row

    def take_no_line(self, sums: list[int]) -> dict[int, int]:
        """Takes out what was counted before a function's first line, or in a native function; by its row."""
        taken: dict[int, int] = {}
        for row in set(self.first_row):
            if row != NOWHERE and sums[row]:
                taken[row], sums[row] = sums[row], 0
        return taken

    def book_no_line(self, sums: list[int], used: Sequence[int]) -> None:
        """What was counted before a function's first line counts for that line.

        A main chunk begins on line 1 by definition, which may be a comment: there it
        is the first line that has any of 'used'.
        """
        counts = self.take_no_line(sums)
        for row, count in counts.items():
            sums[self._beginning(row, used)] += count

    def _beginning(self, row: int, used: Sequence[int]) -> int:
        function = self.function[row]
        own = range(row + 1, self._end_of(function, row + 1))
        if not own:
            return row
        definition = self._functions[function]
        is_main = definition is not None and definition.kind == "main"
        return next((line for line in own if used[line]), own[0]) if is_main else own[0]

    def _end_of(self, function: int, row: int) -> int:
        while row < len(self.function) and self.function[row] == function:
            row += 1
        return row
