"""Holds proved bounds against runs: random, extreme and searched inputs in the emulator, over named and random models.

    python benchmarks/bound.py [--runs N] [--minutes M] [NAME ...]

Every program gets N runs (default 100) more than its ledger, benchmarks/bound.json, counts, long ones fewer but a
hundred; after M minutes no further program is begun. A program that changed begins anew. Prints the ledger, and which
bounds are farther from the longest run than is wished for; fails where a run was above its bound. A NAME selects the
programs whose names contain it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.models import path_of
from benchmarks.replay import INPUT, STATE, Replay
from nnbuild.backends.run_bound import run_bound
from nnbuild.base.errors import NnbuildError
from nnbuild.base.files import write_whole
from nnbuild.board.tables import find
from nnbuild.bound import Unbounded
from nnbuild.bound.image import read_image
from nnbuild.jobs.job import Place, build_program
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import compile_model
from nnbuild.report.table import render
from tests.frontend.keras_files import Json, dense, h5_bytes, input_layer, layer, sequential

LEDGER = Path(__file__).with_name("bound.json")
M4, M0 = "mps2-an386", "microbit"
RANDOM = 50
LONG, FEWEST = 200_000, 100
"""Programs of more instructions get fewer runs, for the same time, but so many."""
CLOSE, RANDOM_CLOSE = 1.01, 1.05
"""How far above the longest run a bound may be: of named integer models, and of random ones and floats on the M4F."""


@dataclass(frozen=True)
class Program:
    model: str
    quantize: str
    board: str

    @property
    def key(self) -> str:
        return f"{self.model} {self.quantize} {self.board}"

    @property
    def wished(self) -> float | None:
        """None where a bound only has to hold."""
        if self.model.startswith("random"):
            return RANDOM_CLOSE if self.board == M4 or self.quantize != "float" else None
        return CLOSE if self.quantize != "float" else RANDOM_CLOSE if self.board == M4 else None


def programs() -> Iterator[Program]:
    for model in ("mnist", "lstm", "kws", "resnet8"):
        for quantize in ("int8", "float"):
            yield Program(model, quantize, M4)
    yield from (Program(model, "int8", M0) for model in ("mnist", "lstm", "kws"))
    yield Program("lstm", "float", M0)
    for number in range(RANDOM):
        quantize = ("int8", "float", "int16")[number % 3]
        yield Program(f"random{number}", quantize, M0 if number % 4 == 3 and quantize != "float" else M4)


def model_file(name: str, folder: Path) -> Path | None:
    if name == "lstm":
        made = _lstm()
    elif name.startswith("random"):
        made = _random(int(name.removeprefix("random")))
    else:
        return path_of(name)
    path = folder / f"{name}.h5"
    path.write_bytes(h5_bytes(*made))
    return path


Made = tuple[Json, dict[str, list[np.ndarray]]]


def _lstm() -> Made:
    options = {"units": 16, "return_sequences": False, "use_bias": True}
    unit = layer("LSTM", "lstm", activation="tanh", recurrent_activation="sigmoid", **options)
    numbers = np.random.default_rng(3)
    arrays = [numbers.normal(0, 0.4, shape).astype(np.float32) for shape in ((8, 64), (16, 64), (64,))]
    head = [numbers.normal(0, 0.4, shape).astype(np.float32) for shape in ((16, 5), (5,))]
    last = dense("head", 5, activation="softmax")
    return sequential(input_layer("x", [10, 8]), unit, last), {"lstm": arrays, "head": head}


ACTIVATIONS = ("relu", "linear", "tanh", "sigmoid", "relu6", "elu", "swish")


def _random(seed: int) -> Made:
    """A few layers of convolutions and pools, then dense ones; a softmax at the end of two in three."""
    chance, numbers = random.Random(seed), np.random.default_rng(seed)
    side, channels = chance.randrange(5, 11), chance.randrange(1, 5)
    layers, weights = [input_layer("x", [side, side, channels])], {}

    def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
        return [numbers.normal(0, 0.5, shape).astype(np.float32) for shape in shapes]

    for number in range(chance.randrange(1, 4)):
        kind, name = chance.choice(("Conv2D", "DepthwiseConv2D", "MaxPooling2D", "AveragePooling2D")), f"a{number}"
        options: dict[str, Any] = {"padding": "same", "data_format": "channels_last"}
        if "Pooling" in kind:
            layers.append(layer(kind, name, pool_size=[2, 2], strides=[2, 2], **options))
            continue
        size = chance.choice((1, 2, 3))
        options |= {"kernel_size": [size, size], "strides": [1, 1], "dilation_rate": [1, 1], "use_bias": True}
        options["activation"] = chance.choice(ACTIVATIONS)
        if kind == "Conv2D":
            filters = chance.randrange(2, 9)
            weights[name] = arrays((size, size, channels, filters), (filters,))
            layers.append(layer(kind, name, filters=filters, **options))
            channels = filters
        else:
            weights[name] = arrays((size, size, channels, 1), (channels,))
            layers.append(layer(kind, name, depth_multiplier=1, **options))
    layers.append(layer("GlobalAveragePooling2D", "mean", data_format="channels_last"))
    for number in range(chance.randrange(1, 3)):
        units, name = chance.randrange(3, 20), f"d{number}"
        weights[name] = arrays((channels, units), (units,))
        layers.append(dense(name, units, activation=chance.choice(ACTIVATIONS)))
        channels = units
    if chance.random() < 2 / 3:
        layers.append(layer("Activation", "end", activation="softmax"))
    return sequential(*layers), weights


class Inputs:
    """Contents of the inputs and states: extremes first, then random ones and changes of what ran longest."""

    def __init__(self, sizes: list[int], is_float: bool, seed: int) -> None:
        self._sizes, self._float = sizes, is_float
        self._chance, self._numbers = random.Random(seed), np.random.default_rng(seed)
        self._extreme = self._extremes()
        self.best: tuple[int, list[bytes]] = (0, [])

    def _extremes(self) -> list[list[bytes]]:
        if self._float:
            values = (0.0, 1.0, -1.0, 1e30, -1e30, 1e-40, np.inf, np.nan)
            return [[np.full(size // 4, value, np.float32).tobytes() for size in self._sizes] for value in values]
        patterns = (b"\0", b"\x7f", b"\x80", b"\xff", b"\x80\x7f", b"\x7f\x80", b"\x00\x80", b"\xff\x7f")
        return [[(pattern * size)[:size] for size in self._sizes] for pattern in patterns]

    def next(self) -> list[bytes]:
        if self._extreme:
            return self._extreme.pop()
        if self.best[1] and self._chance.random() < 0.8:
            return [self._changed(content) for content in self.best[1]]
        return [self._any(size) for size in self._sizes]

    def tell(self, count: int, contents: list[bytes]) -> None:
        """What the last ones made. Ones that are as long are gone on with: from them there may be a way up."""
        if count >= self.best[0]:
            self.best = count, contents

    def _any(self, size: int) -> bytes:
        if not self._float or self._chance.random() < 0.1:
            return self._numbers.bytes(size)
        scale = 10 ** self._chance.uniform(-3, 3)
        return self._numbers.normal(0, scale, size // 4).astype(np.float32).tobytes()

    def _changed(self, content: bytes) -> bytes:
        """The same with other numbers in a few places, which may be those of another place or, floats, scaled ones."""
        if len(content) < 4:
            return self._any(len(content))
        values = np.frombuffer(content[: len(content) // 4 * 4], np.float32 if self._float else np.uint32).copy()
        start = self._chance.randrange(len(values))
        end = start + self._chance.choice((1, 1, 1, 1, 2, 4, 16))
        count, kind = len(values[start:end]), self._chance.randrange(4)
        if kind == 0:
            values[start:end] = values[self._chance.randrange(len(values))]
        elif kind == 1 and self._float:
            with np.errstate(over="ignore", under="ignore"):
                values[start:end] *= np.float32(self._chance.choice((-1, 1)) * 10 ** self._chance.uniform(-1, 1))
        else:
            values[start:end] = np.frombuffer(self._any(4 * count), values.dtype)
        return values.tobytes() + content[values.nbytes :]


def examine(program: Program, known: dict[str, Any] | None, runs: int) -> dict[str, Any] | None:
    """The ledger's entry after so many more runs; None where the model is not there."""
    with tempfile.TemporaryDirectory() as name:
        path = model_file(program.model, Path(name))
        if path is None:
            return None
        options = Options(path, program.board, program.quantize, name=f"m_{program.model}")
        try:
            elf = build_program(compile_model(options), Place(Path(name) / "out"))
        except NnbuildError as problem:
            return {"refused": str(problem).splitlines()[0]}
        digest = digest_of(elf)
        try:
            bound = run_bound(find(program.board), elf).instructions
        except Unbounded as problem:
            return {"refused": str(problem).splitlines()[1].strip()}
        if known is None or known.get("program") != digest:
            known = {"program": digest, "largest": 0, "least": 0, "runs": 0, "above": 0}
        above = known["above"] + (known["largest"] > bound)
        known = known | {"bound": bound, "above": above}
        return _run(program, elf, known, runs)


def digest_of(elf: Path) -> str:
    """Of code and constants: what debuggers are told holds the name of the folder."""
    found = hashlib.sha256()
    for region in read_image(elf).constant:
        found.update(region.start.to_bytes(4, "little") + region.data)
    return found.hexdigest()[:16]


def _run(program: Program, elf: Path, known: dict[str, Any], runs: int) -> dict[str, Any]:
    replay = Replay(elf)
    replay.call("nn_target_init")
    places = replay.regions(INPUT) + replay.regions(STATE)
    inputs = Inputs([size for _, size in places], program.quantize == "float", known["runs"])
    seen = []
    for _ in range(max(min(runs, FEWEST), min(runs, runs * LONG // known["bound"]))):
        contents = inputs.next()
        for (address, _), content in zip(places, contents, strict=True):
            replay.cpu.mem_write(address, content)
        count = replay.count("nn_target_run")
        seen.append(count)
        inputs.tell(count, contents)
    least = min([*seen, *([known["least"]] if known["least"] else [])], default=0)
    return {
        **known,
        "largest": max([known["largest"], *seen]),
        "least": least,
        "runs": known["runs"] + len(seen),
        "above": known["above"] + sum(count > known["bound"] for count in seen),
    }


def table(ledger: dict[str, Any]) -> str:
    rows = []
    for key, entry in ledger.items():
        if "refused" in entry:
            rows.append([*key.split(), entry["refused"][:60], "", "", "", "", ""])
            continue
        ratio = f"{entry['bound'] / entry['largest']:.4f}" if entry["largest"] else ""
        counts = [f"{entry[name]:,}" for name in ("bound", "largest", "least")]
        rows.append([*key.split(), *counts, ratio, f"{entry['runs']:,}", str(entry["above"])])
    heads = ["model", "format", "board", "bound", "longest run", "shortest", "bound / longest", "runs", "above"]
    return render(heads, rows, 3)


def far(ledger: dict[str, Any]) -> list[str]:
    found = []
    for program in programs():
        entry = ledger.get(program.key, {})
        if program.wished is not None and entry.get("largest"):
            ratio = entry["bound"] / entry["largest"]
            if ratio > program.wished:
                found.append(f"{program.key}: the bound is {ratio:.4f} of the longest run, over {program.wished}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--runs", type=int, default=100, metavar="N", help="more runs of each program")
    parser.add_argument("--minutes", type=float, default=1e9, metavar="M", help="begin no further program after these")
    parser.add_argument("--ledger", type=Path, default=LEDGER, metavar="FILE", help="where the counts are kept")
    arguments = parser.parse_args()
    ledger = json.loads(arguments.ledger.read_text()) if arguments.ledger.is_file() else {}
    end = time.monotonic() + 60 * arguments.minutes
    for program in programs():
        wanted = not arguments.names or any(name in program.key for name in arguments.names)
        if not wanted or time.monotonic() > end:
            continue
        entry = examine(program, ledger.get(program.key), arguments.runs)
        if entry is not None:
            ledger[program.key] = entry
            write_whole(arguments.ledger, (json.dumps(ledger, indent=1) + "\n").encode())
    print(table(ledger))
    total = sum(entry.get("runs", 0) for entry in ledger.values())
    above = sum(entry.get("above", 0) for entry in ledger.values())
    print("\n".join([f"{total:,} runs of {len(ledger)} programs, {above} above the bound", *far(ledger)]))
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
