"""What the agent may cost: counted in instructions and bytes, so that no noise can fail it.

Times are not tested; scripts/bench shows them beside what is promised of them.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import geometric_mean

import pytest

from lineheat.targets.runtime import Family, find_runtimes

sys.path.append(str(Path(__file__).parents[1] / "scripts"))

from bench_runs import (
    HITS_TO_FLOOR,
    PROGRAMS,
    TRACE_TO_FLOOR,
    Comparison,
    Setup,
    agent_memory,
    heat_folder,
    instruction_costs,
    paired_ratios,
    set_up,
)
from benchmarks import INSTRUCTION_LIMITS, MB, MEMORY_LIMIT_MB

pytestmark = pytest.mark.figure

SMALL_PROGRAMS = [program for program in PROGRAMS if program.name not in ("richards", "deltablue")]

each_promised_family = pytest.mark.parametrize(
    "family", [Family.LUA51, Family.LUA54, Family.LUAJIT], ids=lambda family: family.command
)


@pytest.fixture
def setup(family: Family) -> Iterator[Setup]:
    runtimes = (found for found in find_runtimes() if found.family is family and not found.embedded)
    runtime = next(runtimes, None)
    if runtime is None:
        pytest.skip(f"{family.command} is not installed")
    if not shutil.which("cc"):
        pytest.skip("the empty hooks need a C compiler, and there is no cc")
    with heat_folder() as folder:
        yield set_up(runtime, folder)


@each_promised_family
@pytest.mark.parametrize("comparison", [TRACE_TO_FLOOR, HITS_TO_FLOOR], ids=lambda chosen: chosen.over.value)
def test_instructions_beyond_those_of_an_empty_hook(
    setup: Setup, family: Family, comparison: Comparison
) -> None:
    if not shutil.which("valgrind"):
        pytest.skip("instructions are counted by valgrind, which is not installed")
    ratios = {}
    for program in SMALL_PROGRAMS:
        costs = instruction_costs(setup, program, (comparison.over, comparison.under))
        (ratios[program.name],) = paired_ratios(costs, comparison)
    assert min(ratios.values()) > 1, "the agent cannot have been at work"
    assert geometric_mean(ratios.values()) <= INSTRUCTION_LIMITS[comparison][family], ratios


@each_promised_family
def test_memory_does_not_grow_with_the_events(setup: Setup) -> None:
    memory = agent_memory(setup, events=10**7)
    assert memory.heat_file_bytes > 0
    assert memory.total_bytes <= MEMORY_LIMIT_MB * MB, memory
