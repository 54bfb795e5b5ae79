"""``python -m experiments`` is the command of :mod:`experiments.command`."""

import sys

from experiments.command import main

sys.exit(main())
