"""Loses cores of emulated boards at random points, one after the other, until so many were lost; each must be named,
and what is computed from the next start must be right. Goes on where it was ended: every line of LEDGER is a program
with some losses.

    python benchmarks/lost_cores.py LEDGER --count 1000

Time is counted in the emulator's instructions, so it may run beside anything else: chrt --idle 0 python …
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

BOARDS = ("rv32-smp", "mps2-an521")
EACH = 50
"""Losses in one program."""


def lines(ledger: Path) -> list[dict[str, int | str]]:
    return [json.loads(line) for line in ledger.read_text().splitlines()] if ledger.exists() else []


def summary(found: list[dict[str, int | str]]) -> str:
    parts = []
    for board in BOARDS:
        mine = [line for line in found if line["board"] == board]
        lost, wrong = (sum(int(line[what]) for line in mine) for what in ("lost", "wrong"))
        parts.append(f"{board}: {lost} cores lost, {wrong} not named or not followed by right results")
    return "\n".join(parts)


def main() -> int:
    from tests.support.lost_cores import Stop, lose, program

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ledger", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = {}
        for board in BOARDS:
            (Path(folder) / board).mkdir()
            programs[board] = program(board, Path(folder) / board)
        while sum(int(line["lost"]) for line in lines(given.ledger)) < given.count:
            seed = len(lines(given.ledger)) + 1
            board = BOARDS[seed % 4 == 0]
            found = lose(programs[board], Stop(1, 4 + seed % 6, seed % 3 == 0), EACH, seed)
            wrong = [f"{stop}: {said}" for stop, said in found if not stop.explains(said)]
            line = {"board": board, "seed": seed, "lost": len(found), "wrong": len(wrong)}
            print(json.dumps(line), *wrong, sep="\n", flush=True)
            with given.ledger.open("a") as file:
                file.write(json.dumps(line) + "\n")
    found_all = lines(given.ledger)
    print(summary(found_all))
    return 1 if any(line["wrong"] for line in found_all) else 0


if __name__ == "__main__":
    sys.exit(main())
