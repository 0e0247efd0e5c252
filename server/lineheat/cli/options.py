"""What the command line says, as values.  Names are fixed: others script against them."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from lineheat import __version__
from lineheat.model.errors import LineheatError

MODES = ("sample", "trace", "coverage")
REPORTS = ("none", "lines", "functions", "tree")
DEFAULT_TOP = 20
CONTROL_VERBS = {
    "start": "begin to record in a program that is armed, or a new recording after a stop",
    "pause": "count nothing until resume",
    "resume": "continue a pause",
    "stop": "complete this recording; the program runs on, armed",
    "terminate": "end the program: TERM, after 3 s KILL",
}


class UsageError(LineheatError):
    """Unknown option, mode, runtime or format, or a number that is none."""

    exit_status = 2

    def __init__(self, message: str) -> None:
        super().__init__("usage", message)


@dataclass(frozen=True, slots=True)
class Options:
    """One call of lineheat; what a verb does not take has its default."""

    verb: Callable[["Options"], int]
    mode: str = "sample"
    interval_us: int | None = None
    paused: bool = False
    runtime: str | None = None
    output: Path | None = None
    report: str = "lines"
    script: str = ""
    arguments: tuple[str, ...] = ()
    file: str = ""
    sources: tuple[str, ...] = ()
    top: int = DEFAULT_TOP
    json: bool = False


class _Parser(argparse.ArgumentParser):
    """One line instead of a usage dump."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see '{self.prog} --help'")


def parse(arguments: Sequence[str]) -> Options:
    """Raises UsageError."""
    parser = _make_parser()
    if not arguments:
        parser.print_help()
        raise SystemExit(2)
    values = vars(parser.parse_args(list(arguments)))
    verb = _lazy(values.pop("verb"))
    rest = values.pop("rest", None)
    if values.get("interval_us") is not None and values["mode"] != "sample":
        raise UsageError(f"--interval-us is for --mode sample, not {values['mode']}")
    if rest is not None:
        values["script"], values["arguments"] = _split_script(rest)
    if "sources" in values:
        values["sources"] = tuple(values["sources"])
    return Options(verb=verb, **values)


def _make_parser() -> _Parser:
    parser = _Parser(
        prog="lineheat",
        description="Puts what each line costs next to the line.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"lineheat {__version__}")
    verbs = parser.add_subparsers(required=True, metavar="VERB", parser_class=_Parser)
    _add_run(verbs)
    _add_show(verbs)
    _add_annotate(verbs)
    _add_runtimes(verbs)
    _add_sessions(verbs)
    _add_control(verbs)
    return parser


def _add_run(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    run = _verb(
        verbs, "run", "run a script under the profiler", usage="lineheat run [options] [--] SCRIPT [ARG …]"
    )
    run.add_argument(
        "--mode",
        choices=MODES,
        default="sample",
        help="sample: where the time goes, at next to no cost; trace: hits, time and calls, exact;"
        " coverage: hits alone",
    )
    run.add_argument(
        "--interval-us",
        type=_positive,
        metavar="N",
        help="sample: microseconds between two looks (1000)",
    )
    run.add_argument("--paused", action="store_true", help="record nothing until 'lineheat start'")
    run.add_argument(
        "--runtime",
        metavar="NAME|PATH",
        help="see 'lineheat runtimes'; default: what the script asks for, else what is here",
    )
    run.add_argument(
        "-o",
        dest="output",
        type=Path,
        metavar="FILE.heat",
        help="where the profile is saved; default: the session folder",
    )
    run.add_argument(
        "--report", choices=REPORTS, default="lines", help="what is printed on stderr at the end"
    )
    run.add_argument(
        "rest",
        nargs=argparse.REMAINDER,
        metavar="SCRIPT [ARG …]",
        help="all from the first word that is no option",
    )


def _add_show(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    show = _verb(verbs, "show", "figures of a profile, live or saved")
    show.add_argument("file", metavar="FILE", help="a heat file, or a session's ID")
    what = show.add_mutually_exclusive_group()
    for name in ("lines", "functions", "tree"):
        what.add_argument(
            f"--{name}", dest="report", action="store_const", const=name, help=f"the costliest {name}"
        )
    show.set_defaults(report="lines")
    show.add_argument("--top", type=_positive, default=DEFAULT_TOP, metavar="N", help="how many rows")
    show.add_argument("--json", action="store_true", help="one JSON object on stdout")


def _add_annotate(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    annotate = _verb(verbs, "annotate", "source with figures in the margin")
    annotate.add_argument("file", metavar="FILE", help="a heat file, or a session's ID")
    annotate.add_argument("sources", metavar="SOURCE", nargs="*", help="files to show; default: all that ran")


def _add_runtimes(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    runtimes = _verb(verbs, "runtimes", "what can be profiled on this machine")
    runtimes.add_argument("--json", action="store_true", help="one JSON object on stdout")


def _add_sessions(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    sessions = _verb(verbs, "sessions", "what runs under the profiler, or ran")
    sessions.add_argument("--json", action="store_true", help="one JSON object on stdout")


def _add_control(verbs: "argparse._SubParsersAction[_Parser]") -> None:
    for name, summary in CONTROL_VERBS.items():
        verb = _verb(verbs, name, summary)
        verb.set_defaults(verb=f"control.{name}")
        verb.add_argument("file", metavar="SESSION", help="a session's ID, or its profile's path")


def _verb(
    verbs: "argparse._SubParsersAction[_Parser]", name: str, summary: str, usage: str | None = None
) -> _Parser:
    parser = verbs.add_parser(name, help=summary, description=summary, usage=usage, allow_abbrev=False)
    parser.set_defaults(verb=name)
    return parser


def _lazy(name: str) -> Callable[[Options], int]:
    """A verb's module is loaded when it is called: most calls need few of them."""
    module = import_module(f"lineheat.cli.{name.partition('.')[0]}")
    verb: Callable[[Options], int] = getattr(module, name.rpartition(".")[2])
    return verb


def _split_script(rest: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    words = list(rest[1:] if rest[:1] == ["--"] else rest)
    if not words:
        raise UsageError("no script was named; see 'lineheat run --help'")
    return words[0], tuple(words[1:])


def _positive(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return number
