"""python -m lineheat"""

import sys

from lineheat.cli import main

sys.exit(main())
