"""Starting a program only to hear what it says."""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

ANSWER_SECONDS = 5.0


class NoAnswer(Exception):
    """The program did not start, or did not end in time; the text says which, and goes into a message."""


def answer_of(program: Path, arguments: Sequence[str], question: str = "") -> str:
    """All that the program prints, on both streams, when 'question' is its standard input.

    No code of the user's runs: LUA_INIT is kept from it.
    """
    try:
        process = subprocess.Popen(
            arguments,
            executable=program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env=_environment(),
            start_new_session=True,
        )
    except OSError as error:
        raise NoAnswer(f"does not start: {error.strerror}") from error
    with process:
        return _hear(process, question)


def _hear(process: subprocess.Popen[str], question: str) -> str:
    try:
        return process.communicate(question, timeout=ANSWER_SECONDS)[0]
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)  # a wrapper's children, too
        raise NoAnswer(f"does not answer within {ANSWER_SECONDS:g} s") from error


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("LUA_INIT")}
