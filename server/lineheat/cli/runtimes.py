"""lineheat runtimes: what can be profiled here, where it was found, what each can do."""

import json
import sys

from rich.table import Table

from lineheat.cli.options import Options
from lineheat.cli.terminal import printable, whole_console
from lineheat.targets.agent import agent_library
from lineheat.targets.capabilities import Capabilities, capabilities
from lineheat.targets.runtime import Runtime, find_runtimes


def runtimes(options: Options) -> int:
    agent = agent_library()
    found = [(runtime, capabilities(runtime, agent)) for runtime in find_runtimes()]
    if options.json:
        json.dump({"format": 1, "runtimes": [_row(*entry) for entry in found]}, sys.stdout)
        sys.stdout.write("\n")
        return 0
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("runtime", "version", "modes", "where"):
        table.add_column(heading, no_wrap=True)
    for runtime, can in found:
        table.add_row(
            runtime.name, runtime.version, ", ".join(can.modes) or can.obstacle, printable(str(runtime.path))
        )
    whole_console().print(table)
    return 0


def _row(runtime: Runtime, can: Capabilities) -> dict[str, object]:
    return {
        "name": runtime.name,
        "version": runtime.version,
        "path": str(runtime.path),
        "embedded": runtime.embedded,
        "modes": list(can.modes),
        "obstacle": can.obstacle,
    }
