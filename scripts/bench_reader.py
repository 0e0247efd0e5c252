"""Seconds and memory for reading a big heat file into a view.

usage: bench_reader.py [ROWS]        2^18 unless said otherwise

    random      10,000 functions of 10 lines; a path holds a function once
    recursive   15 functions of 10 lines that call one another; most rows
                have a via and a run of slots of their own

Each figure is taken in a process of its own.
"""

import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "server"), str(ROOT / "tests")]

from heat_writer import HeatWriter  # noqa: E402  # found in the folders just added
from lineheat.analysis.builder import ViewBuilder  # noqa: E402
from lineheat.heatfile import HeatFileReader, Kind  # noqa: E402

LINES = 10
SLOTS = LINES + 1
LINES_HIT = 3  # of each activation
MOST_DEPTH = 250
MOST_RECURSION = 8
CHUNK_ROWS = 8192


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]))
        return
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 18
    with tempfile.TemporaryDirectory() as folder:
        for name, functions in (("random", 10_000), ("recursive", 15)):
            path = Path(folder) / f"{name}.heat"
            runs = write_tree(path, rows, functions)
            print(
                f"{name}: {rows:,} rows, {runs:,} with own runs, {path.stat().st_size / 1e6:.0f} MB",
                flush=True,
            )
            subprocess.run([sys.executable, __file__, "--measure", str(path)], check=True)


def measure(path: Path) -> None:
    with HeatFileReader(path) as reader:
        builder = ViewBuilder()
        begin = time.perf_counter()
        view = builder.view(reader.snapshot())
        first = time.perf_counter() - begin
        after_first = peak_mb()
        refreshes = []
        for _ in range(5):
            begin = time.perf_counter()
            snapshot = reader.snapshot()
            read = time.perf_counter() - begin
            view = builder.view(snapshot)
            refreshes.append((time.perf_counter() - begin, read))
        after_refresh = peak_mb()
        begin = time.perf_counter()
        lines = len(view.lines)
        figures = time.perf_counter() - begin
    best, read = min(refreshes)
    print(f"  first {first:.2f} s, refresh {best:.3f} s ({read:.3f} s of it reading)")
    print(f"  peak memory {after_first:.0f} MB after the first, {after_refresh:.0f} MB after refreshes")
    print(f"  figures of all {lines:,} lines at once {figures:.2f} s; an editor asks by file")


def peak_mb() -> float:
    """Of this program alone; getrusage() would also remember the process that started it."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@dataclass(frozen=True)
class TreeRow:
    """What the writer must know of a row to hang others below it."""

    number: int
    function: int  # -1: the root
    depth: int
    recursion: int  # rows above with the same function
    above: "TreeRow | None"


def write_tree(path: Path, rows: int, functions: int) -> int:
    """A tree of random calls, with counts in every row; returns how many rows have a run of their own."""
    chance = random.Random(1)
    writer = HeatWriter(capacity=CHUNK_ROWS)
    defined = [
        writer.function(f"f{n}", f"file{n % 100}.lua", 20 * n + 1, 20 * n + LINES) for n in range(functions)
    ]
    tree = [TreeRow(0, -1, 0, 0, None)]
    while len(tree) < rows:
        parent, callee = chance.choice(tree), chance.randrange(functions)
        outer, below = outer_row(parent, callee)
        recursion = outer.recursion + 1 if outer else 0
        if parent.depth >= MOST_DEPTH or recursion >= MOST_RECURSION:
            continue
        first_slot = writer.new_slots(SLOTS) if outer else defined[callee].first_slot
        call_slot = defined[parent.function].first_slot + chance.randint(1, LINES) if parent.above else 0
        for slot in chance.sample(range(first_slot + 1, first_slot + SLOTS), LINES_HIT):
            writer.add_to(Kind.LINE, slot, (chance.randint(1, 1000), chance.randint(1, 10**6), 0))
        row = writer.append(Kind.TREE_COST, (chance.randint(1, 1000), chance.randint(1, 10**6), 0))
        via = (below.number if below else row) if outer else 0
        writer.append(Kind.TREE, (parent.number, call_slot, defined[callee].row, first_slot, via))
        tree.append(TreeRow(row, callee, parent.depth + 1, recursion, parent))
    writer.save(path)
    return sum(row.recursion > 0 for row in tree)


def outer_row(parent: TreeRow, callee: int) -> tuple[TreeRow | None, TreeRow | None]:
    """The nearest row with that function from 'parent' upwards, and the row just below it."""
    row: TreeRow | None = parent
    below: TreeRow | None = None
    while row is not None and row.function != callee:
        row, below = row.above, row
    return row, below


if __name__ == "__main__":
    main()
