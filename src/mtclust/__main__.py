"""``python -m mtclust``."""

import sys

from mtclust.cli import main

sys.exit(main())
