"""Re-checks this evidence pack by itself: python verify.py [FOLDER]. It needs Python 3.10 and numpy, and nothing else.

It shares no line with nnbuild, and works out again: hashes; addresses and constants, from the ELF file; weights, from
the model file; how far sums reach, and that the program scales them by TensorFlow Lite's rule; what the vectors give.
"""

import hashlib
import io
import json
import math
import sys
import zipfile
from functools import partial
from pathlib import Path

import numpy as np

RANGES = {"int8": (-128, 127), "int16": (-32768, 32767), "uint8": (0, 255), "int32": (-(2**31), 2**31 - 1)}
SUMS, WHOLE, ints = ("conv2d", "depthwise_conv2d", "dense"), ({"int8"}, {"int16"}), partial(np.asarray, dtype=np.int64)


def need(holds, what):
    if not holds:
        raise SystemExit(f"REFUSED: {what}")


def wrapped(x, bits):
    return x if bits == 64 else ((x + (1 << (bits - 1))) & ((1 << bits) - 1)) - (1 << (bits - 1))


def multiplier_of(real, bits=31):
    """The nearest multiplier of so many bits, and the shift."""
    fraction, shift = math.frexp(real)
    fixed = math.floor(fraction * 2**31 + 0.5)
    fixed, shift = (0, 0) if real == 0 or shift < -31 else (fixed // 2, shift + 1) if fixed == 2**31 else (fixed, shift)
    return (fixed, shift) if bits == 31 else (min((fixed + (1 << 15)) >> 16, 32767), shift)


def twice(acc, multiplier, shift):
    """Rounded at the high multiply, and again at the shift, halves away from zero."""
    lifted, by = wrapped(ints(acc) << max(shift, 0), 32), max(-shift, 0)
    high = (lifted * multiplier + (1 << 30)) >> 31
    return (high + (1 << (by - 1)) - (high < 0)) >> by if by else high


def once(acc, real):
    """The float64 product, to nearest, halves away from zero."""
    rest, whole = np.modf(ints(acc).astype(float) * real)
    return ints(whole + np.sign(rest) * (np.abs(rest) >= 0.5))


def scaled(rule, acc, real):
    """Convolutions and sums of 8 bits round twice, dense layers once, 16 bits once with a multiplier of 16 bits."""
    if rule != "wide":
        return once(acc, real) if rule == "once" else twice(acc, *multiplier_of(real))
    multiplier, shift = multiplier_of(real, 15)
    return wrapped((ints(acc) * multiplier + (1 << (14 - shift))) >> (15 - shift), 32)


def in_program(proof, n, zero, acc):
    """What the program makes of sums before it holds them within bounds, and whether nothing leaves its word."""
    if proof["form"] == "general":  # of dense layers: integers of any size, or rounded to float64 before
        half, away = 1 << (n["shift"] - 1), n.get("away", 0)
        exact = [(a * n["multiplier"] + half - (away and a < 0)) >> n["shift"] for a in acc.tolist()]
        return (ints(exact) if "away" in n else once(acc, n["multiplier"] / 2 ** n["shift"])) + zero, True
    line, value = proof["form"] == "line", (acc - n["centre"]) << n["left"]
    added = n["addend"] if line else (value * n["lower"] >> 32) + (int(proof["rounded"]) << 31)
    upper = (value * n["multiplier"] + added) >> 32
    upper = upper + (n["away"] * (value < 0) if line else n["offset"] - n["below"] * (value < 0))
    largest, most = int(np.abs(value).max()), int(np.abs(upper).max())
    fits = largest < 2**31 and largest * n["multiplier"] + int(np.abs(added).max()) < 2**63 and (line or most < 2**31)
    return upper >> (n["shift"] - 32 * line), fits


def symbols_of(raw):
    """Name -> (address, size, bytes) in an ELF file."""
    need(raw[:4] == b"\x7fELF" and raw[5] == 1, "the program is no little-endian ELF file")
    big, word, arm = raw[4] == 2, "u8" if raw[4] == 2 else "u4", raw[18] == 40
    spans = ((40, 48), (60, 62)) if big else ((32, 36), (48, 50))
    heads, count = (int.from_bytes(raw[a:b], "little") for a, b in spans)
    names = [("name", "u4"), ("type", "u4"), ("flags", word), ("address", word), ("offset", word), ("size", word)]
    sections = np.frombuffer(raw, [*names, ("link", "u4"), ("info", "u4"), ("rest", word, 2)], count, heads)
    marks, value, found = [("info", "u1"), ("other", "u1"), ("in", "u2")], [("value", word), ("size", word)], {}
    kind = np.dtype([("name", "u4"), *(marks + value if big else value + marks)])
    for table in sections[sections["type"] == 2]:
        texts = raw[int(sections[table["link"]]["offset"]) :]
        for row in np.frombuffer(raw, kind, int(table["size"]) // kind.itemsize, int(table["offset"])):
            if 0 < row["in"] < count and row["info"] & 15 <= 2:
                inside, start, size = sections[row["in"]], int(row["name"]), int(row["size"])
                at = int(row["value"]) & (-2 if arm and row["info"] & 15 == 2 else -1)
                begin = int(inside["offset"]) + at - (0 if raw[16] == 1 else int(inside["address"]))
                found[texts[start : texts.index(b"\0", start)].decode()] = (at, size, raw[begin : begin + size])
    return found


def windows(x, size, a, fill):
    """[n, rows, columns, channels, window's rows, window's columns]"""
    x = np.pad(x, ((0, 0), *a["padding"], (0, 0)), constant_values=fill)
    (sy, sx), (dy, dx) = a["strides"], a.get("dilation", (1, 1))
    reach = (size[0] - 1) * dy + 1, (size[1] - 1) * dx + 1
    return np.lib.stride_tricks.sliding_window_view(x, reach, axis=(1, 2))[:, ::sy, ::sx, :, ::dy, ::dx]


class Pack:
    def __init__(self, folder):
        self.folder, names = folder, ("evidence.json", "proofs.json", "trace.json", "graph.json")
        self.index, self.proofs, self.trace, graph = (json.loads((folder / n).read_text("utf-8")) for n in names)
        self.tensors, self.constants, self.ops, self.states = map(graph.get, ("tensors", "constants", "ops", "states"))
        self.named, self.ends = {op["name"]: op for op in self.ops}, {*graph["inputs"], *graph["outputs"]}
        with np.load(folder / "data.npz", allow_pickle=False) as data:
            self.data = {name: data[name] for name in data.files}
        self.held = {name: self.data[row["data"]] for name, row in self.constants.items()}
        self.symbols = symbols_of((folder / self.index["program"]).read_bytes())

    def bounds(self, op):
        """Those of the output's type and of a fused activation."""
        out, clamp = self.tensors[op["outputs"][0]], op["attributes"].get("clamp") or {}
        ends, (low, high) = [clamp.get("low"), clamp.get("high")], RANGES[out["dtype"]]
        steps = [end and float(np.float32(end) / np.float32(out["scale"])) for end in ends]
        first, last = (None if step is None else out["zero"] + int(once(1, step)) for step in steps)
        low = low if first is None else max(low, min(first, high))
        return low, high if last is None else min(high, max(last, low))

    def layer(self, op):
        """Input, output, weights [taps, channels], biases, the real scale of every channel, and the rule."""
        x, out, kernel = self.tensors[op["inputs"][0]], self.tensors[op["outputs"][0]], op["constants"]["kernel"]
        taps, quant = self.held[kernel], self.constants[kernel]
        single = op["attributes"].get("once") or (op["kind"] == "dense" and taps.dtype == np.int8)
        taps = np.moveaxis(taps, 2, 3) if op["kind"] == "conv2d_transpose" else taps
        weights = ints(taps).reshape(-1, out["shape"][-1]) - quant["zero"]
        bias = ints(self.held[op["constants"]["bias"]]) if "bias" in op["constants"] else 0 * weights[0]
        reals = np.broadcast_to(x["scale"] * np.array(quant["scales"]) / out["scale"], bias.shape).tolist()
        return x, out, weights, bias, reals, "once" if single else "wide" if out["dtype"] == "int16" else "twice"

    def check_files(self):
        there = {path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file()}
        need(there == {*self.index["files"], "evidence.json"}, "files are missing, or not named in evidence.json")
        for name, wanted in self.index["files"].items():
            need(hashlib.sha256((self.folder / name).read_bytes()).hexdigest() == wanted, f"{name} has another hash")

    def check_whole(self):
        """Nothing is left out but what the pack names."""
        index, named = self.index, {*self.index["not_placed"], *self.index["not_from_the_model_file"]}
        types = {op["name"]: {self.tensors[n]["dtype"] for n in op["inputs"] + op["outputs"]} for op in self.ops}
        layers = {n for n, op in self.named.items() if op["kind"].startswith(SUMS) and types[n] in WHOLE}
        rows = [[row.get("op") or row["constant"] for row in self.proofs[n]] for n in ("layers", "places", "origins")]
        need(all(layers - named <= {*names} for names in rows[:2]), "a layer is not proved, or not placed")
        need({*self.constants} - named <= {*rows[2]}, "a constant is not compared with the model file")
        lengths = {len(self.data[row["values"][n]]) for row in [index, *index["replicas"]] for n in self.ends}
        need(lengths == {index["vectors"]} != {0} and index["replicas"], "vectors or targets are missing")

    def check_trace(self):
        """Each layer to its symbols and back, each symbol where the ELF file has it, each operation in one layer."""
        symbols, layers, prefix = self.trace["symbols"], self.trace["layers"], self.trace["prefix"] + "_"
        ours = {name for name, row in self.symbols.items() if name.startswith(prefix) and row[1]}
        need(ours == symbols.keys(), f"symbols of the program or the trace: {sorted(ours ^ symbols.keys())[:3]}")
        for name, row in symbols.items():
            need(self.symbols[name][:2] == (row["address"], row["size"]), f"{name} lies elsewhere in the program")
        pairs = {(n, name) for n, layer in enumerate(layers) for name in layer["functions"] + layer["constants"]}
        need(pairs == {(n, name) for name, row in symbols.items() for n in row["layers"]}, "the trace back differs")
        need(all(layer["vectors"] == list(range(self.index["vectors"])) for layer in layers), "vectors miss a layer")
        done = [op for layer in layers for op in layer["ops"]]
        views = [op["name"] for op in self.ops if op["kind"] in ("reshape", "offset") and op["name"] not in done]
        need(sorted(done + views) == sorted(self.named), "an operation belongs to no layer, or to two")

    def check_origins(self):
        """The weights against the model file."""
        raw = (self.folder / self.index["model"]).read_bytes()
        for row in self.proofs["origins"]:
            held = raw if row["member"] is None else zipfile.ZipFile(io.BytesIO(raw)).read(row["member"])
            value, shape, ratio = self.held[row["constant"]], row["shape"], row["ratio"]
            found = np.frombuffer(held, row["dtype"], math.prod(shape), row["offset"]).reshape(shape)
            found = found.transpose(row["axes"]).reshape(value.shape) * (1 if ratio is None else self.data[ratio])
            made = np.rint(found) + 0.0 if ratio and value.dtype.kind == "i" else found.astype(value.dtype)
            need(made.tobytes() == value.astype(made.dtype).tobytes(), f"{row['constant']}: the model file differs")
        scales = [t["scale"] for t in self.tensors.values()] + [s for c in self.constants.values() for s in c["scales"]]
        need(all(s is None or s == float(np.float32(s)) > 0 for s in scales), "a scale is no float32")

    def check_proofs(self):
        """Two functions that never decrease are equal from low to high when they are on both sides of every step."""
        for proof in self.proofs["layers"]:
            op, bounds = self.named[proof["op"]], self.bounds(self.named[proof["op"]])
            x, out, weights, bias, reals, rule = self.layer(op)
            ends, zero = [weights * (end - x["zero"]) for end in RANGES[x["dtype"]]], out["zero"]
            low, high = (bias + pick(*ends).sum(axis=0) for pick in (np.minimum, np.maximum))
            need(np.array_equal([low, high, reals], self.data[proof["reach"]]), f"{op['name']}: another reach or scale")
            need(max(-low.min(), high.max()) < 2 ** (47 if out["dtype"] == "int16" else 31), f"{op['name']}: overflow")
            columns = {role: self.data[key].tolist() for role, key in proof["columns"].items()}
            for i, (a, b, real) in enumerate(zip(low.tolist(), high.tolist(), reals, strict=True)):
                n, where = {role: column[i] for role, column in columns.items()}, f"{op['name']}, channel {i}"
                if proof["form"] == "general" and rule != "once":  # the rule itself
                    exact = multiplier_of(real, 15 if rule == "wide" else 31)
                    need((n["multiplier"], n["shift"]) == exact, f"{where}: another multiplier")
                    continue
                need(n["multiplier"] >= 0 and (rule == "once" or max(-a, b) * real < 1 << 30), f"{where}: no proof")
                first, last = np.clip(scaled(rule, [a, b], real) + zero, *bounds).tolist()
                below, above = 0 * (values := np.arange(first + 1, last + 1)) + a, 0 * values + b
                while (above - below > 1).any():
                    middle = (below + above) >> 1
                    reached = scaled(rule, middle, real) + zero >= values
                    below, above = np.where(reached, below, middle), np.where(reached, middle, above)
                at = ints([*below, *above, a, b])
                found, fits = in_program(proof, n, zero, at)
                same = np.clip(found, *bounds) == np.clip(scaled(rule, at, real) + zero, *bounds)
                need(fits and same.all(), f"{where}: the program's numbers round otherwise, or overflow")

    def check_packed(self):
        """The program's constants byte for byte, and where in them each weight and each number of a proof is."""
        proofs, packed = {proof["op"]: proof for proof in self.proofs["layers"]}, {*self.proofs["packed"].values()}
        for symbol, key in self.proofs["packed"].items():
            need(self.symbols[symbol][2] == self.data[key].tobytes(), f"{symbol}: the program holds something else")
        for place in self.proofs["places"]:
            x, _, weights, bias, *_ = self.layer(self.named[place["op"]])
            columns = {role: ints(self.data[key]) for role, key in proofs[place["op"]]["columns"].items()}
            left, centre = (columns.get(role, 0 * bias) for role in ("left", "centre"))
            start = bias - x["zero"] * weights.sum(axis=0)
            made = {"bias": bias, "start": start, "start and pairs": start + (len(weights) + 1) // 2}
            made |= {f"{role} less centre": values - centre for role, values in made.items()}
            made |= {f"{role}, lifted": values << left for role, values in made.items() if "less" in role} | columns
            weights = (weights + place["raised"]) << (left * place["lifted"])
            source = np.concatenate([weights.ravel(), *(made[role] for role in place["roles"]), [0]])
            seen = set(range(weights.size * (place["op"] in self.index["not_placed"])))
            for part in place["parts"]:
                first, second, units = (self.data[part[key]] for key in ("first", "second", "units"))
                held = ints(self.data[part["data"]].view(f"<i{part['bits'] // 8}"))[units]
                wanted = wrapped(source[first] + (source[second] << part["bits"] // 2), part["bits"])
                need(part["data"] in packed and np.array_equal(held, wanted), f"{place['op']}: other weights or sums")
                seen |= {*first.tolist(), *second.tolist()}
            need(seen >= set(range(weights.size)), f"{place['op']}: a weight is nowhere in the program")

    def weighted(self, op, x):
        a, (source, out, _, bias, reals, rule), name = op["attributes"], self.layer(op), op["constants"]["kernel"]
        kernel, x = self.held[name].astype(float) - self.constants[name]["zero"], x.astype(float) - source["zero"]
        if op["kind"] == "dense":
            acc = x @ kernel
        elif op["kind"] == "conv2d":
            shares = [np.split(v, a["groups"], axis=3) for v in (windows(x, kernel.shape, a, 0), kernel)]
            acc = np.concatenate([np.tensordot(v, k, ((4, 5, 3), (0, 1, 2))) for v, k in zip(*shares, strict=True)], 3)
        else:
            acc = np.einsum("nyxcij,ijcm->nyxcm", windows(x, kernel.shape, a, 0), kernel)
        acc = ints(acc).reshape(*acc.shape[: x.ndim - 1], -1) + bias
        return np.stack([scaled(rule, acc[..., i], real) for i, real in enumerate(reals)], axis=-1) + out["zero"]

    def summed(self, op, x, y):
        a, b, out = (self.tensors[name] for name in (*op["inputs"], op["outputs"][0]))
        bits, both = 20 if out["dtype"] == "int8" else 15, 2 * max(a["scale"], b["scale"])
        x, y = (twice((ints(v) - t["zero"]) << bits, *multiplier_of(t["scale"] / both)) for v, t in ((x, a), (y, b)))
        total = x - y if op["attributes"]["function"] == "subtract" else x + y
        return twice(total, *multiplier_of(both / ((1 << bits) * out["scale"]))) + out["zero"]

    def pooled(self, op, x):
        a, x, source, out = op["attributes"], ints(x), *(self.tensors[op[end][0]] for end in ("inputs", "outputs"))
        if op["kind"] == "reduce":  # the division is part of the multiplier
            axes, ratio = tuple(range(a["axis"] + 1, a["axis"] + 1 + a["count"])), source["scale"] / out["scale"]
            count, (m, shift) = math.prod(x.shape[i] for i in axes), multiplier_of(ratio)
            by, total = min(count.bit_length() - 1, 32, 31 + shift), (x - source["zero"]).sum(axes, keepdims=a["keep"])
            total = once(total, ratio / count) if a["once"] else twice(total, (m << by) // count, shift - by)
            return total + out["zero"]
        if a["function"] == "max":
            return windows(x, a["window"], a, -(2**31)).max(axis=(4, 5))
        total, count = (windows(v, a["window"], a, 0).sum(axis=(4, 5)) for v in (x, np.ones_like(x)))
        return (total + count // 2) // count if a["upward"] else np.sign(total) * ((abs(total) + count // 2) // count)

    def computed(self, op, kept):
        """An operation's output, or nothing where this script has no rule for it."""
        kind, function, names = op["kind"], op["attributes"].get("function"), op["inputs"] + op["outputs"]
        dtypes, inputs = {self.tensors[n]["dtype"] for n in names}, [kept.get(name) for name in op["inputs"]]
        if op["outer"] or dtypes not in WHOLE or set(names) - set(kept):
            return None
        if kind in ("reshape", "offset"):
            return inputs[0].reshape(-1, *op["attributes"]["shape"])
        added = kind == "binary" and function in ("add", "subtract") and len(inputs) == 2
        pools = kind == "pool2d" or (kind, function) == ("reduce", "mean")
        way = self.weighted if kind in SUMS else self.summed if added else self.pooled if pools else None
        return way and np.clip(way(op, *inputs[: 1 + added]), *self.bounds(op))

    def check_vectors(self):
        """Each layer computed again on its inputs; and every target's own record of what it was given and gave."""
        kept, again = {name: self.data[key] for name, key in self.index["values"].items()}, 0
        for op in () if self.states else self.ops:
            found = self.computed(op, kept)
            need(found is None or np.array_equal(found, kept[op["outputs"][0]]), f"{op['name']}: the vectors differ")
            again += found is not None
        rows, far = self.index["replicas"], self.index["allowed"]
        for row in rows:
            for name, key in row["values"].items():
                by = np.abs(self.data[key].astype(float) - kept[name].astype(float))
                need(by.size and by.max() <= far.get(name, 0), f"{row['target']}: {name} differs")
        print(f"{again} of {len(self.ops)} operations computed again; {len(rows)} targets within {max(far.values()):g}")


if __name__ == "__main__":
    try:
        pack = Pack(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent)
        for check in ("files", "whole", "trace", "origins", "proofs", "packed", "vectors"):
            getattr(pack, f"check_{check}")()
    except Exception as error:  # whatever a changed number leads to
        raise SystemExit(f"REFUSED: the pack is damaged: {error!r}") from None
    done = f"{len(pack.proofs['layers'])} layers proved, {len(pack.proofs['places'])} found in the program"
    print(f"PASS: {done}, {len(pack.index['open'])} open points")
