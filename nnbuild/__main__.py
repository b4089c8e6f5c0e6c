"""python -m nnbuild: the command line."""

from __future__ import annotations

import sys

from nnbuild.cli import main

sys.exit(main())
