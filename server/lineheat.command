#!python
"""The command 'lineheat'."""

import os
import sys

# A module that PYTHONPATH finds in a workspace must not take the place of ours, so Python begins
# again without it; the variable itself stays as it is, for the target.
if "PYTHONPATH" in os.environ and not sys.flags.ignore_environment:
    os.execv(sys.executable, [sys.executable, "-E", *sys.argv])

from lineheat.cli import main

sys.exit(main())
