"""Instructions of one inference on every set that runs in an emulator here, and how far ahead of portable C each is.

    python benchmarks/vector_sets.py MODEL…            # .h5, .keras, .tflite or .onnx files
    python benchmarks/vector_sets.py MODEL.h5 --quantize int16 --sets neon,mve
    python benchmarks/vector_sets.py MODEL --compiler gcc --boards linux-arm64
    python benchmarks/vector_sets.py --bars            # what is wanted of each set, and what it takes
    python benchmarks/vector_sets.py --bars --sets rv32im --model vww

The counts are exact and the same in every run. A compiler that a board does not have is left out by name.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nnbuild.board.tables import find
from nnbuild.cli import main as nnbuild
from nnbuild.isa.registry import fits, isas

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.models import SHARED, path_of

BOARDS = {
    "linux-arm64": {},
    "linux-rv64v": {"vlen=128": "vlen=256"},
    "linux-rv64": {},
    "rv32": {},
    "rv32e": {},
    "mps3-an547": {},
    "mps2-an386": {},
}
"""Boards, and what of their emulators' words is another one so that the processor has every set."""
PORTABLE = "c99"


@dataclass(frozen=True)
class Bar:
    """Millions of instructions that a set may take for a model, and how many would be good, with the board's first
    compiler."""

    isa: str
    board: str
    model: str
    most: float
    good: float
    form: str = "int8"


def _both(
    isa: str, board: str, resnet8: tuple[float, float], kws: tuple[float, float], form: str = "int8"
) -> list[Bar]:
    bounds = {"resnet8": resnet8, "kws": kws}
    return [Bar(isa, board, model, *bound, form) for model, bound in bounds.items()]


BARS = (
    *_both("mve", "mps3-an547", (2.2, 1.75), (0.85, 0.68)),
    Bar("mve", "mps3-an547", "vww", 2.5, 2.5),
    Bar("mve", "mps3-an547", "autoencoder", 0.06, 0.06),
    *_both("rv32im", "rv32", (19, 15.5), (7.2, 6.4)),
    Bar("rv32im", "rv32", "vww", 21, 21),
    *_both("rvv", "linux-rv64v", (2.2, 1.3), (0.7, 0.5)),
    Bar("rvv256", "linux-rv64v", "kws", 0.45, 0.45),
    *_both("neon", "linux-arm64", (2.4, 2.0), (1.05, 0.92)),
    *_both("neon_dotprod", "linux-arm64", (1.4, 1.22), (0.48, 0.4)),
    *_both("neon_i8mm", "linux-arm64", (1.05, 0.92), (0.43, 0.37)),
    *_both("neon", "linux-arm64", (3.9, 3.0), (1.2, 1.05), "float"),
    *_both("rvv", "linux-rv64v", (3.0, 2.5), (0.85, 0.7), "float"),
    *_both("mve", "mps3-an547", (7.0, 6.0), (2.5, 2.0), "float"),
    *_both("armv7em_dsp", "mps2-an386", (6.7, 6.2), (2.45, 2.45)),
)
TWICE, ALIKE = 2.0, 1.0
AHEAD = (
    *((isa, "linux-arm64", "int16", TWICE) for isa in ("neon", "neon_dotprod", "neon_i8mm")),
    *((isa, "linux-arm64", "float", TWICE) for isa in ("neon", "neon_dotprod", "neon_i8mm")),
    ("mve", "mps3-an547", "int16", TWICE),
    ("mve", "mps3-an547", "float", TWICE),
    ("armv7em_dsp", "mps2-an386", "int16", TWICE),
    ("armv7em_dsp", "mps2-an386", "float", ALIKE),
    *((isa, "linux-rv64v", form, TWICE) for isa in ("rvv", "rvv256") for form in ("int16", "float")),
    *(("rv32im", board, form, ALIKE) for board in ("rv32", "rv32e", "linux-rv64") for form in ("int16", "float")),
)
"""How far ahead of portable C a set is to be for ResNet8 in other numbers: twice as good where it has lanes of them."""
CONVERTED = {"resnet8": "pretrainedResnet_quant.tflite", "kws": "kws_ref_model.tflite"}
"""Files in which models are int8 already."""


def table_of(board: str, compiler: str | None, folder: Path, processor: str = "") -> Path | None:
    """The board's table with this compiler only, and a processor that has everything, or the one that is named."""
    found = find(board)
    tools = [tool for tool in found.table["toolchains"] if compiler in (None, tool["name"])]
    if not tools:
        return None
    emulator = list(found.table["emulator"]["command"])
    for word, other in BOARDS[board].items():
        emulator = [each.replace(word, other) for each in emulator]
    if processor:
        emulator[1:1] = ["-cpu", processor]
    lines = [f'extends = "{board}"', f'summary = "{found.summary}"', 'tested_on = "emulator"', "[[toolchains]]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in tools[0].items()]
    lines += ["[emulator]", f"command = {json.dumps(emulator)}"]
    file = folder / f"{board}-{tools[0]['name']}.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


def instructions(model: str, table: Path, isa: str, quantize: str | None = None) -> int:
    said = io.StringIO()
    words = ["profile", model, "--board", str(table), "--isa", isa, "--price", "instructions", "--json"]
    with contextlib.redirect_stdout(said):
        code = nnbuild([*words, *(["--quantize", quantize] if quantize else [])])
    if code != 0:
        raise SystemExit(code)
    return int(json.loads(said.getvalue())["total"])


def all_bars(sets: list[str] | None, models: list[str] | None, folder: Path) -> bool:
    """Prints what each set takes beside what is wanted; whether all of that is reached."""

    @cache
    def count(model: str, board: str, isa: str, form: str, compiler: str | None = None) -> int | None:
        file = SHARED / CONVERTED[model] if form == "int8" and model in CONVERTED else path_of(model)
        table = table_of(board, compiler, folder)
        if table is None or file is None or not file.is_file():
            return None
        return instructions(str(file), table, isa, None if form == "float" or file.suffix == ".tflite" else form)

    def tell(isa: str, board: str, model: str, form: str, figures: str) -> None:
        print(f"{isa:13} {board:12} {model:12} {form:6} {figures}", flush=True)

    reached = True
    for bar in (bar for bar in BARS if bar.isa in (sets or [bar.isa]) and bar.model in (models or [bar.model])):
        found = count(bar.model, bar.board, bar.isa, bar.form)
        by_gcc = count(bar.model, bar.board, bar.isa, bar.form, "gcc") if bar.board == "linux-arm64" else None
        how = "left out" if found is None else verdict(found / 1e6, bar)
        reached &= how not in ("missed", "left out")
        figures = f"{found or 0:>12,} of {bar.most * 1e6:>12,.0f} {how}"
        tell(bar.isa, bar.board, bar.model, bar.form, figures + (f", by gcc {by_gcc:,}" if by_gcc else ""))
    for isa, board, form, wanted in AHEAD if "resnet8" in (models or ["resnet8"]) else ():
        if isa in (sets or [isa]):
            found, portable = (count("resnet8", board, name, form) for name in (isa, PORTABLE))
            ahead = portable / found if found and portable else 0.0
            reached &= ahead >= wanted
            figures = f"{found or 0:>12,} {ahead:5.2f} times as good as portable C, of {wanted:.0f}"
            tell(isa, board, "resnet8", form, figures + (" met" if ahead >= wanted else " missed"))
    return reached


def verdict(found: float, bar: Bar) -> str:
    return "missed" if found > bar.most else "met" if found > bar.good else "aim met"


def named(parser: argparse.ArgumentParser, words: str, known: Collection[str]) -> list[str]:
    """Names with commas between them."""
    names = words.split(",")
    for name in names:
        if name not in known:
            parser.error(f"there is no {name!r}, only {', '.join(known)}")
    return names


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Instructions of one inference on every set.")
    parser.add_argument("models", nargs="*", help="files; with --bars none")
    parser.add_argument("--bars", action="store_true", help="what is wanted of each set, on models of the benchmarks")
    parser.add_argument("--model", action="append", choices=sorted({bar.model for bar in BARS}), help="of the bars")
    parser.add_argument("--compiler", choices=("clang", "gcc", "zig"), help="instead of each board's first one")
    parser.add_argument("--quantize", choices=("int8", "int16"))
    parser.add_argument("--boards", default=",".join(BOARDS))
    parser.add_argument("--sets", help="these alone, beside portable C")
    given = parser.parse_args(words)
    wanted = named(parser, given.sets, isas()) if given.sets else None
    boards = named(parser, given.boards, BOARDS)
    if given.bars == bool(given.models):
        parser.error("give models, or --bars")
    with tempfile.TemporaryDirectory() as folder:
        if given.bars:
            return int(not all_bars(wanted, given.model, Path(folder)))
        for board in boards:
            table = table_of(board, given.compiler, Path(folder))
            if table is None:
                print(f"{board}: left out, {given.compiler} does not compile for it")
                continue
            names = [isa.name for isa in isas().values() if fits(isa, find(board).architecture)]
            for model in given.models:
                portable = instructions(model, table, PORTABLE, given.quantize)
                for isa in (PORTABLE, *(name for name in names if name != PORTABLE and name in (wanted or names))):
                    count = portable if isa == PORTABLE else instructions(model, table, isa, given.quantize)
                    ahead = f"{portable / count:6.2f}"
                    print(f"{Path(model).name:32} {board:12} {isa:14} {count:>14,} {ahead}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
