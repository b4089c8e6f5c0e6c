"""What code is estimated to take against what it takes: the benchmark models' kernels, compiled for PCs and boards.

    python benchmarks/code_size.py [--fit] [NAME ...]

Prints a table and fails where an estimate lies further than 15 % from the object's .text. A NAME measures that model
alone. `--fit` also prints what nnbuild/isa/encoding.py should hold for each family: the bytes of every kind that come
closest to all functions and objects. It fits kernels that are not chosen, too, so it takes an hour.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.models import path_of
from nnbuild.backends.firmware.layout import DoesNotFit
from nnbuild.backends.recipe import toolchain_for
from nnbuild.base.c_metrics import KINDS
from nnbuild.base.writer import Writer
from nnbuild.board.tables import find
from nnbuild.emit.emit import emit
from nnbuild.isa.encoding import Encoding
from nnbuild.jobs.options import Options, target_of
from nnbuild.jobs.pipeline import compile_model
from nnbuild.model.graph import Graph
from nnbuild.plan.code_size import contents, total
from nnbuild.plan.plan import Plan, make_plan
from nnbuild.plan.printed import plain_names
from nnbuild.plan.target import Target
from nnbuild.report.table import render

TOLERANCE = 0.15
MODELS = ("resnet8", "kws", "mnist", "vww", "autoencoder")
LARGE = ("vww", "autoencoder")
"""Too large for a small flash, but in int8."""
WISHES: Mapping[str, Mapping[str, str | bool]] = {
    "speed": {},
    "size": {"optimize": "size"},
    "ram": {"optimize": "ram"},
    "compact": {"optimize": "size", "compact": True},
}
"""What a program is made for."""
ALTERNATIVES = 5
"""So many kernels beyond the chosen one are fitted."""

TYPICAL = {
    "function": 14,
    "parameter": 2,
    "loop": 10,
    "branch": 6,
    "select": 8,
    "compare": 2,
    "assign": 1.5,
    "memory": 4,
    "address": 4,
    "operation": 3,
    "narrow": 2,
    "literal": 4,
    "wide_memory": 6,
    "wide": 8,
    "wide_shift": 20,
    "float_memory": 5,
    "float": 4,
    "float_literal": 6,
    "vector": 4.5,
    "native": 4,
    "assembly": 4,
    "call": 7,
    "argument": 3,
    "pushed": 6,
    "regular": 5,
    "regular_wide": 5,
    "regular_float": 5,
}
"""Bytes of each kind where nothing is known; what is fitted stays within a factor of six."""
PULL = 0.02
"""How strongly the typical bytes hold those of a kind that is rare."""
ROUNDS = 50
SMALLEST = 60
"""Functions of fewer bytes need not be estimated so well."""


@dataclass(frozen=True)
class Row:
    model: str
    board: str
    isa: str | None
    quantize: str
    bits: str | None = None
    """Of weights, if they are narrowed."""

    def __str__(self) -> str:
        narrowed = f"{self.bits} bits" if self.bits else ""
        return " ".join(word for word in (self.model, self.quantize, narrowed, self.board, self.isa) if word)


@dataclass(frozen=True)
class Function:
    """What a step's function or a shared routine consists of, and its bytes; None where others have swallowed it."""

    kinds: Mapping[str, int]
    size: int | None


@dataclass(frozen=True)
class Object:
    """A build: where the estimate and the object lie, and what the program consists of."""

    name: str
    encoding: Encoding
    estimate: int
    text: int
    functions: tuple[Function, ...]

    @property
    def chosen(self) -> bool:
        """Whether nnbuild would build it."""
        return self.name.split()[-1] in WISHES

    @property
    def off(self) -> float:
        return self.estimate / self.text - 1


def rows() -> Iterator[Row]:
    for model in MODELS:
        for quantize in ("int8", "float", "int16"):
            yield Row(model, "mps2-an386", None, quantize)
            yield Row(model, "linux", "avx2_fma", quantize)
            yield Row(model, "linux", "sse2", quantize)
        yield Row(model, "microbit", None, "int8")
        yield Row(model, "rv32", None, "int8")
        yield Row(model, "rv32-zve32x", None, "int8")
        for quantize in ("int8",) if model in LARGE else ("int8", "float", "int16"):
            yield Row(model, "mps3-an547", None, quantize)
    for board in ("mps2-an386", "microbit"):
        yield Row("mnist", board, None, "int8", "4")
        yield Row("mnist", board, None, "int8", "2")


def objects(row: Row, alternatives: int = 0) -> Iterator[Object]:
    """For each of WISHES; then with every step's first, second … kernel that was not chosen. Nothing where the
    board's memory is too small."""
    path = path_of(row.model)
    if path is None:
        return
    options = Options(path, row.board, row.quantize, isa=row.isa, name="model", weights_bits=row.bits)
    try:
        compiled = compile_model(options)
    except DoesNotFit:
        return
    target = replace(target_of(options, compiled.board), isa=compiled.plan.isa)
    for name, wishes in WISHES.items():
        yield built(f"{row} {name}", make_plan(compiled.graph, "model", replace(target, **wishes)), row)
    for name in ("speed", "compact"):
        for number in range(1, alternatives + 1):
            plan = other(compiled.graph, replace(target, **WISHES[name]), number)
            yield built(f"{row} {name} {number}", plan, row)


def other(graph: Graph, target: Target, number: int) -> Plan:
    """The plan with the kernels that are so many places behind the best."""
    kernels = {}
    for step in make_plan(graph, "model", target).steps:
        able = [alternative.kernel for alternative in step.alternatives if alternative.price is not None]
        kernels[step.op.name] = able[min(number, len(able) - 1)]
    return make_plan(graph, "model", replace(target, forced_kernels=kernels))


def built(name: str, plan: Plan, row: Row) -> Object:
    with tempfile.TemporaryDirectory(prefix="nnbuild-") as folder:
        emit(plan).write(Path(folder))
        text, sizes = sizes_of(row.board, Path(folder), "model_kernels.c")
    estimate = total(step.choice.price.code for step in plan.steps)
    return Object(name, plan.encoding, estimate, text, tuple(functions_of(plan, sizes)))


def functions_of(plan: Plan, sizes: Mapping[str, int]) -> Iterator[Function]:
    """All functions of a plan, every shared routine once; `sizes` of those that the object has, by name."""
    shared = {}
    for step in plan.steps:
        w = Writer("p")
        step.choice.kernel.emit(w, step.site, plain_names(step.site, step.demand))
        there = contents(w, plan.encoding)
        yield Function(there.own, sizes.get(step.function))
        shared.update(there.shared)
    yield from (Function(kinds, sizes.get(f"{plan.prefix}_{name}")) for name, kinds in shared.items())


def sizes_of(board: str, folder: Path, source: str) -> tuple[int, Mapping[str, int]]:
    """Bytes of an object's code and of each function in it, as the board's first compiler makes it."""
    described = find(board)
    toolchain = toolchain_for(described)
    command = [*toolchain.command, *described.flags, *toolchain.flags, f"-I{folder}", "-c", str(folder / source)]
    subprocess.run([*command, "-w", "-o", str(folder / "kernels.o")], check=True)
    with (folder / "kernels.o").open("rb") as file:
        sections = list(ELFFile(file).iter_sections())
        text = sum(part["sh_size"] for part in sections if part.name.startswith(".text"))
        symbols = [one for part in sections if isinstance(part, SymbolTableSection) for one in part.iter_symbols()]
    return text, {one.name.partition(".")[0]: one["st_size"] for one in symbols if one["st_info"]["type"] == "STT_FUNC"}


def fitted(objects: Iterable[Object]) -> dict[str, float]:
    """Bytes of each kind that bring the estimates of functions and objects closest to them.

    Objects that nnbuild would build and that are off by more than two thirds of the tolerance weigh more with each
    round; the best round is taken.
    """
    found = sorted(objects, key=lambda one: not one.chosen)
    functions = {frozenset(one.kinds.items()): one for each in reversed(found) for one in each.functions if one.size}
    whole = [sum((Counter(one.kinds) for one in each.functions), Counter[str]()) for each in found]
    kinds = [*whole, *(one.kinds for one in functions.values())]
    counts = np.array([[one.get(kind, 0) for kind in KINDS] for one in kinds], float)
    sizes = np.array([one.text for one in found] + [one.size for one in functions.values()], float)
    weights = np.array([4.0 if one.chosen else 1.0 for one in found] + [0.5] * len(functions))
    chosen = np.arange(len(sizes)) < sum(one.chosen for one in found)
    typical = np.array([TYPICAL[kind] for kind in KINDS])
    at, best, least = typical.copy(), typical, np.inf
    for _ in range(ROUNDS):
        scale = np.sqrt(weights) / np.maximum(sizes, SMALLEST)
        matrix = counts * scale[:, None]
        pull = (PULL / typical) ** 2 * (matrix**2).sum() / len(KINDS)
        square, right = matrix.T @ matrix + np.diag(pull), matrix.T @ (sizes * scale) + pull * typical
        for _ in range(600):  # each kind in turn, the others fixed
            for kind in range(len(at)):
                at[kind] += (right[kind] - square[kind] @ at) / square[kind, kind]
                at[kind] = min(max(at[kind], typical[kind] / 6), typical[kind] * 6)
        off = np.abs(counts @ at / sizes - 1)[chosen]
        weights[: len(off)] *= np.where(off > TOLERANCE * 2 / 3, 1.15, 1)
        if off.max() < least:
            best, least = at.copy(), off.max()
    return {kind: round(float(value), 1) for kind, value in zip(KINDS, best, strict=True)}


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
        print(name, fitted(family))
    wrong = [one for one in found if abs(one.off) > TOLERANCE and one.chosen]
    print(f"{len(wrong)} of {len(found)} estimates are off by more than {TOLERANCE:.0%}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
