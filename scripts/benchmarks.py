"""What Lineheat costs, beside what it promises.

    scripts/bench                     every runtime that is installed here; about half an hour
    scripts/bench --quick --only cpu --runtime lua5.4
    scripts/bench --long --write      the tables in BENCHMARKS.md

Ratios travel from machine to machine, times do not, so every figure that can be is a ratio to an
empty hook on the same runtime.  A ratio of CPU times is the median over pairs of neighbouring
runs, with the middle half of them in brackets; the mean over programs is geometric.
"""

import argparse
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from pathlib import Path
from statistics import median, quantiles

from bench_runs import (
    HITS_TO_FLOOR,
    PROGRAMS,
    ROOT,
    TRACE_TO_FLOOR,
    BenchError,
    Comparison,
    Costs,
    Program,
    Setup,
    Variant,
    agent_memory,
    cpu_costs,
    heat_folder,
    instruction_costs,
    mean_ratios,
    paired_ratios,
    set_up,
)
from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from lineheat.model.errors import LineheatError
from lineheat.targets.runtime import Family, Runtime, find_runtimes

BENCHMARKS_FILE = ROOT / "BENCHMARKS.md"
READER_BENCHMARK = ROOT / "scripts" / "bench_reader.py"

REPEATS, QUICK_REPEATS = 11, 3
MEMORY_EVENTS, LONG_MEMORY_EVENTS = 10**8, 10**9
MB = 1e6

# ---- What is asked -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Options:
    runtimes: tuple[Runtime, ...]
    parts: tuple[str, ...]
    repeats: int
    memory_events: int
    write: bool


# ---- What is promised ---------------------------------------------------------

Limits = Mapping[Family, float]

CPU_LIMITS: Mapping[Comparison, Limits] = {
    TRACE_TO_FLOOR: {Family.LUA51: 1.50, Family.LUA54: 1.30, Family.LUAJIT: 1.18},
    HITS_TO_FLOOR: {Family.LUA51: 1.10, Family.LUA54: 1.05, Family.LUAJIT: 1.05},
}
INSTRUCTION_LIMITS: Mapping[Comparison, Limits] = {
    TRACE_TO_FLOOR: {Family.LUA51: 1.22, Family.LUA54: 1.16, Family.LUAJIT: 1.20},
    HITS_TO_FLOOR: {Family.LUA51: 1.16, Family.LUA54: 1.10, Family.LUAJIT: 1.16},
}
MEMORY_LIMIT_MB = 32.0  # private memory and heat file together
FIRST_VIEW_LIMIT_S, REFRESH_LIMIT_S, READER_LIMIT_MB = 0.6, 0.25, 150.0


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number, and the promise about it if there is one."""

    what: str
    where: str  # runtime or file
    measured: float
    limit: float | None
    unit: str = ""

    @property
    def verdict(self) -> str:
        if self.limit is None:
            return ""
        return "ok" if self.measured <= self.limit else "over"


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """What one part of the benchmarks found."""

    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()


# ---- Costs of the agent -------------------------------------------------------

COMPARISONS = (
    Comparison("empty line", Variant.EMPTY_LINE, Variant.PLAIN),
    Comparison("empty hooks", Variant.EMPTY_HOOKS, Variant.PLAIN),
    Comparison("trace", Variant.TRACE, Variant.PLAIN),
    Comparison("hits only", Variant.HITS, Variant.PLAIN),
    TRACE_TO_FLOOR,
    HITS_TO_FLOOR,
)


@dataclass(frozen=True, slots=True)
class Result:
    runtime: Runtime
    program: Program
    costs: Costs


def cpu_part(options: Options) -> Part:
    results = measure_all(options, lambda setup, program: cpu_costs(setup, program, options.repeats))
    title = f"CPU time ({options.repeats} runs each; plain in seconds, all else ratios)"
    return Part(ratio_figures("CPU time", results, CPU_LIMITS), (cost_table(title, results, "{:.2f}", 1),))


def instructions_part(options: Options) -> Part:
    results = measure_all(options, lambda setup, program: instruction_costs(setup, program, tuple(Variant)))
    title = "Instructions (plain in millions between the two sizes, all else ratios)"
    figures = ratio_figures("instructions", results, INSTRUCTION_LIMITS)
    return Part(figures, (cost_table(title, results, "{:.1f}", 1e6),))


def measure_all(options: Options, measure: Callable[[Setup, Program], Costs]) -> list[Result]:
    """Grouped by runtime."""
    results = []
    with heat_folder() as folder:
        for runtime in options.runtimes:
            setup = set_up(runtime, folder)
            for program in PROGRAMS:
                say(f"{runtime.name} {program.name}")
                results.append(Result(runtime, program, measure(setup, program)))
    return results


def by_runtime(results: Sequence[Result]) -> Iterator[tuple[Runtime, list[Result]]]:
    for runtime, group in groupby(results, key=lambda result: result.runtime):
        yield runtime, list(group)


def ratio_figures(
    measure: str, results: Sequence[Result], limits: Mapping[Comparison, Limits]
) -> tuple[Figure, ...]:
    """Geometric means over the programs; runtimes of which nothing is promised, too."""
    return tuple(
        Figure(
            f"{comparison.name}, {measure}",
            runtime.version,
            median(mean_ratios([result.costs for result in group], comparison)),
            limits[comparison].get(runtime.family),
        )
        for comparison in limits
        for runtime, group in by_runtime(results)
    )


def cost_table(title: str, results: Sequence[Result], plain_format: str, plain_unit: float) -> Table:
    header = ("runtime", "program", "plain", *(comparison.name for comparison in COMPARISONS))
    rows: list[tuple[str, ...]] = []
    for runtime, group in by_runtime(results):
        for result in group:
            plain = plain_format.format(median(result.costs[Variant.PLAIN]) / plain_unit)
            ratios = (spread(paired_ratios(result.costs, comparison)) for comparison in COMPARISONS)
            rows.append((runtime.name, result.program.name, plain, *ratios))
        all_costs = [result.costs for result in group]
        means = (spread(mean_ratios(all_costs, comparison)) for comparison in COMPARISONS)
        rows.append((runtime.name, "geometric mean", "", *means))
    return Table(title, header, tuple(rows))


def spread(ratios: Sequence[float]) -> str:
    """The median, and between which values the middle half lies."""
    if len(ratios) == 1:
        return f"{ratios[0]:.3f}"
    low, middle, high = quantiles(ratios, n=4, method="inclusive")
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


# ---- Memory of the agent, speed of the reader ---------------------------------


def memory_part(options: Options) -> Part:
    figures = []
    with heat_folder() as folder:
        for runtime in options.runtimes:
            say(f"{runtime.name} memory")
            memory = agent_memory(set_up(runtime, folder), options.memory_events)
            what = f"private memory and heat file after {memory.events:.2g} events"
            megabytes = memory.total_bytes / MB
            figures.append(Figure(what, runtime.version, megabytes, MEMORY_LIMIT_MB, "MB"))
    return Part(tuple(figures))


_READER_FIGURES = re.compile(
    r"^(?P<tree>\w+):.*\n"
    r"\s*first (?P<first>[\d.]+) s, refresh (?P<refresh>[\d.]+) s.*\n"
    r"\s*peak memory (?P<megabytes>\d+) MB",
    re.MULTILINE,
)


def reader_part(options: Options) -> Part:
    """What scripts/bench_reader.py prints of each of its files."""
    say("reader")
    run = subprocess.run((sys.executable, READER_BENCHMARK), capture_output=True, encoding="utf-8")
    found = list(_READER_FIGURES.finditer(run.stdout))
    if run.returncode != 0 or not found:
        raise BenchError(f"{READER_BENCHMARK.name} ended with status {run.returncode}, without its figures")
    figures: list[Figure] = []
    for match in found:
        where = f"{match['tree']} tree of 2^18 rows"
        figures += (
            Figure("first view", where, float(match["first"]), FIRST_VIEW_LIMIT_S, "s"),
            Figure("refresh", where, float(match["refresh"]), REFRESH_LIMIT_S, "s"),
            Figure("peak memory of the reader", where, float(match["megabytes"]), READER_LIMIT_MB, "MB"),
        )
    return Part(tuple(figures))


# ---- Tables -------------------------------------------------------------------


def promise_table(figures: Sequence[Figure]) -> Table:
    header = ("figure", "of", "measured", "promised", "")
    return Table("Promises", header, tuple(_promise_row(figure) for figure in figures))


def _promise_row(figure: Figure) -> tuple[str, ...]:
    limit = "–" if figure.limit is None else f"≤ {figure.limit:.2f} {figure.unit}".rstrip()
    measured = f"{figure.measured:.2f} {figure.unit}".rstrip()
    return (figure.what, figure.where, measured, limit, figure.verdict)


def print_table(console: Console, table: Table) -> None:
    shown = RichTable(title=table.title, title_justify="left", box=box.SIMPLE)
    for name in table.header:
        shown.add_column(name, no_wrap=True)
    for row in table.rows:
        shown.add_row(*row, style="bold red" if row[-1] == "over" else "")
    console.print(shown)


def markdown_of(tables: Sequence[Table]) -> str:
    command = shlex.join(["scripts/bench", *sys.argv[1:]])
    facts = "\n".join(f"* {fact}" for fact in machine_facts())
    opening = (
        f"# Benchmarks\n\nMade by `{command}` on {date.today()}; what is measured and how is said in"
        f" `scripts/benchmarks.py` and `scripts/bench_runs.py`.\n\n{facts}\n"
    )
    return "\n".join([opening, *map(_markdown_table, tables)])


def _markdown_table(table: Table) -> str:
    lines = (table.header, ("---",) * len(table.header), *table.rows)
    return f"## {table.title}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


# ---- The machine --------------------------------------------------------------


def machine_facts() -> list[str]:
    runtimes = ", ".join(runtime.version for runtime in installed_runtimes())
    tools = ", ".join(filter(None, map(_first_line_said, (("cc", "--version"), ("valgrind", "--version")))))
    return [
        f"{_cpu_model()}, {os.cpu_count()} cores",
        f"{platform.system()} {platform.release()}, {platform.machine()}",
        f"Python {platform.python_version()}; {runtimes}; {tools}",
    ]


def _cpu_model() -> str:
    model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE)
    return model[1] if model else "unknown CPU"


def _first_line_said(command: Sequence[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, encoding="utf-8").stdout.partition("\n")[0]
    except OSError:
        return ""  # it is not here, so nothing was made with it


# ---- The command --------------------------------------------------------------

PARTS: Mapping[str, Callable[[Options], Part]] = {
    "instructions": instructions_part,
    "memory": memory_part,
    "reader": reader_part,
    "cpu": cpu_part,
}


def installed_runtimes() -> list[Runtime]:
    """Empty hooks come by `-e`, which the embedded ones do not take."""
    return sorted((found for found in find_runtimes() if not found.embedded), key=lambda found: found.name)


def options_of(arguments: Sequence[str]) -> Options:
    installed = {runtime.name: runtime for runtime in installed_runtimes()}
    parser = argparse.ArgumentParser(prog="scripts/bench", description="What Lineheat costs.")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_REPEATS} runs, not {REPEATS}")
    parser.add_argument("--runtime", action="append", choices=installed, help="only this; may be repeated")
    parser.add_argument("--only", action="append", choices=PARTS, help="only this; may be repeated")
    parser.add_argument("--long", action="store_true", help=f"memory after {LONG_MEMORY_EVENTS:.0e} events")
    parser.add_argument("--write", action="store_true", help=f"write {BENCHMARKS_FILE.name}")
    chosen = parser.parse_args(arguments)
    return Options(
        runtimes=tuple(installed[name] for name in chosen.runtime or installed),
        parts=tuple(chosen.only or PARTS),
        repeats=QUICK_REPEATS if chosen.quick else REPEATS,
        memory_events=LONG_MEMORY_EVENTS if chosen.long else MEMORY_EVENTS,
        write=chosen.write,
    )


def say(progress: str) -> None:
    print(progress, file=sys.stderr, flush=True)


def main() -> int:
    options = options_of(sys.argv[1:])
    try:
        found = [PARTS[name](options) for name in options.parts]
    except (BenchError, LineheatError) as error:
        say(f"scripts/bench: {error}")
        return 1
    promises = promise_table([figure for part in found for figure in part.figures])
    tables = [promises, *(table for part in found for table in part.tables)]
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    for table in tables:
        print_table(console, table)
    if options.write:
        BENCHMARKS_FILE.write_text(markdown_of(tables), "utf-8")
    return 0
