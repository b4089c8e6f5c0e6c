"""Loses cores of emulated boards at random points, one after the other: each must be named within the bound, and what
is computed from the next start must be right. Ends with 1 where one is not.

    python benchmarks/lost_cores.py --count 1000

Time is counted in the emulator's instructions, so it may run beside anything else: chrt --idle 0 python …
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

BOARDS = ("rv32-smp", "mps2-an521")
EACH = 250
"""Losses in one program."""


def main() -> int:
    from tests.support.lost_cores import losing

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="of each board")
    parser.add_argument("--seed", type=int, default=1, help="of the first program; the next ones follow")
    given = parser.parse_args()
    wrong = 0
    for board in BOARDS:
        for number in range(-(-given.count // EACH)):
            with tempfile.TemporaryDirectory() as folder:
                said = losing(board, min(EACH, given.count - number * EACH), given.seed + number, Path(folder))
            wrong += ", 0 never, 0 not named, 0 wrong" not in said
            print(f"{board}: {said}", end="", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
