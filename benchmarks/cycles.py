"""Cycles of models on parts, modelled, beside what they must not exceed.

    python benchmarks/cycles.py [--layers] [--json FILE] [MODEL ...]

The parts: a Cortex-M33 and a Cortex-M4 at zero wait states, an STM32F405 at 168 MHz, an STM32L4R5 at 120 MHz with
two banks, and a Cortex-M0 at zero wait states. Fails where a figure is above its bar.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.models import path_of
from nnbuild.jobs.cycles import cycles_of
from nnbuild.jobs.job import build_program, place
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.report.cycles import CycleProfile, cycles_object, cycles_text
from nnbuild.report.table import render

M0 = "cortex-m0-zero-wait"
"""A made-up part of the same core, with memory for every model."""
SMALL = {"microbit", M0}
OWN = {M0: Path(__file__).with_name(M0) / "board.toml"}
BARS: dict[str, dict[str, float | None]] = {
    "resnet8": {"mps2-an505": 9.0, "mps2-an386": 10.5, "stm32f405": 12.0, "nucleo-l4r5zi": 15.0, M0: 62.0},
    "kws": {"mps2-an505": 3.1, "mps2-an386": 3.6, "stm32f405": 4.2, "nucleo-l4r5zi": 4.9, "microbit": 18.0, M0: None},
    "autoencoder": {"mps2-an386": 0.37, "stm32f405": 0.48, "nucleo-l4r5zi": 0.57},
    "vww": {"nucleo-l4r5zi": 10.5},
    "mnist": {"mps2-an386": None, "stm32f405": None, "nucleo-l4r5zi": None, "microbit": None},
}
"""Model -> board -> Mcycles."""
CONSTANTS = {"resnet8": 250_000, "kws": 1.15, "autoencoder": 1.15, "vww": 1.15}
"""Model -> bytes of its constants at most, or how many times those of its parameters; a Cortex-M0 may take more."""


def measure(model: str, board: str, path: Path) -> tuple[CycleProfile, int]:
    """With the bytes of its constants."""
    compiled = compile_model(Options(path, str(OWN.get(board, board)), "int8", name=model))
    with place(None, None) as where:
        profile = cycles_of(compiled, build_program(compiled, where))
    return profile, sum(data.nbytes for data in compiled.plan.constants.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="MODEL")
    parser.add_argument("--board", action="append", help="this board alone")
    parser.add_argument("--layers", action="store_true", help="every layer, and what it waits for")
    parser.add_argument("--json", type=Path, metavar="FILE", help="all figures as JSON")
    arguments = parser.parse_args()
    rows, found, missed = [], [], 0
    for model, bars in BARS.items():
        path = path_of(model) if not arguments.names or model in arguments.names else None
        for board, bar in bars.items():
            if path is None or (arguments.board and board not in arguments.board):
                continue
            profile, weights = measure(model, board, path)
            mega = profile.cycles.whole.cycles / 1e6
            parameters, most = sum(each.parameters for each in profile.stored), CONSTANTS.get(model)
            most = None if board in SMALL else most
            heavy = most is not None and weights > (most if isinstance(most, int) else most * parameters)
            missed += heavy or (bar is not None and mega > bar)
            verdict = "" if bar is None else "held" if mega <= bar else f"{100 * (mega / bar - 1):.0f} % above"
            told = "" if bar is None else f"{bar:g}"
            milliseconds = f"{profile.cycles.milliseconds:.2f}"
            sizes = [f"{weights:,}", f"{weights / parameters:.2f}{' too many' if heavy else ''}"]
            rows.append([model, board, f"{mega:.3f}", told, verdict, milliseconds, *sizes])
            facts: dict[str, Any] = cycles_object(profile)
            found.append({**facts, "weights": weights, "bar": bar})
            if arguments.layers:
                print(cycles_text(profile))
    print(render(["model", "board", "Mcycles", "at most", "", "ms", "weight bytes", "of parameters"], rows, 2))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
