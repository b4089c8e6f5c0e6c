"""Our generated C against what one would otherwise run on a PC, on one thread, in one run.

    python benchmarks/x86.py                      # the standard models, float and int8
    python benchmarks/x86.py lenet5 mine.h5       # some of them, or a file of yours
    python benchmarks/x86.py --isa avx2_fma --form float --compiler clang
    python benchmarks/x86.py --write              # and keep the table and the plot in docs/

Everyone takes turns, round after round, and the median of the rounds counts, so that a change of the machine's speed
meets all alike. Each has a process of its own, whose CPU time is taken, all its threads included. Peers that are not
installed, or cannot run a model, are named with the reason. benchmarks/README.md says how to install them.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from x86_models import WORK, Model, prepare, standard
from x86_runners import PEERS, Missing, Ours
from x86_workers import Worker

ROUND = 10e-3
"""Seconds of one turn."""
OURS = "nnbuild"
BARS = {
    "lstm32": (0.32, None),
    "small_cnn": (0.45, 0.35),
    "lenet5": (0.48, 0.30),
    "autoencoder": (0.65, None),
    "kws": (0.65, 0.55),
    "resnet8": (0.60, 1.0),
    "mobilenet_96": (0.56, None),
    "mobilenet_224": (0.93, 1.1),
}
"""The ratios, float and int8, that are aimed at on a processor with AVX-512 VNNI."""


@dataclass
class Result:
    """Of one model in one form: seconds a run and bytes to ship of everyone, and why others are missing."""

    model: str
    form: str
    macs: int
    seconds: dict[str, float]
    deployed: dict[str, int]
    missing: dict[str, str] = field(default_factory=dict)
    difference: float = 0.0

    def best_peer(self) -> str | None:
        peers = [name for name in self.seconds if name != OURS]
        return min(peers, key=lambda name: self.seconds[name], default=None)

    def ratio(self) -> float | None:
        peer = self.best_peer()
        return self.seconds[OURS] / self.seconds[peer] if peer else None


def compare(model: Model, form: str, options: argparse.Namespace) -> Result | None:
    workers: dict[str, Worker] = {}
    missing: dict[str, str] = {}
    try:
        workers[OURS] = Worker(Ours, (model, form, options.isa, options.compiler))
    except Missing as error:
        print(f"{model.name} {form}: {error}")
        return None
    for name, kind in PEERS.items():
        if options.peers and not any(part.lower() in name.lower() for part in options.peers.split(",")):
            continue
        try:
            workers[name] = Worker(kind, (model, form))
        except Missing as error:
            missing[name] = str(error)
    try:
        rounds = take_turns(workers, options.rounds)
        return Result(
            model.name,
            form,
            workers[OURS].macs,
            {name: statistics.median(values) for name, values in rounds.items()},
            {name: worker.deployed for name, worker in workers.items()},
            missing,
            difference(workers),
        )
    finally:
        for worker in workers.values():
            worker.stop()


def take_turns(workers: dict[str, Worker], count: int) -> dict[str, list[float]]:
    """Seconds a run of everyone in every round."""
    times = {name: worker.runs_in(ROUND) for name, worker in workers.items()}
    rounds: dict[str, list[float]] = {name: [] for name in workers}
    for _ in range(count):
        for name, worker in workers.items():
            rounds[name].append(worker.seconds(times[name]) / times[name])
    return rounds


def difference(workers: dict[str, Worker]) -> float:
    """The largest distance between our first output and TFLite's on the same input: that both compute the same."""
    other = next((worker for name, worker in workers.items() if name.startswith("TFLite")), None)
    if other is None:
        return float("nan")
    ours, theirs = (worker.outputs.astype(np.float64) for worker in (workers[OURS], other))
    return float(np.abs(ours - theirs).max()) if ours.shape == theirs.shape else float("nan")


def peak(isa: str) -> float:
    """This core's multiply-adds a second, in floats, as measured."""
    library = WORK / "peak.so"
    WORK.mkdir(parents=True, exist_ok=True)
    source = Path(__file__).with_name("x86_peak.c")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    wide = "avx512" in isa or (isa == "native" and "avx512f" in Path("/proc/cpuinfo").read_text())
    function = getattr(ctypes.CDLL(str(library)), "peak_avx512" if wide else "peak_avx2")
    times, best = 1_000_000, float("inf")
    for _ in range(9):
        start = time.process_time_ns()
        function(ctypes.c_long(times))
        best = min(best, (time.process_time_ns() - start) / 1e9 / times)
    return 10 * (16 if wide else 8) / best


def table(results: Sequence[Result], most: float) -> str:
    names = [OURS, *[name for name in PEERS if any(name in r.seconds for r in results)]]
    head = ["model", "form", *[f"{name}, µs" for name in names], "ratio to the best", "bar", "% of peak"]
    rows = [head, ["---"] * 2 + ["---:"] * (len(head) - 2)]
    for result in results:
        ratio, bar = result.ratio(), BARS.get(result.model, (None, None))[result.form == "int8"]
        share = 100 * result.macs / result.seconds[OURS] / most
        cells = [result.model, result.form]
        cells += [f"{result.seconds[name] * 1e6:,.2f}" if name in result.seconds else "-" for name in names]
        cells += [f"{ratio:.2f}" if ratio else "-", f"{bar:.2f}" if bar else "-"]
        rows.append([*cells, f"{share:.0f}" if result.form == "float" else "-"])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def sizes(results: Sequence[Result]) -> str:
    names = [OURS, *[name for name in PEERS if any(name in r.deployed for r in results)]]
    rows = [["model", "form", *[f"{name}, KB" for name in names]], ["---"] * 2 + ["---:"] * len(names)]
    for r in results:
        cells = [f"{r.deployed[name] / 1024:,.0f}" if name in r.deployed else "-" for name in names]
        rows.append([r.model, r.form, *cells])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def plot(results: Sequence[Result], path: Path) -> None:
    """Time relative to ours; lower is faster."""
    import matplotlib  # type: ignore[import-not-found]

    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot  # type: ignore[import-not-found]

    names = [OURS, *[name for name in PEERS if any(name in r.seconds for r in results)]]
    figure, axes = pyplot.subplots(figsize=(11, 4.5))
    width = 0.8 / len(names)
    for place, name in enumerate(names):
        values = [r.seconds[name] / r.seconds[OURS] if name in r.seconds else 0.0 for r in results]
        axes.bar([i + place * width for i in range(len(results))], values, width, label=name)
    axes.set_yscale("log")
    axes.set_ylabel("time, nnbuild = 1")
    axes.set_xticks([i + 0.4 - width / 2 for i in range(len(results))])
    axes.set_xticklabels([f"{r.model}\n{r.form}" for r in results], fontsize=8)
    axes.axhline(1.0, color="black", linewidth=0.6)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def write(text: str, results: Sequence[Result], folder: Path) -> None:
    """Puts the tables between their marks in docs/x86.md, and the plot beside it."""
    page = folder / "x86.md"
    before, _, rest = page.read_text().partition("<!-- measured -->\n")
    _, _, after = rest.partition("<!-- end -->")
    page.write_text(f"{before}<!-- measured -->\n{text}\n<!-- end -->{after}")
    plot(results, folder / "x86.png")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="names of standard models, or .h5 files (default: all standard ones)")
    parser.add_argument("--isa", default="native", help="instruction set of our C (default: %(default)s)")
    parser.add_argument("--form", choices=("float", "int8", "both"), default="both")
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--rounds", type=int, default=21, help="turns of everyone (default: %(default)s)")
    parser.add_argument("--peers", help="only peers whose names contain one of these, comma-separated")
    parser.add_argument("--write", action="store_true", help="keep the tables and the plot in docs/")
    return parser.parse_args()


def wanted(names: Sequence[str]) -> list[Model]:
    known = {model.name: model for model in standard()}
    return [known[n] if n in known else Model(Path(n).stem, Path(n)) for n in names] or list(known.values())


def text_of(results: Sequence[Result], most: float, options: argparse.Namespace) -> str:
    missing = sorted({f"{name} ({r.model}, {r.form}): {why}" for r in results for name, why in r.missing.items()})
    notes = "\n".join(f"- {line}" for line in missing)
    head = f"{processor()}; one thread; C by {options.compiler} -O2, isa {options.isa}; measured peak "
    return "\n\n".join(
        part
        for part in (
            f"{head}{2 * most / 1e9:.0f} GFLOP/s in floats.",
            table(results, most),
            "Bytes to ship, the model's weights included:",
            sizes(results),
            f"Not measured:\n\n{notes}" if notes else "",
        )
        if part
    )


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))


def main() -> int:
    options: Any = arguments()
    results = []
    for model in wanted(options.models):
        reason = prepare(model)
        if reason:
            print(f"{model.name}: skipped, {reason}", flush=True)
            continue
        for form in ("float", "int8") if options.form == "both" else (options.form,):
            if form == "int8" and not model.tflite("int8").exists():
                continue
            found = compare(model, form, options)
            if found:
                results.append(found)
                print(
                    f"{model.name} {form}: ratio {found.ratio() or 0:.2f}, differs by {found.difference:.2g}",
                    flush=True,
                )
    text = text_of(results, peak(options.isa), options)
    print(f"\n{text}")
    if options.write:
        write(text, results, Path(__file__).resolve().parents[1] / "docs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
