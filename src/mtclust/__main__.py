"""``python -m mtclust``."""

import sys

from mtclust.app.cli import main

sys.exit(main())
