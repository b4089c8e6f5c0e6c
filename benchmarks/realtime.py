"""Samples by an interrupt at 16 kHz of emulated time: whether the keyword example keeps up on an emulated STM32F405.

    python benchmarks/realtime.py [SECONDS]

The emulator executes 125 million instructions in each second of its time (-icount shift=3). No sample may be lost, and
at most 40 % of the time be spent on front end, network and events.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from nnbuild.base.literals import array_lines
from nnbuild.cli import main as nnbuild
from nnbuild.features.config import recipe_of
from nnbuild.features.wav import read_wav

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "keyword"
MOST_LOAD = 40.0
EMULATOR = (
    "qemu-system-arm -machine netduinoplus2 -display none -monitor none -icount shift=3,sleep=off -serial stdio -kernel"
)
END_OF_TEXT = 4


def program(folder: Path, seconds: float) -> Path:
    framing = recipe_of(EXAMPLE / "sound.toml").front_end.framing
    samples = np.asarray(read_wav(EXAMPLE / "evening.wav", framing))[: int(seconds * framing.rate)]
    lines = "\n".join(array_lines(samples.astype(np.int16)))
    text = f"#define AWAKE\n#define SOUND_SIZE {len(samples)}\n#include <stdint.h>\n"
    (folder / "sound.h").write_text(f"{text}static const int16_t sound[SOUND_SIZE] = {{\n{lines}\n}};\n")
    (folder / "main.c").write_text((EXAMPLE / "main.c").read_text())
    words = ["build", EXAMPLE / "words.h5", "--quantize", "int8", "--calibrate", EXAMPLE / "recordings"]
    words += ["--labels", EXAMPLE / "labels.txt", "--features", EXAMPLE / "sound.toml", "--board", "stm32"]
    if nnbuild([str(word) for word in (*words, "-o", folder / "out", "--application", folder / "main.c")]) != 0:
        raise SystemExit(1)
    return folder / "out" / "application.elf"


def said(image: Path) -> str:
    running = subprocess.Popen([*EMULATOR.split(), str(image)], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert running.stdout is not None
    found = bytearray()
    try:
        while byte := running.stdout.read(1):
            if byte[0] == END_OF_TEXT:
                break
            found += byte
    finally:
        running.kill()
        running.wait()
    return found.decode("ascii", "replace").replace("\r", "")


def main(seconds: float) -> int:
    with tempfile.TemporaryDirectory() as name:
        text = said(program(Path(name), seconds))
    print(text, end="")
    found = re.search(r"lost (\d+) of (\d+) samples, load ([\d.]+) %", text)
    passed = found is not None and found[1] == "0" and float(found[3]) <= MOST_LOAD
    print("PASS" if passed else "FAIL")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 8.0))
