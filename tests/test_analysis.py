"""Stacks in, figures out: self, total, hits, calls, states and zones."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heat_writer import HeatWriter
from lineheat import heatfile
from lineheat.analysis.builder import ViewBuilder, view_of
from lineheat.analysis.shares import heat_bucket, share
from lineheat.analysis.view import View
from lineheat.heatfile import HeatFileReader, Kind
from lineheat.model.recording import State


@dataclass
class Pages:
    """Writes heat files and gives their views."""

    path: Path

    def view(self, writer: HeatWriter) -> View:
        self.path.unlink(missing_ok=True)
        return view_of(heatfile.read(writer.finish().save(self.path)))

    def sampled(self, stacks: str) -> View:
        return self.view(HeatWriter("sample").sampled(stacks))

    def traced(self, paths: str, mode: str = "trace") -> View:
        return self.view(HeatWriter(mode, capacity=5).traced(paths))


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    return Pages(tmp_path / "run.heat")


def line_times(view: View) -> dict[str, tuple[int | None, int | None]]:
    """Self and total in ns (a tick is one) by 'function@file:line'."""
    return {f"{line.function}@{line.file}:{line.line}": (line.self_ns, line.total_ns) for line in view.lines}


def function_times(view: View) -> dict[str, tuple[int | None, int | None]]:
    return {function.name: (function.self_ns, function.total_ns) for function in view.functions}


def line_samples(view: View) -> dict[str, tuple[int | None, int | None]]:
    return {
        f"{line.function}@{line.file}:{line.line}": (line.self_samples, line.total_samples)
        for line in view.lines
    }


# ---- Traced: self and total ----


def test_a_line_costs_what_it_calls(pages: Pages) -> None:
    view = pages.traced("""
        main.lua:1 hits=1 ticks=10 calls=1
        main.lua:1;area@main.lua:5 hits=2 ticks=30 calls=2
        main.lua:2;area@main.lua:5 hits=1 ticks=15 calls=1
    """)
    assert line_times(view) == {
        "main@main.lua:1": (10, 40),
        "main@main.lua:2": (0, 15),
        "area@main.lua:5": (45, 45),
    }
    assert function_times(view) == {"main": (10, 55), "area": (45, 45)}
    assert [function.calls for function in view.functions] == [1, 3]
    assert view.total_ns == 55


def test_recursion_counts_once(pages: Pages) -> None:
    view = pages.traced("""
        main.lua:9;fib@main.lua:2 ticks=1
        main.lua:9;fib@main.lua:3 ticks=10
        main.lua:9;fib@main.lua:3;fib@main.lua:2 ticks=2
        main.lua:9;fib@main.lua:3;fib@main.lua:3 ticks=20
        main.lua:9;fib@main.lua:3;fib@main.lua:3;fib@main.lua:2 ticks=4
    """)
    assert line_times(view) == {
        "main@main.lua:9": (0, 37),
        "fib@main.lua:2": (7, 7),
        "fib@main.lua:3": (30, 36),
    }
    assert function_times(view) == {"main": (0, 37), "fib": (30 + 7, 37)}


def test_mutual_recursion_counts_once(pages: Pages) -> None:
    view = pages.traced("""
        even@n.lua:1;odd@n.lua:5;even@n.lua:1;odd@n.lua:5 ticks=8
        even@n.lua:1;odd@n.lua:5;even@n.lua:2 ticks=1
    """)
    assert line_times(view) == {"even@n.lua:1": (0, 9), "even@n.lua:2": (1, 1), "odd@n.lua:5": (8, 9)}
    assert function_times(view) == {"even": (1, 9), "odd": (8, 9)}


def test_native_functions_have_no_lines(pages: Pages) -> None:
    view = pages.traced("""
        main.lua:1;pcall@[C];work@main.lua:4 ticks=9
        main.lua:1;pcall@[C] ticks=2 calls=1
    """)
    assert line_times(view) == {"main@main.lua:1": (0, 11), "work@main.lua:4": (9, 9)}
    assert function_times(view) == {"main": (0, 11), "pcall": (2, 11), "work": (9, 9)}
    pcall = view.functions[1]
    assert (pcall.file, pcall.chunk, pcall.line) == (None, "[C]", None)


def test_time_before_a_functions_first_line_counts_for_that_line(pages: Pages) -> None:
    view = pages.traced("""
        main.lua:1;work@main.lua:4 hits=1 ticks=5
        main.lua:1;work@main.lua ticks=2
    """)
    work = view.lines_of("main.lua")[1]
    assert (work.line, work.hits, work.self_ns) == (4, 1, 7)


def test_calls_too_deep_for_the_tree_are_calls_all_the_same(pages: Pages) -> None:
    writer = HeatWriter().traced("main.lua:1;work@main.lua:4 hits=1 ticks=5 calls=1")
    writer.add_to(Kind.LINE, writer.function("work", "main.lua", 4, 4).first_slot, (3, 0, 0))
    view = pages.view(writer)
    assert [function.calls for function in view.functions] == [0, 4]
    assert [line.hits for line in view.lines] == [0, 1]


def test_a_file_loaded_twice_is_shown_once(pages: Pages) -> None:
    writer = HeatWriter().traced("main.lua:1;f@lib.lua:1 hits=1 ticks=5 calls=1")
    first_slot = writer.new_slots(2)
    writer.append(Kind.FUNCTION, (1, writer.string("f"), writer.string("toy"), 1, 1, first_slot, 2))
    writer.add_to(Kind.LINE, first_slot + 1, (2, 7, 0))
    writer.append(Kind.TREE_COST, (1, 7, 0))
    writer.append(Kind.TREE, (1, 2, 2, first_slot, 0))
    view = pages.view(writer)
    assert line_times(view) == {"f@lib.lua:1": (12, 12), "main@main.lua:1": (0, 12)}
    assert [function.calls for function in view.functions] == [0, 2]


def test_the_row_at_work_lags_behind_its_lines(pages: Pages) -> None:
    writer = HeatWriter().traced("main.lua:1;work@main.lua:4 ticks=5")
    writer.add_to(Kind.LINE, writer.function("work", "main.lua", 4, 4).first_slot + 1, (1, 100, 0))
    writer.set(current_row=2)
    view = pages.view(writer)
    assert line_times(view) == {"main@main.lua:1": (0, 105), "work@main.lua:4": (105, 105)}
    assert view.total_ns == 105


def test_instructions_and_time_off_the_cpu(pages: Pages) -> None:
    view = pages.traced(
        """
        main.lua:1 ticks=1 instructions=10
        main.lua:1;work@main.lua:4 ticks=2 off=50 instructions=20
        """,
        mode="count",
    )
    assert [line.instructions for line in view.lines] == [10, 20]
    assert [line.total_instructions for line in view.lines] == [30, 20]
    assert [line.off_cpu_ns for line in view.lines] == [0, 50]
    assert view.total_instructions == 30
    assert view.total_ns == 3


def test_what_a_mode_does_not_measure_is_none(pages: Pages) -> None:
    (line,) = pages.traced("main.lua:1 hits=3", mode="coverage").lines
    assert (line.hits, line.self_ns, line.total_ns, line.off_cpu_ns) == (3, None, None, None)
    assert (line.self_samples, line.states, line.zones, line.instructions) == (None, None, None, None)
    (line,) = pages.sampled("main.lua:1 5").lines
    assert (line.hits, line.off_cpu_ns, line.instructions) == (None, None, None)


def test_overhead_is_what_all_events_cost(pages: Pages) -> None:
    writer = (
        HeatWriter()
        .traced("main.lua:1 hits=3 calls=2")
        .set(line_event_ticks_x16=160, call_event_ticks_x16=1600)
    )
    assert pages.view(writer).overhead_ns == 3 * 10 + 2 * 100
    assert pages.traced("main.lua:1 hits=3 calls=2").overhead_ns is None


# ---- Sampled ----


def test_samples_count_where_they_were_taken(pages: Pages) -> None:
    view = pages.sampled("""
        main.lua:9;fib@main.lua:3;fib@main.lua:3;fib@main.lua:2 5
        main.lua:9;fib@main.lua:3;fib@main.lua:3 5
    """)
    assert line_samples(view) == {
        "main@main.lua:9": (0, 10),
        "fib@main.lua:2": (5, 5),
        "fib@main.lua:3": (5, 10),
    }
    assert [(f.name, f.self_samples, f.total_samples) for f in view.functions] == [
        ("main", 0, 10),
        ("fib", 10, 10),
    ]


def test_sampled_time_is_a_share_of_measured_time(pages: Pages) -> None:
    view = pages.sampled("main.lua:1 30\n main.lua:2 10")
    assert [line.self_ns for line in view.lines] == [675_000_000, 225_000_000]
    assert view.total_ns == view.recording.cpu_ns == 900_000_000


def test_states_add_up(pages: Pages) -> None:
    view = pages.sampled("main.lua:1 N3 C2\n main.lua:1;sort@[C] C4\n main.lua:2 G1")
    assert view.states == {"native": 3, "interpreted": 0, "c": 6, "gc": 1, "jit": 0}
    assert [line.states for line in view.lines] == [{"native": 3, "c": 2}, {"gc": 1}]
    assert [function.states for function in view.functions] == [{"native": 3, "c": 2, "gc": 1}, {"c": 4}]


def test_the_innermost_zone_gets_the_samples(pages: Pages) -> None:
    view = pages.sampled("""
        main.lua:1 1
        <frame>;main.lua:1 2
        <frame>;main.lua:1;<physics>;step@main.lua:7 4
    """)
    assert [line.zones for line in view.lines] == [{"frame": 2}, {"physics": 4}]
    assert [line.total_samples for line in view.lines] == [7, 4]


# ---- Places ----


def test_relative_names_are_resolved_by_who_knows_the_folder(tmp_path: Path) -> None:
    path = HeatWriter().traced("main.lua:1 hits=1").save(tmp_path / "run.heat")
    view = view_of(heatfile.read(path), resolve=lambda name: f"/home/me/{name}")
    assert view.files == ["/home/me/main.lua"]
    assert view.lines_of("/home/me/main.lua") == list(view.lines)
    assert view.lines_of("main.lua") == []


def test_a_chunk_without_a_file_is_known_by_its_text(pages: Pages) -> None:
    writer = HeatWriter()
    writer.source("x", "string", "local x = 1\nreturn x", 0x0123456789ABCDEF)
    view = pages.view(writer.traced("x:1 hits=1"))
    assert (view.lines[0].file, view.lines[0].chunk) == (None, '[string "local x = 1…"]#01234567')
    assert view.files == []


def test_a_better_name_makes_two_functions_one(tmp_path: Path) -> None:
    writer = HeatWriter().define("f@lib.lua:1-2", "g@lib.lua:1-2")
    writer.traced("f@lib.lua:1 ticks=1\n g@lib.lua:1 ticks=2")
    builder = ViewBuilder()
    with HeatFileReader(writer.save(tmp_path / "run.heat")) as reader:
        assert len(builder.view(reader.snapshot()).lines) == 2
        writer.rename("g", "lib.lua", "f")
        writer.save(tmp_path / "run.heat")
        assert line_times(builder.view(reader.snapshot())) == {"f@lib.lua:1": (3, 3)}


def test_the_hottest_first(pages: Pages) -> None:
    view = pages.traced("main.lua:1 ticks=5\n main.lua:2 ticks=50\n main.lua:3;f@main.lua:7 ticks=20")
    assert [line.line for line in view.hottest_lines(2)] == [2, 7]
    assert [function.name for function in view.hottest_functions(9)] == ["main", "f"]
    assert view.self_share(view.hottest_lines(1)[0]) == pytest.approx(50 / 75)


def test_shares_and_buckets() -> None:
    assert (share(1, 0), share(3, 2), share(1, 4)) == (0, 1, 0.25)
    assert [heat_bucket(x) for x in (0, 0.0099, 0.01, 0.03, 0.1, 0.3, 1)] == [0, 0, 1, 2, 3, 4, 4]


# ---- Laws: against the slow definition, every stack by itself ----

FRAMES = ["main@a:1", "main@a:2", "f@a:5", "f@a:6", "g@a:8", "g@b:1", "c@[C]"]
STACKS = st.lists(
    st.tuples(st.lists(st.sampled_from(FRAMES), min_size=1, max_size=7), st.integers(1, 1000)),
    min_size=1,
    max_size=12,
)
OF_ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@dataclass
class SlowSums:
    """What a profile says by definition: a stack gives its weight once to each line and function in it."""

    line_self: Counter[str]
    line_total: Counter[str]
    function_self: Counter[str]
    function_total: Counter[str]


def slow_sums(stacks: Sequence[tuple[list[str], int]]) -> SlowSums:
    sums = SlowSums(Counter(), Counter(), Counter(), Counter())
    for stack, weight in stacks:
        sums.line_self[stack[-1]] += weight
        sums.function_self[place_of(stack[-1])] += weight
        for line in set(stack):
            sums.line_total[line] += weight
        for function in set(map(place_of, stack)):
            sums.function_total[function] += weight
    return sums


def place_of(frame: str) -> str:
    return frame.partition(":")[0]


@OF_ONE_FOLDER
@given(STACKS)
def test_traced_totals_equal_their_slow_definition(pages: Pages, stacks: list[tuple[list[str], int]]) -> None:
    text = "\n".join(f"{';'.join(stack)} ticks={weight} hits=1" for stack, weight in stacks)
    view = pages.traced(text)
    check_against(
        slow_sums(stacks),
        {f"{line.function}@{line.file}:{line.line}": (line.self_ns, line.total_ns) for line in view.lines},
        {f"{f.name}@{f.file or f.chunk}": (f.self_ns, f.total_ns) for f in view.functions},
    )
    whole = sum(weight for _, weight in stacks)
    assert view.total_ns == whole == sum(function.self_ns or 0 for function in view.functions)
    assert view.tree_ticks[0] == whole
    assert list(view.tree_ticks) == slow_tree_totals(view)
    assert sum(line.hits or 0 for line in view.lines) == sum(stack[-1] != "c@[C]" for stack, _ in stacks)


@OF_ONE_FOLDER
@given(STACKS)
def test_sampled_totals_equal_their_slow_definition(
    pages: Pages, stacks: list[tuple[list[str], int]]
) -> None:
    view = pages.sampled("\n".join(f"{';'.join(stack)} {weight}" for stack, weight in stacks))
    check_against(
        slow_sums(stacks),
        {f"{ln.function}@{ln.file}:{ln.line}": (ln.self_samples, ln.total_samples) for ln in view.lines},
        {f"{f.name}@{f.file or f.chunk}": (f.self_samples, f.total_samples) for f in view.functions},
    )
    assert view.total_samples == sum(weight for _, weight in stacks)


def check_against(
    sums: SlowSums,
    lines: dict[str, tuple[int | None, int | None]],
    functions: dict[str, tuple[int | None, int | None]],
) -> None:
    assert lines == {
        line: (sums.line_self[line], total)
        for line, total in sums.line_total.items()
        if not line.endswith("[C]")
    }
    assert functions == {
        function: (sums.function_self[function], total) for function, total in sums.function_total.items()
    }


def slow_tree_totals(view: View) -> list[int]:
    """Every row's own, added to each row above it."""
    calls = view.snapshot.calls
    totals = list(calls.self_ticks)
    for row, own in enumerate(calls.self_ticks):
        above = row
        while above:
            above = calls.parent[above]
            totals[above] += own
    return totals


def test_the_recording_is_part_of_the_view(pages: Pages) -> None:
    assert pages.traced("main.lua:1 hits=1").recording.state is State.FINISHED
