"""Instructions of one inference on every set that runs in an emulator here, and how far ahead of portable C each is.

    python benchmarks/vector_sets.py MODEL…            # .h5, .keras, .tflite or .onnx files
    python benchmarks/vector_sets.py MODEL.h5 --quantize int16 --sets neon,mve
    python benchmarks/vector_sets.py MODEL --compiler gcc --boards linux-arm64

The counts are exact and the same in every run. A compiler that a board does not have is left out by name.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path

from nnbuild.board.tables import find
from nnbuild.cli import main as nnbuild
from nnbuild.isa.registry import fits, isas

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


def main() -> None:
    parser = argparse.ArgumentParser(description="Instructions of one inference on every set.")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--compiler", choices=("clang", "gcc", "zig"), help="instead of each board's first one")
    parser.add_argument("--quantize", choices=("int8", "int16"))
    parser.add_argument("--boards", default=",".join(BOARDS))
    parser.add_argument("--sets", help="these alone, beside portable C")
    given = parser.parse_args()
    wanted = given.sets.split(",") if given.sets else None
    with tempfile.TemporaryDirectory() as folder:
        for board in given.boards.split(","):
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


if __name__ == "__main__":
    sys.exit(main())
