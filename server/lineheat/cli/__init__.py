"""The command line: reads argv, prints, and says in one line what cannot be done.

Exit status: the target's for what runs one; else 0, 1 for what cannot be done,
2 for wrong usage.
"""

import os
import sys
from collections.abc import Sequence

from lineheat.cli.options import UsageError, parse
from lineheat.model.errors import LineheatError


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        return options.verb(options)
    except LineheatError as error:
        print(f"lineheat: {error}", file=sys.stderr)
        return getattr(error, "exit_status", 1)
    except BrokenPipeError:
        # Whoever read our output has gone: nothing is left to say, also at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


__all__ = ["UsageError", "main"]
