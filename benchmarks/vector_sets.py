"""Instructions of one inference on every set of 64-bit Arm and RISC-V, counted by QEMU's user mode.

    python benchmarks/vector_sets.py MODEL…            # .h5, .keras, .tflite or .onnx files
    python benchmarks/vector_sets.py MODEL --compiler gcc

The counts are exact and the same in every run. Sets that a compiler does not know are left out by name.
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

BOARDS = {"linux-arm64": "", "linux-rv64v": "vlen=256"}
"""Boards, and what their processor must be told so that it has every set."""


def table_of(board: str, compiler: str, folder: Path) -> Path | None:
    """The board's table with this compiler only, and a processor that has everything."""
    found = find(board)
    tools = [tool for tool in found.table["toolchains"] if tool["name"] == compiler]
    if not tools:
        return None
    emulator = [word.replace("vlen=128", BOARDS[board]) for word in found.table["emulator"]["command"]]
    lines = [f'extends = "{board}"', f'summary = "{found.summary}"', 'tested_on = "emulator"', "[[toolchains]]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in tools[0].items()]
    lines += ["[emulator]", f"command = {json.dumps(emulator)}"]
    file = folder / f"{board}-{compiler}.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


def instructions(model: str, table: Path, isa: str) -> int:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = nnbuild(["profile", model, "--board", str(table), "--isa", isa, "--json"])
    if code != 0:
        raise SystemExit(code)
    return int(json.loads(said.getvalue())["total"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Instructions of one inference on every set.")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--compiler", default="clang", choices=("clang", "gcc"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for board in BOARDS:
            table = table_of(board, given.compiler, Path(folder))
            if table is None:
                print(f"{board}: left out, {given.compiler} does not compile for it")
                continue
            sets = [isa.name for isa in isas().values() if fits(isa, find(board).architecture)]
            for model in given.models:
                for isa in sets:
                    print(f"{Path(model).name:32} {isa:14} {instructions(model, table, isa):>14,}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
