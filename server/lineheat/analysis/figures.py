"""Figures of one line or one function, as every reader of a view gets them.

Field for field the rows of 'show --json'.  None: the mode does not measure it.
Times are as measured; self and total are time on the CPU.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LineFigures:
    """One line of one function."""

    file: str | None
    chunk: str | None  # of what has no file
    line: int
    function: str
    hits: int | None
    self_ns: int | None
    total_ns: int | None
    self_samples: int | None
    total_samples: int | None
    instructions: int | None
    total_instructions: int | None
    off_cpu_ns: int | None
    states: Mapping[str, int] | None  # self samples by name of the VM state
    zones: Mapping[str, int] | None  # self samples by innermost zone


@dataclass(frozen=True, slots=True)
class FunctionFigures:
    """One function; 'line' is its first, None where there are no lines."""

    name: str
    file: str | None
    chunk: str | None
    line: int | None
    calls: int | None
    self_ns: int | None
    total_ns: int | None
    self_samples: int | None
    total_samples: int | None
    instructions: int | None
    total_instructions: int | None
    off_cpu_ns: int | None
    states: Mapping[str, int] | None
    zones: Mapping[str, int] | None


Figures = LineFigures | FunctionFigures
