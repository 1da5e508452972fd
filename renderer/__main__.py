"""`python -m renderer` is the command `renderer`."""

import sys

from renderer.cli import main

sys.exit(main())
