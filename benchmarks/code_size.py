"""What code is estimated to take against what it takes: the benchmark models' kernels, compiled for PCs and boards.

    python benchmarks/code_size.py [--fit] [NAME ...]

Prints a table and fails where an estimate lies further than 15 % from the object's .text. A NAME measures that model
alone. `--fit` also prints what nnbuild/isa/encoding.py should hold for each family: the bytes of every kind that come
closest to the functions of all objects. It fits kernels that are not chosen, too, so it takes some minutes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.models import path_of
from nnbuild.backends.firmware.layout import DoesNotFit
from nnbuild.backends.recipe import toolchain_for
from nnbuild.base.c_metrics import KINDS
from nnbuild.base.writer import Writer
from nnbuild.board.tables import find
from nnbuild.emit.emit import emit
from nnbuild.isa.encoding import Encoding, encoding_of
from nnbuild.jobs.pipeline import Options, compile_model, target_of
from nnbuild.model.graph import Graph
from nnbuild.plan.code_size import contents, total
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.select import plain_names
from nnbuild.plan.target import Target
from nnbuild.report.table import render

TOLERANCE = 0.15
MODELS = ("resnet8", "kws", "mnist", "vww", "autoencoder")
LARGE = ("vww", "autoencoder")
"""Too large for a small flash, but in int8."""
OPTIMIZE = ("speed", "size", "ram")
ALTERNATIVES = 4
"""So many kernels beyond the chosen one are fitted."""


@dataclass(frozen=True)
class Row:
    model: str
    board: str
    isa: str | None
    quantize: str

    def __str__(self) -> str:
        return f"{self.model} {self.quantize} {self.board} {self.isa or ''}".strip()


@dataclass(frozen=True)
class Object:
    """A build: where the estimate and the object lie, and what the program consists of."""

    name: str
    encoding: Encoding
    estimate: int
    text: int
    kinds: Mapping[str, int]

    @property
    def off(self) -> float:
        return self.estimate / self.text - 1


def rows() -> Iterator[Row]:
    for model in MODELS:
        for quantize in ("int8", "float", "int16"):
            yield Row(model, "mps2-an386", None, quantize)
            yield Row(model, "linux", "avx2_fma", quantize)
        yield Row(model, "microbit", None, "int8")
        yield Row(model, "rv32", None, "int8")
        yield Row(model, "rv32-zve32x", None, "int8")
        for quantize in ("int8",) if model in LARGE else ("int8", "float", "int16"):
            yield Row(model, "mps3-an547", None, quantize)


def objects(row: Row, alternatives: int = 0) -> Iterator[Object]:
    """For each thing to optimize; then with every step's first, second … kernel that was not chosen. Nothing where the
    board's memory is too small."""
    path = path_of(row.model)
    if path is None:
        return
    options = Options(path, row.board, row.quantize, isa=row.isa, name="model")
    try:
        compiled = compile_model(options)
    except DoesNotFit:
        return
    target = replace(target_of(options, compiled.board), isa=compiled.plan.isa)
    for optimize in OPTIMIZE:
        plan = make_plan(compiled.graph, "model", replace(target, optimize=optimize))
        yield built(f"{row} {optimize}", plan, encoding_of(target.architecture, plan.isa), row.board)
    for number in range(1, alternatives + 1):
        plan = other(compiled.graph, target, number)
        yield built(f"{row} {number}", plan, encoding_of(target.architecture, plan.isa), row.board)


def other(graph: Graph, target: Target, number: int) -> Plan:
    """The plan with the kernels that are so many places behind the best."""
    kernels = {}
    for step in make_plan(graph, "model", target).steps:
        able = [alternative.kernel for alternative in step.alternatives if alternative.price is not None]
        kernels[step.op.name] = able[min(number, len(able) - 1)]
    return make_plan(graph, "model", replace(target, forced_kernels=kernels))


def built(name: str, plan: Plan, encoding: Encoding, board: str) -> Object:
    with tempfile.TemporaryDirectory(prefix="nnbuild-") as folder:
        emit(plan).write(Path(folder))
        text = text_bytes(board, Path(folder), "model_kernels.c")
    estimate = total(step.choice.price.code for step in plan.steps)
    return Object(name, encoding, estimate, text, consists_of(plan))


def consists_of(plan: Plan) -> Mapping[str, int]:
    """What all functions of a plan consist of, every shared routine once."""
    own, shared = Counter[str](), dict[str, Counter[str]]()
    for step in plan.steps:
        w = Writer("p")
        step.choice.kernel.emit(w, step.site, plain_names(step.site, step.demand))
        there = contents(w)
        own += there.own
        shared.update(there.shared)
    return sum(shared.values(), own)


def text_bytes(board: str, folder: Path, source: str) -> int:
    """Of an object as the board's first compiler makes it."""
    described = find(board)
    toolchain = toolchain_for(described)
    command = [*toolchain.command, *described.flags, *toolchain.flags, f"-I{folder}", "-c", str(folder / source)]
    subprocess.run([*command, "-w", "-o", str(folder / "kernels.o")], check=True)
    from elftools.elf.elffile import ELFFile

    with (folder / "kernels.o").open("rb") as file:
        sections = ELFFile(file).iter_sections()
        return sum(part["sh_size"] for part in sections if part.name.startswith(".text"))


def fitted(found: list[Object], start: Mapping[str, float]) -> dict[str, float]:
    """Bytes of each kind that make the estimates of whole objects the closest, starting from what is known."""
    counts = np.array([[one.kinds.get(kind, 0) for kind in KINDS] for one in found], float)
    sizes = np.array([one.text for one in found], float)
    before = np.array([start[kind] for kind in KINDS])
    weighted, wanted = counts / sizes[:, None], np.ones(len(found))
    pull = 0.02 * np.sqrt((weighted**2).sum() / len(KINDS)) / before
    matrix, right = np.vstack([weighted, np.diag(pull)]), np.concatenate([wanted, pull * before])
    low, high, at = 0.3 * before, 4 * before, before.copy()
    for _ in range(20_000):  # each kind in turn, the others fixed
        for kind in range(len(at)):
            column = matrix[:, kind]
            at[kind] += column @ (right - matrix @ at) / (column @ column)
            at[kind] = min(max(at[kind], low[kind]), high[kind])
    return {kind: round(float(value), 1) for kind, value in zip(KINDS, at, strict=True)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--fit", action="store_true", help="print the bytes that fit best")
    arguments = parser.parse_args()
    found: list[Object] = []
    for row in rows():
        if not arguments.names or row.model in arguments.names:
            found += objects(row, ALTERNATIVES if arguments.fit else 0)
    lines = [[one.name, f"{one.estimate:,}", f"{one.text:,}", f"{one.off:+.0%}"] for one in found]
    print(render(["build", "estimate", ".text", "off"], lines, 1))
    for name in dict.fromkeys(one.encoding.name for one in found) if arguments.fit else ():
        family = [one for one in found if one.encoding.name == name]
        print(name, fitted(family, family[0].encoding.bytes))
    wrong = [one for one in found if abs(one.off) > TOLERANCE and one.name.split()[-1] in OPTIMIZE]
    print(f"{len(wrong)} of {len(found)} estimates are off by more than {TOLERANCE:.0%}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
