"""Changes one number of an evidence pack at a time, and sees whether its own script refuses the pack:

    python benchmarks/tampering.py PACK --trials 640

One weight, multiplier, address or vector is changed in one of the places where the pack holds it; in every second trial
all hashes are made anew. Exit code 1 where a changed pack passed.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import runpy
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

KINDS = ("weight", "multiplier", "address", "vector")
Chance = np.random.Generator


class Placed(bytes):
    """Bytes that know where in the file they begin."""

    begin = 0

    def __getitem__(self, key: Any) -> Any:
        part = super().__getitem__(key)
        if isinstance(key, slice):
            part = Placed(part)
            part.begin = self.begin + (key.start or 0)
        return part


class Forger:
    """A copy of a pack that is changed, tried and put back."""

    def __init__(self, pack: Path, folder: Path) -> None:
        self.folder = folder / "pack"
        shutil.copytree(pack, self.folder)
        self.right = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        self._symbols_of = runpy.run_path(str(self.folder / "verify.py"), run_name="verify")["symbols_of"]

    def begin_of(self, raw: bytes, symbol: str) -> int:
        """Where a constant lies in the program: the same bytes may stand in other places, too."""
        return int(self._symbols_of(Placed(raw))[symbol][2].begin)

    def json(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())

    def write_json(self, name: str, value: Any) -> None:
        (self.folder / name).write_text(json.dumps(value))

    def arrays(self) -> dict[str, Any]:
        with np.load(self.folder / "data.npz") as data:
            return {name: data[name] for name in data.files}

    def write_arrays(self, arrays: dict[str, Any]) -> None:
        out = io.BytesIO()
        np.savez(out, **arrays)
        (self.folder / "data.npz").write_bytes(out.getvalue())

    def hash_again(self) -> None:
        index = self.json("evidence.json")
        for name in index["files"]:
            index["files"][name] = hashlib.sha256((self.folder / name).read_bytes()).hexdigest()
        for row in index["replicas"]:
            row["inputs_sha256"] = row["outputs_sha256"] = hashlib.sha256(b"made anew").hexdigest()
        self.write_json("evidence.json", index)

    def restore(self) -> None:
        for path, content in self.right.items():
            if path.read_bytes() != content:
                path.write_bytes(content)

    def verdict(self) -> tuple[int, str]:
        """What the pack's own script says, and its exit code; it runs here, since to start Python takes longer."""
        words, sys.argv = sys.argv, [str(self.folder / "verify.py")]
        said = io.StringIO()
        try:
            with redirect_stdout(said), warnings.catch_warnings(action="ignore"):
                runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as left:
            return (1, left.code) if isinstance(left.code, str) else (int(left.code or 0), said.getvalue())
        finally:
            sys.argv = words
        return 0, said.getvalue().strip()


def other(values: Any, chance: Chance) -> Any:
    """The same array with one number changed."""
    changed = values.copy().reshape(-1)
    at = int(chance.integers(changed.size))
    if changed.dtype.kind == "f":
        changed[at] = np.nextafter(changed[at], np.inf, dtype=changed.dtype)
    else:
        step = int(chance.choice([1, -1, 1 << int(chance.integers(8 * changed.itemsize - 1))]))
        changed[at] = np.asarray(int(changed[at]) + step).astype(changed.dtype)
        if changed[at] == values.reshape(-1)[at]:
            changed[at] ^= 1
    return changed.reshape(values.shape)


def in_array(forger: Forger, key: str, chance: Chance) -> str:
    arrays = forger.arrays()
    arrays[key] = other(arrays[key], chance)
    forger.write_arrays(arrays)
    return f"array {key}"


def in_program(forger: Forger, key: str, symbol: str, chance: Chance, also: bool) -> str:
    """A byte of a constant in the program; with `also`, the pack's copy of the constant too."""
    arrays, path = forger.arrays(), forger.folder / forger.json("evidence.json")["program"]
    raw, held = path.read_bytes(), arrays[key].tobytes()
    at = forger.begin_of(raw, symbol)
    assert raw[at : at + len(held)] == held, f"{symbol} lies elsewhere"
    place = int(chance.integers(len(held)))
    byte = bytes([held[place] ^ (1 << int(chance.integers(8)))])
    path.write_bytes(raw[: at + place] + byte + raw[at + place + 1 :])
    if also:
        changed = held[:place] + byte + held[place + 1 :]
        arrays[key] = np.frombuffer(changed, arrays[key].dtype).reshape(arrays[key].shape)
        forger.write_arrays(arrays)
    return f"{symbol} in the program{' and its copy' if also else ''}"


def weight(forger: Forger, chance: Chance) -> str:
    graph, proofs = forger.json("graph.json"), forger.json("proofs.json")
    ops = {op["name"]: op for op in graph["ops"]}
    chosen = str(chance.choice(sorted(proof["op"] for proof in proofs["layers"])))
    key = graph["constants"][ops[chosen]["constants"]["kernel"]]["data"]
    way = int(chance.integers(3))
    if way == 0:
        return in_array(forger, key, chance)
    if way == 1:
        symbol = str(chance.choice(sorted(proofs["packed"])))
        return in_program(forger, proofs["packed"][symbol], symbol, chance, also=False)
    return model_weight(forger, chance)


def model_weight(forger: Forger, chance: Chance) -> str:
    """In the model file, where a constant of the program comes from."""
    row = chance.choice(forger.json("proofs.json")["origins"])
    path = forger.folder / forger.json("evidence.json")["model"]
    raw, size = bytearray(path.read_bytes()), int(np.dtype(row["dtype"]).itemsize)
    at = row["offset"] + size * int(chance.integers(int(np.prod(row["shape"]))))
    raw[at + size - 1] ^= 0x41
    path.write_bytes(bytes(raw))
    return f"{row['constant']} in the model file"


def multiplier(forger: Forger, chance: Chance) -> str:
    graph, proofs = forger.json("graph.json"), forger.json("proofs.json")
    way = int(chance.integers(4))
    proof = chance.choice(proofs["layers"])
    if way == 0:
        return in_array(forger, proof["columns"]["multiplier"], chance)
    if way == 1:
        roles = [role for role in proof["columns"] if role in ("offset", "addend", "shift")]
        return in_array(forger, proof["columns"][str(chance.choice(roles or ["multiplier"]))], chance)
    if way == 2:
        placed = sorted({part["data"] for place in proofs["places"] for part in place["parts"] if part["bits"] >= 32})
        names = {key: symbol for symbol, key in proofs["packed"].items()}
        key = str(chance.choice(placed))
        return in_program(forger, key, names[key], chance, also=all_placed(forger, proofs, key))
    name = str(chance.choice(sorted(name for name, tensor in graph["tensors"].items() if tensor["scale"])))
    scale = np.float32(graph["tensors"][name]["scale"])
    graph["tensors"][name]["scale"] = float(np.nextafter(scale, np.float32(np.inf)))
    if is_view(graph, name):
        graph["tensors"][name]["scale"] = float(scale) * 1.0000000001
    forger.write_json("graph.json", graph)
    return f"scale of {name}"


def is_view(graph: Any, name: str) -> bool:
    """Whether no layer of weights has this scale: of others it is only seen that 32 bits hold them."""
    known = ("conv2d", "depthwise_conv2d", "dense")
    return not any(op["kind"] in known and name in op["inputs"] + op["outputs"] for op in graph["ops"])


def all_placed(forger: Forger, proofs: Any, key: str) -> bool:
    """Whether every byte of a constant has its place, so that a change of program and copy alike is one of a weight or
    of a number of a proof."""
    arrays = forger.arrays()
    bits = sum(
        p["bits"] * len(arrays[p["units"]]) for place in proofs["places"] for p in place["parts"] if p["data"] == key
    )
    return bits == 8 * arrays[key].nbytes


def address(forger: Forger, chance: Chance) -> str:
    trace = forger.json("trace.json")
    name = str(chance.choice(sorted(trace["symbols"])))
    what = str(chance.choice(["address", "size"]))
    trace["symbols"][name][what] += int(chance.choice([1, -1, 4, -4, 256]))
    forger.write_json("trace.json", trace)
    return f"{what} of {name}"


def vector(forger: Forger, chance: Chance) -> str:
    index = forger.json("evidence.json")
    ends = {name for row in index["replicas"] for name in row["values"]}
    sets = [
        {name: key for name, key in index["values"].items() if name in ends},
        *(row["values"] for row in index["replicas"]),
    ]
    chosen = sets[int(chance.integers(len(sets)))]
    return in_array(forger, chosen[str(chance.choice(sorted(chosen)))], chance)


FORGERIES: dict[str, Callable[[Forger, Chance], str]] = {
    "weight": weight,
    "multiplier": multiplier,
    "address": address,
    "vector": vector,
}


def trials(pack: Path, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """How often each kind was refused, and what passed."""
    refused: Counter[str] = Counter()
    passed = []
    with tempfile.TemporaryDirectory() as folder:
        forger = Forger(pack, Path(folder))
        code, said = forger.verdict()
        assert code == 0, f"the pack itself is refused: {said}"
        for number in range(count):
            chance = np.random.default_rng([seed, number])
            kind, anew = KINDS[number // 2 % len(KINDS)], number % 2 == 1
            what = FORGERIES[kind](forger, chance)
            if anew:
                forger.hash_again()
            code, said = forger.verdict()
            refused[f"{kind}, {'hashes made anew' if anew else 'hashes as they were'}"] += code == 1
            if code != 1 or not said.startswith("REFUSED"):
                passed.append(f"trial {number}: {kind}, {what}: {said}")
            forger.restore()
    return refused, passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("packs", type=Path, nargs="+", metavar="PACK")
    parser.add_argument("--trials", type=int, default=640)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    wrong = 0
    for pack in arguments.packs:
        refused, passed = trials(pack, arguments.trials, arguments.seed)
        print(f"{pack.name}: {sum(refused.values())} of {arguments.trials} changed packs refused")
        for kind, count in sorted(refused.items()):
            print(f"  {kind}: {count}")
        for each in passed:
            print(f"  PASSED {each}")
        wrong += len(passed)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
