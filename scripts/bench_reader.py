"""Seconds and memory for reading a big heat file into a view.

usage: bench_reader.py [ROWS]        two trees, 2^18 rows each unless said otherwise

    random      10,000 functions of 10 lines; a path holds a function once
    recursive   100 functions of 10 lines that call one another; nearly all
                rows have a via and a run of slots of their own

Each figure is taken in a process of its own.
"""

import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "server"), str(ROOT / "tests")]

LINES = 10
SLOTS = LINES + 1
MOST_DEPTH = 60
MOST_RECURSION = 8
CHUNK_ROWS = 8192


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        measure(Path(sys.argv[2]))
        return
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 18
    with tempfile.TemporaryDirectory() as folder:
        for name, functions in (("random", 10_000), ("recursive", 100)):
            path = Path(folder) / f"{name}.heat"
            runs = write_tree(path, rows, functions)
            print(
                f"{name}: {rows:,} rows, {runs:,} with own runs, {path.stat().st_size / 1e6:.0f} MB",
                flush=True,
            )
            subprocess.run([sys.executable, __file__, "--measure", str(path)], check=True)


def measure(path: Path) -> None:
    from lineheat.analysis.builder import ViewBuilder
    from lineheat.heatfile import HeatFileReader

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
        begin = time.perf_counter()
        lines = len(view.lines)
        figures = time.perf_counter() - begin
    best, read = min(refreshes)
    print(f"  first {first:.2f} s, refresh {best:.3f} s ({read:.3f} s of it reading)")
    print(f"  peak memory {after_first:.0f} MB after the first, {peak_mb():.0f} MB with all figures")
    print(f"  figures of all {lines:,} lines {figures:.2f} s; not done at a refresh")


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write_tree(path: Path, rows: int, functions: int) -> int:
    """A tree of random calls, with counts in every row; returns how many rows have a run of their own."""
    from heat_writer import HeatWriter

    from lineheat.heatfile import Kind

    chance = random.Random(1)
    writer = HeatWriter(capacity=CHUNK_ROWS)
    defined = [
        writer.function(f"f{n}", f"file{n % 100}.lua", 20 * n + 1, 20 * n + LINES) for n in range(functions)
    ]
    parents, depth, path_of = [0], [0], [0]
    function_of = [-1]
    via_of = [0]
    recursion = [0]
    runs = 0
    while len(parents) < rows:
        parent = chance.randrange(max(0, len(parents) - 5000), len(parents))
        if depth[parent] >= MOST_DEPTH:
            continue
        callee = chance.randrange(functions)
        row, below = len(parents), len(parents)
        outer = parent
        while outer and function_of[outer] != callee:
            below, outer = outer, parents[outer]
        if outer and recursion[outer] + 1 >= MOST_RECURSION:
            continue
        caller = defined[function_of[parent]] if parent else None
        call_slot = caller.first_slot + chance.randint(1, LINES) if caller else 0
        function = defined[callee]
        first_slot = function.first_slot
        if outer:
            first_slot = writer.new_slots(SLOTS)
            runs += 1
        for _ in range(3):
            slot = first_slot + chance.randint(1, LINES)
            writer.add_to(Kind.LINE, slot, (chance.randint(1, 1000), chance.randint(1, 10**6), 0))
        writer.append(Kind.TREE_COST, (chance.randint(1, 1000), chance.randint(1, 10**6), 0))
        writer.append(Kind.TREE, (parent, call_slot, function.row, first_slot, below if outer else 0))
        parents.append(parent)
        depth.append(depth[parent] + 1)
        function_of.append(callee)
        via_of.append(below)
        recursion.append(recursion[outer] + 1 if outer else 0)
        path_of.append(row)
    writer.save(path)
    return runs


if __name__ == "__main__":
    main()
