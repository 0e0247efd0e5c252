"""Fixtures of the tests that run Lineheat."""

from pathlib import Path

import pytest

from lineheat_runner import Lineheat


@pytest.fixture
def lineheat(tmp_path: Path) -> Lineheat:
    """Lineheat with folders of its own, all below tmp_path; programs run in tmp_path."""
    return Lineheat(tmp_path)
