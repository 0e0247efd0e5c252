"""Runs a Lua script on an interpreter that exists only as a library: a program of its own.

    python -I -S embedded_host.py LIBRARY AGENT NAME CONFIGURATION SCRIPT [ARG…]

The agent's `lineheat_host` does what the `lua` command does; this file only turns a Python process
into what a C program finds at its start.  It imports nothing of ours and nothing from outside the
standard library, so that no file of a workspace or virtual environment has a say in it.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

INITIAL_ENVIRONMENT = "/proc/self/environ"


def restore_signals() -> None:
    """Python ignores or handles these; a C program starts with their default action.

    A SIGINT that was ignored by whoever started us stays ignored: Python leaves that alone, too.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)


def restore_environment() -> None:
    """Where the locale is "C", Python sets LC_CTYPE (PEP 538), which the target must not inherit."""
    try:
        with open(INITIAL_ENVIRONMENT, "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return  # a system that does not tell; the target then sees LC_CTYPE=C.UTF-8
    if not any(variable.startswith(b"LC_CTYPE=") for variable in variables):
        os.environ.pop("LC_CTYPE", None)


def c_arguments(arguments: Sequence[str]) -> "ctypes.Array[ctypes.c_char_p]":
    """argv as C has it: the bytes we were given, then NULL."""
    return (ctypes.c_char_p * (len(arguments) + 1))(*map(os.fsencode, arguments))


def main(arguments: Sequence[str]) -> NoReturn:
    library, agent, *host_arguments = arguments
    try:
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)  # before the agent, which binds to what it finds
        host = ctypes.CDLL(agent).lineheat_host
    except OSError as error:
        sys.exit(f"lineheat: {error}")
    restore_signals()
    restore_environment()
    status = host(len(host_arguments), c_arguments(host_arguments))
    ctypes.CDLL(None).exit(status)  # flushes stdio, runs destructors; Python's own end would come on top
    raise AssertionError("exit returned")


if __name__ == "__main__":
    main(sys.argv[1:])
