"""Bytes of a heat file -> model: whole, growing, cut and damaged."""

import struct
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from heat_writer import HeatWriter
from lineheat import heatfile
from lineheat.analysis.builder import ViewBuilder, view_of
from lineheat.analysis.figures import Figures
from lineheat.heatfile import HeatFileError, HeatFileReader, Kind
from lineheat.model.recording import Control, ExitSignal, ExitStatus, State
from lineheat.model.snapshot import Snapshot
from lineheat.model.tables import NO_FUNCTION, Source

OF_ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
OFTEN = settings(OF_ONE_FOLDER, max_examples=400)

FIB = """
    main.lua:9 hits=1 ticks=10 calls=1
    main.lua:9;fib@main.lua:2 hits=3 ticks=20 calls=1
    main.lua:9;fib@main.lua:3 hits=2 ticks=5
    main.lua:9;fib@main.lua:3;fib@main.lua:2 hits=4 ticks=7 calls=4
    main.lua:9;print@[C] ticks=6 calls=2
"""
SAMPLES = """
    main.lua:9;fib@main.lua:2 N5 C1
    main.lua:9;<physics>;fib@main.lua:3;fib@main.lua:2 I7
    main.lua:9;print@[C] C2
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.heat"


# ---- A whole file ----


def test_reads_back_what_was_written(path: Path) -> None:
    snapshot = heatfile.read(HeatWriter().traced(FIB).finish().save(path))

    assert snapshot.recording.state is State.FINISHED
    assert snapshot.recording.exit == ExitStatus(0)
    assert snapshot.recording.wall_ns == 1_000_000_000
    assert snapshot.recording.missing == ()
    assert snapshot.sources == (Source("main.lua", "file"), Source("[C]", "native"))
    assert [function.name for function in snapshot.functions if function] == ["main", "fib", "print"]
    assert list(snapshot.calls.parent) == [0, 0, 1, 2, 1]
    assert list(snapshot.calls.via) == [0, 0, 0, 3, 0]
    assert list(snapshot.calls.self_ticks) == [0, 10, 25, 7, 6]
    assert snapshot.lines.instructions is None


def test_the_header_alone(path: Path) -> None:
    HeatWriter().set(note=b"disk full", samples=3, lost_ticks=2).save(path)

    recording = heatfile.read_recording(path)

    assert (recording.note, recording.samples, recording.losses.lost_ticks) == ("disk full", 3, 2)
    assert recording.state is State.RECORDING
    assert recording.exit_status is None


def test_the_sources_alone_as_they_come(path: Path) -> None:
    writer = HeatWriter()
    writer.source("main.lua")
    with HeatFileReader(writer.save(path)) as reader:
        assert reader.sources() == (Source("main.lua", "file"),)
        writer.source("lib.lua")
        writer.save(path)
        assert reader.sources() == (Source("main.lua", "file"), Source("lib.lua", "file"))
    assert heatfile.read_sources(path)[1].name == "lib.lua"


def test_a_path_that_is_no_utf_8_can_be_opened_again(path: Path) -> None:
    writer = HeatWriter()
    writer.source("caf\udce9.lua")
    assert heatfile.read(writer.save(path)).sources[0].name == "caf\udce9.lua"


def test_the_last_of_better_names_holds(path: Path) -> None:
    writer = HeatWriter().traced(FIB)
    writer.rename("fib", "main.lua", "local fib")
    writer.rename("fib", "main.lua", "Math.fib")
    assert [f.name for f in heatfile.read(writer.save(path)).functions if f] == ["main", "Math.fib", "print"]


def test_rings_begin_with_the_oldest_row(path: Path) -> None:
    writer = HeatWriter("sample").sampled(SAMPLES).finish()
    writer.ring(Kind.TIMELINE, 3, [(n, 1, 100 * n) for n in range(5)])
    aborted = writer.string("abort")
    writer.ring(Kind.EVENT, 4, [(7, aborted, 1, 2, 3, 4)])

    snapshot = heatfile.read(writer.save(path))

    assert list(snapshot.timelines[0].delta_ns) == [2, 3, 4]
    assert list(snapshot.timelines[0].heap_bytes) == [200, 300, 400]
    assert snapshot.events[0].kind == ("abort",)
    assert [list(column) for column in snapshot.events[0].values] == [[1], [2], [3], [4]]


def test_nothing_in_the_format_belongs_to_a_language(path: Path) -> None:
    states = ("R running", "W gil_wait", "Z idle")
    snapshot = heatfile.read(HeatWriter("sample", "Basic 7", states).sampled("a.bas:10 W3").save(path))
    assert [state.name for state in snapshot.vm_states] == ["running", "gil_wait", "idle"]
    assert [list(column) for column in snapshot.frames.samples] == [[0, 0], [0, 3], [0, 0]]


# ---- A file that grows ----


def test_a_reader_sees_new_rows_and_new_counts(path: Path) -> None:
    writer = HeatWriter().traced("main.lua:1 ticks=5")
    with HeatFileReader(writer.save(path)) as reader:
        before = reader.snapshot()
        writer.traced("main.lua:1 ticks=1\n lib@lib.lua:8 ticks=2").save(path)
        after = reader.snapshot()

    assert list(before.calls.self_ticks) == [0, 5]
    assert list(after.calls.self_ticks) == [0, 6, 2]
    assert [source.name for source in after.sources] == ["main.lua", "lib.lua"]
    assert len(before.sources) == 1, "a snapshot never changes"


@OF_ONE_FOLDER
@given(texts=st.lists(st.sampled_from([*FIB.strip().splitlines(), "x.lua:1;y@x.lua:4;x.lua:1 ticks=1"])))
def test_refreshing_equals_reading_anew(texts: list[str], path: Path) -> None:
    writer = HeatWriter(capacity=3)
    writer.define("main@main.lua:1-9", "fib@main.lua:2-3", "main@x.lua:1-2", "y@x.lua:3-4", "print@[C]:0-0")
    builder = ViewBuilder()
    path.unlink(missing_ok=True)
    with HeatFileReader(writer.save(path)) as reader:
        for text in texts:
            writer.traced(text).save(path)
            refreshed = builder.view(reader.snapshot())
            anew = view_of(heatfile.read(path))
            assert refreshed.lines == anew.lines
            assert refreshed.functions == anew.functions


def test_a_row_that_names_what_is_not_published_waits(path: Path) -> None:
    writer = HeatWriter().traced("main.lua:1 ticks=5")
    writer.append(Kind.TREE_COST, (1, 7, 0))
    writer.append(Kind.TREE, (1, 1, 1, 0, 0))
    with HeatFileReader(writer.save(path)) as reader:
        assert list(reader.snapshot().calls.parent) == [0, 0]
        writer.traced("lib@lib.lua:8 ticks=2").save(path)
        assert list(reader.snapshot().calls.function) == [NO_FUNCTION, 0, 1, 1]


def test_rows_that_nobody_has_published_yet_are_empty(path: Path) -> None:
    writer = HeatWriter(capacity=4).traced(FIB)  # runs of slots do not fit into what is left of a chunk
    snapshot = heatfile.read(writer.save(path))
    assert snapshot.recording.missing == ()
    assert view_of(snapshot).total_ticks == 48


# ---- What is written back ----


def test_the_control_word(path: Path) -> None:
    HeatWriter().save(path)
    heatfile.write_control(path, Control.STOP)
    assert path.read_bytes()[64:68] == b"\2\0\0\0"


@pytest.mark.parametrize(
    ("how", "state", "status"),
    [(ExitStatus(3), State.FINISHED, 3), (ExitSignal(9), State.DIED, 137), (None, State.DIED, None)],
)
def test_how_the_target_ended(
    how: ExitStatus | ExitSignal | None, state: State, status: int | None, path: Path
) -> None:
    HeatWriter().save(path)
    heatfile.write_exit(path, how, state)
    recording = heatfile.read_recording(path)
    assert (recording.exit, recording.state, recording.exit_status) == (how, state, status)


def test_the_text_that_ran_is_embedded_once(path: Path) -> None:
    HeatWriter().traced(FIB).finish().save(path)

    assert heatfile.embed_sources(path, {0: b"print(1)\n"}) == []
    once = path.read_bytes()
    assert heatfile.embed_sources(path, {0: b"something else"}) == []

    assert path.read_bytes() == once
    assert heatfile.read(path).texts == {0: b"print(1)\n"}
    assert heatfile.read(path).recording.missing == ()


def test_more_texts_come_behind_the_others(path: Path) -> None:
    HeatWriter().traced(FIB).finish().save(path)
    heatfile.embed_sources(path, {0: b"x" * 5000})
    heatfile.embed_sources(path, {1: b"y" * 10})
    assert heatfile.read(path).texts == {0: b"x" * 5000, 1: b"y" * 10}


def test_ten_megabytes_of_text_are_enough(path: Path) -> None:
    HeatWriter().traced(FIB).finish().save(path)
    assert heatfile.embed_sources(path, {0: b"x" * (10 << 20), 1: b"y"}) == [1]
    assert heatfile.read(path).texts.keys() == {0}


def test_a_cut_file_takes_no_text(path: Path) -> None:
    path.write_bytes(HeatWriter().traced(FIB).to_bytes()[:-100])
    with pytest.raises(HeatFileError, match="is damaged at byte"):
        heatfile.embed_sources(path, {0: b"x"})


# ---- Errors ----


@pytest.mark.parametrize(
    ("content", "slug", "message"),
    [
        (b"", "not-a-heat-file", "is empty, not a heat file"),
        (b"print('hello')", "not-a-heat-file", "is not a heat file"),
        (b"LINEHEAT", "heat-file-cut", "is cut at byte 8, within its header"),
        (b"LINEHEAT" + struct.pack("<II", 7, 4096) + bytes(4096), "other-heat-file-version", "of version 7"),
        (b"LINEHEAT" + struct.pack("<II", 1, 99) + bytes(4096), "heat-file-damaged", "is damaged at byte 12"),
    ],
)
def test_one_clear_line(content: bytes, slug: str, message: str, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(HeatFileError, match=message) as error:
        heatfile.read(path)
    assert error.value.slug == slug
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(path: Path) -> None:
    with pytest.raises(HeatFileError, match=r"cannot open .*run.heat: No such file"):
        heatfile.read(path)


def test_a_cut_file_says_so(path: Path) -> None:
    whole = HeatWriter().traced(FIB).to_bytes()
    path.write_bytes(whole[:-4096])
    missing = heatfile.read(path).recording.missing
    assert (
        missing[0] == f"The file ends at byte {len(whole) - 4096:,} of {len(whole):,}: the rest is missing."
    )


def test_absurd_counts(path: Path) -> None:
    writer = HeatWriter().traced(FIB)
    writer.add_to(Kind.LINE, 1, (1 << 63, 0, 0))
    snapshot = heatfile.read(writer.save(path))
    assert snapshot.recording.missing[0].startswith("Counters of the table line are damaged near byte")
    assert view_of(snapshot).total_ticks == 48


def test_runs_that_overlap_count_for_the_first(path: Path) -> None:
    writer = HeatWriter().traced(FIB)
    fib = writer.function("fib", "main.lua", 2, 3)
    writer.append(Kind.FUNCTION, (0, 0, 0, 1, 2, fib.first_slot + 1, 3))
    snapshot = heatfile.read(writer.save(path))
    assert "Runs of line slots overlap: some lines are missing." in snapshot.recording.missing
    assert view_of(snapshot).total_ticks == 48


def test_a_cycle_in_the_tree(path: Path) -> None:
    writer = HeatWriter().traced(FIB)
    writer.append(Kind.TREE_COST, (1, 2, 0), (1, 2, 0))
    writer.append(Kind.TREE, (6, 0, 0, 0, 0), (5, 0, 0, 0, 0))
    snapshot = heatfile.read(writer.save(path))
    assert snapshot.calls.parent[5] == 0
    assert "Rows of the tree are damaged: what they counted stands at the root." in snapshot.recording.missing


# ---- Laws ----

TRACED = HeatWriter("count", capacity=8).traced(FIB).finish()
TRACED_BYTES = TRACED.to_bytes()
SAMPLED = HeatWriter("sample", capacity=8).sampled(SAMPLES).finish()
SAMPLED.ring(Kind.TIMELINE, 3, [(n, 1, 100 * n) for n in range(5)])
SAMPLED.ring(Kind.EVENT, 3, [(n, 1, 2, 3, 4, 5) for n in range(5)])
SAMPLED_BYTES = SAMPLED.to_bytes()
FILES = st.sampled_from([TRACED_BYTES, SAMPLED_BYTES])


def places_that_matter(image: bytes) -> list[int]:
    """Bytes of the header, of chunk headers and of rows; not the padding."""
    chunks = range(4096, len(image), 4096)
    return [*range(704), *(at + byte for at in chunks for byte in range(64 + 200))]


@OF_ONE_FOLDER
@given(image=FILES, size=st.integers(0, 1 << 20))
def test_any_cut_reads_or_gives_one_clear_error(image: bytes, size: int, path: Path) -> None:
    path.write_bytes(image[: size % len(image)])
    snapshot = read_or_refuse(path)
    if snapshot is not None:
        assert snapshot.recording.missing
        check_sanity(snapshot)


@OFTEN
@given(image=FILES, place=st.integers(0, 1 << 20), byte=st.integers(1, 255))
def test_any_damaged_byte_reads_or_gives_one_clear_error(
    image: bytes, place: int, byte: int, path: Path
) -> None:
    places = places_that_matter(image)
    damaged = bytearray(image)
    damaged[places[place % len(places)]] ^= byte
    path.write_bytes(damaged)
    if (snapshot := read_or_refuse(path)) is not None:
        check_sanity(snapshot)


ODD_NUMBERS = [0, 1, 2, 5, 4096, 2**31 - 1, 2**31, 2**32 - 1, 2**56, 2**63, 2**64 - 1]


@OFTEN
@given(
    image=FILES,
    damage=st.lists(
        st.tuples(st.integers(0, 1 << 18), st.sampled_from(ODD_NUMBERS)), min_size=1, max_size=12
    ),
)
@example(image=TRACED_BYTES, damage=[(1024 * page + 8, 2**63) for page in range(1, 12)])
def test_any_odd_numbers_read_or_give_one_clear_error(
    image: bytes, damage: list[tuple[int, int]], path: Path
) -> None:
    places = [place for place in places_that_matter(image) if place % 4 == 0 and place >= 16]
    damaged = bytearray(image)
    for place, number in damage:
        at = places[place % len(places)]
        damaged[at : at + 8] = number.to_bytes(8, "little")
    path.write_bytes(damaged)
    if (snapshot := read_or_refuse(path)) is not None:
        check_sanity(snapshot)


@OF_ONE_FOLDER
@given(image=FILES, size=st.integers(4096, 1 << 20), later=st.integers(4096, 1 << 20))
def test_a_file_shortened_under_a_reader(image: bytes, size: int, later: int, path: Path) -> None:
    path.write_bytes(image[: size % (len(image) - 4096) + 4096])
    builder = ViewBuilder()
    with HeatFileReader(path) as reader:
        for content in (None, image[: later % (len(image) - 4096) + 4096], image):
            if content is not None:
                path.write_bytes(content)
            check_sanity(reader.snapshot(), builder)


def read_or_refuse(path: Path) -> Snapshot | None:
    try:
        return heatfile.read(path)
    except HeatFileError as error:
        message = str(error)
    assert str(path) in message
    assert "\n" not in message
    return None


def check_sanity(snapshot: Snapshot, builder: ViewBuilder | None = None) -> None:
    """Whatever was read: a view can be made of it, and no figure is more than the whole."""
    view = (builder or ViewBuilder()).view(snapshot)
    assert view.overhead_ns is None or view.overhead_ns >= 0
    everything: list[Figures] = [*view.lines, *view.functions]
    for figures in everything:
        assert 0 <= view.self_share(figures) <= 1
        assert (figures.total_ns or 0) <= (view.total_ns or 0) + 1
        assert (figures.total_samples or 0) <= (view.total_samples or 0)
