"""lineheat start, pause, resume, stop, terminate: what a running program's profiler is to do."""

from lineheat.cli.options import Options
from lineheat.cli.terminal import stdout_console
from lineheat.session.control import PAUSE, RESUME, START, STOP, Wish, ask
from lineheat.session.control import terminate as terminate_target
from lineheat.session.folder import find_session


def start(options: Options) -> int:
    return _ask(options, START)


def pause(options: Options) -> int:
    return _ask(options, PAUSE)


def resume(options: Options) -> int:
    return _ask(options, RESUME)


def stop(options: Options) -> int:
    return _ask(options, STOP)


def terminate(options: Options) -> int:
    terminate_target(find_session(options.file))
    return 0


def _ask(options: Options, wish: Wish) -> int:
    """0 also where the answer is still to come: it was asked for, and will be done."""
    answer = ask(find_session(options.file), wish)
    if answer.has_answered:
        stdout_console().print(f"{answer.state.value}: {answer.profile}", soft_wrap=True)
    else:
        stdout_console().print(
            f"{answer.state.value}: the program sleeps or waits; it will {wish.verb} at its next instruction"
        )
    return 0
