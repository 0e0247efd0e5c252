"""lineheat show: figures of any profile, live or saved."""

from lineheat.analysis.builder import view_of
from lineheat.cli.json_report import write_json
from lineheat.cli.options import Options
from lineheat.cli.report import REPORTS, print_summary
from lineheat.cli.terminal import stdout_console
from lineheat.heatfile import read
from lineheat.session.folder import find_profile, session_of_profile


def show(options: Options) -> int:
    profile = find_profile(options.file)
    view = view_of(read(profile))
    if options.json:
        session = session_of_profile(profile)
        write_json(view, session.record.script if session else None)
        return 0
    console = stdout_console()
    REPORTS[options.report](console, view, options.top)
    print_summary(console, view)
    return 0
