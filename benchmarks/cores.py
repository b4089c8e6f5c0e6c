"""What several cores gain: the critical path in emulators, in instructions, and two threads of this PC in the time of
the same run. Prints every bar with its figure; ends with 1 where one is missed.

    python benchmarks/cores.py emulated            # two Cortex-M33, 2, 4 and 8 harts, with and without own memories
    python benchmarks/cores.py pc --rounds 21      # MobileNet-224 and ResNet-50 in floats, against the peers of x86.py

On a PC only rounds count in which two independent loops gain at least 1.5 times by the second core. Where too few do,
somebody else has that core: no bar is printed, and the program ends with 3.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from x86_models import SHARED, WORK, Model, prepare
from x86_runners import Missing, OnnxRuntime, Ours, Runner, TFLite
from x86_workers import Worker

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
CORES = ROOT / "firmware" / "cores"
EXAMPLE = ROOT / "examples" / "many-cores" / "networks.py"
THREADS = 2


@dataclass(frozen=True)
class Bar:
    """`figure` must be at most, or at least, `wanted`."""

    what: str
    figure: float
    wanted: float
    most: bool

    @property
    def held(self) -> bool:
        return self.figure <= self.wanted if self.most else self.figure >= self.wanted

    def __str__(self) -> str:
        word = "at most" if self.most else "at least"
        return f"{'held  ' if self.held else 'MISSED'}  {self.what}: {self.figure:.3f}, {word} {self.wanted:g}"


SPEEDS = {"kws": {8: 6.3}, "resnet8": {8: 7.2}, "conv3x3": {8: 7.5}}
"""Of a network on so many harts, in times of one."""
SHARE = 0.53
"""Of one core's instructions on two Cortex-M33."""
COPIES = 1.15
"""Times the critical path with memories of their own."""
GAIN = 0.93
"""Of what two independent loops gain."""
FREE = 1.5
"""What they gain at least where two cores are free."""
TRIES = 3
"""Times the rounds that are wanted, before it is given up."""
TURN = 0.1
"""Seconds of a turn: one that begins from sleep has its start in it."""
NO_CORES = 3
"""How the program ends then."""


def networks() -> dict[str, Path]:
    found = {"kws": SHARED / "kws_ref_model.h5", "resnet8": SHARED / "pretrainedResnet.h5"}
    return found | {"conv3x3": convolution(WORK / "conv3x3.keras")}


def convolution(path: Path) -> Path:
    """A single 3x3 convolution of 224x224x16."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        script = (
            "import keras, sys; from keras import layers; keras.utils.set_random_seed(1); "
            "keras.Sequential([keras.Input((224, 224, 16)), layers.Conv2D(16, 3, padding='same')]).save(sys.argv[1])"
        )
        subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    return path


def critical(path: Path, board: str, cores: int, local: str | None = None) -> int:
    """Instructions of a run until the last core is done: of one, since all take the same."""
    from nnbuild.device.session import write_sample
    from nnbuild.jobs.job import build_program, connected, place, samples_for
    from nnbuild.jobs.options import Options
    from nnbuild.jobs.pipeline import compile_model

    made = compile_model(Options(path, board, "int8", threads=cores, local=local), sizes_only=True)
    if local == "on" and any(step.untiled for step in made.plan.steps):
        raise SystemExit(f"{path.name}: a step does not fit a core's own memory")
    with place(None) as where, connected(made, build_program(made, where), None) as (link, model):
        write_sample(link, model, next(iter(samples_for(made, None))))
        return link.run()


def emulated(chosen: list[str]) -> Iterator[Bar]:
    for name, path in networks().items():
        if chosen and name not in chosen:
            continue
        if name != "conv3x3":
            one, two = (critical(path, "mps2-an521", cores) for cores in (1, 2))
            print(f"{name} on mps2-an521: {one:,} instructions on one core, {two:,} on two", flush=True)
            yield Bar(f"{name}, two Cortex-M33, share of one core's instructions", two / one, SHARE, True)
        one = critical(path, "rv32-smp", 1)
        print(f"{name} on rv32-smp: {one:,} instructions on one hart", flush=True)
        for cores in (2, 4, 8):
            many = critical(path, "rv32-smp", cores)
            print(f"{name} on rv32-smp: {many:,} on {cores}, {one / many:.2f} times", flush=True)
            if cores in SPEEDS[name]:
                yield Bar(f"{name}, {cores} harts, times one hart's speed", one / many, SPEEDS[name][cores], False)
        if name != "conv3x3":
            copied = critical(path, "rv32-smp", 8, "on")
            print(f"{name} on rv32-smp: {copied:,} on 8 with memories of their own", flush=True)
            yield Bar(f"{name}, 8 harts with 64 KB each, times as long as without", copied / many, COPIES, True)


POOL = """\
#include <string.h>
#include "model.h"
#include "nn_cores.h"

static model_context context;
static char given[sizeof(model_context)];

void *bench_given(void) { return given; }
void bench_init(void) { model_init(&context); nn_cores_start(MODEL_PARTS); }
const void *bench_output(void) { return model_output(&context, 0); }
void bench_run(long times)
{
    for (long i = 0; i < times; ++i) {
        memcpy(model_input(&context, 0), given, INPUT_BYTES);
        model_run_parallel(&context, nn_cores_run, 0);
    }
}
"""
LOOPS = """\
#include <pthread.h>

typedef float many __attribute__((vector_size(64)));

/* As busy as a convolution: more sums than multiply-adds under way, so that two threads of one core gain nothing. */
static void *loop(void *words)
{
    many sums[16];
    long times = *(long *)words;

    for (int i = 0; i < 16; i++) { sums[i] = (many){(float)i}; }
    for (long n = 0; n < times * 1000; n++) {
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++) {
            sums[i] = sums[i] * 0.999f + 0.5f;
            __asm__ volatile("" : "+x"(sums[i]));
        }
    }
    return 0;
}

void bench_loops(long times, int threads)
{
    pthread_t others[64];

    for (int i = 1; i < threads; i++) { pthread_create(&others[i], 0, loop, &times); }
    loop(&times);
    for (int i = 1; i < threads; i++) { pthread_join(others[i], 0); }
}
"""


class OursInParts(Ours):
    """The same by THREADS threads of the run-time for POSIX."""

    harness, threads = POOL, THREADS
    more = (
        str(CORES / "nn_cores.c"),
        str(CORES / "nn_cores_posix.c"),
        f"-I{CORES}",
        "-pthread",
        "-DNN_CORES_BOUND=60000u",
    )


class Loops(Runner):
    """Independent loops of arithmetic, each on a thread of its own."""

    def __init__(self, threads: int) -> None:
        WORK.mkdir(parents=True, exist_ok=True)
        source, made = WORK / f"loops{threads}.c", WORK / f"loops{threads}.so"
        source.write_text(LOOPS)
        command = ["gcc", "-O2", "-march=native", "-fPIC", "-shared", "-pthread", str(source), "-o", str(made)]
        subprocess.run(command, check=True)
        self.library, self.threads, self.deployed = ctypes.CDLL(str(made)), threads, 0

    def run(self, times: int) -> None:
        self.library.bench_loops(ctypes.c_long(times), self.threads)

    def outputs(self) -> np.ndarray[Any, Any]:
        return np.zeros(0)


def models() -> list[Model]:
    resnet = Model("resnet_50", WORK / "resnet_50" / "resnet_50.keras")
    return [Model("mobilenet_224", WORK / "mobilenet_224" / "mobilenet_224.h5"), resnet]


def made(model: Model) -> None:
    """The files of a model, by TensorFlow; its integer form is not wanted here."""
    if not model.path.exists() and model.name == "resnet_50":
        model.path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, str(EXAMPLE), "resnet-50", str(model.path)], check=True)
    elif not model.path.exists():
        prepare(model)
    if not model.tflite("float").exists():
        script = (
            "import sys, tensorflow as tf; m = tf.keras.models.load_model(sys.argv[1], compile=False); "
            "open(sys.argv[2], 'wb').write(tf.lite.TFLiteConverter.from_keras_model(m).convert())"
        )
        subprocess.run([sys.executable, "-c", script, str(model.path), str(model.tflite("float"))], check=True)


def workers(model: Model) -> dict[str, Worker]:
    wanted: dict[str, tuple[type[Runner], tuple[Any, ...]]] = {
        "one": (Ours, (model, "float")),
        "two": (OursInParts, (model, "float")),
        "loop": (Loops, (1,)),
        "loops": (Loops, (THREADS,)),
        "XNNPACK": (TFLite, (model, "float", THREADS)),
        "onnxruntime": (OnnxRuntime, (model, "float", THREADS)),
    }
    found = {}
    for name, (kind, arguments) in wanted.items():
        try:
            found[name] = Worker(kind, arguments)
        except Missing as reason:
            print(f"{model.name}: {name} is left out: {reason}", flush=True)
    return found


Times = dict[str, float]


def rounds_of(crew: dict[str, Worker], wanted: int) -> list[Times]:
    """Everyone in turns, seconds a run; of so many rounds in which both cores were free, or of fewer."""
    one, loop = crew["one"].elapsed(1), crew["loop"].elapsed(1)
    turns = max(1, round(TURN / one))
    runs = dict.fromkeys(crew, turns) | dict.fromkeys(("loop", "loops"), max(1, round(turns * one / loop)))
    found: list[Times] = []
    for _ in range(TRIES * wanted):
        times = {name: worker.elapsed(runs[name]) / runs[name] for name, worker in crew.items()}
        found += [times] if gained(times) >= FREE else []
        if len(found) == wanted:
            break
    return found


def gained(times: Times) -> float:
    """By the second core, of two loops."""
    return THREADS * times["loop"] / times["loops"]


def bars_of(model: Model, rounds: list[Times]) -> Iterator[Bar]:
    """Of each round the ratios, and of these the median."""
    for name in rounds[0]:
        print(f"{model.name}: {name} {1000 * median(each[name] for each in rounds):.2f} ms", flush=True)
    gains = [each["one"] / each["two"] / gained(each) for each in rounds]
    yield Bar(f"{model.name}, two threads, share of what two loops gain", median(gains), GAIN, False)
    for name in ("XNNPACK", "onnxruntime"):
        if name in rounds[0]:
            ratio = median(each["two"] / each[name] for each in rounds)
            yield Bar(f"{model.name}, two threads, times as long as {name}", ratio, 1, True)


def on_this_pc(wanted: int, chosen: list[str]) -> Iterator[Bar | None]:
    """None for a model that could not be measured."""
    for model in models():
        if chosen and model.name not in chosen:
            continue
        made(model)
        crew = workers(model)
        if not np.array_equal(crew["one"].outputs, crew["two"].outputs):
            raise SystemExit(f"{model.name}: two threads have other bits than one")
        rounds = rounds_of(crew, wanted)
        for worker in crew.values():
            worker.stop()
        if len(rounds) == wanted:
            yield from bars_of(model, rounds)
        else:
            print(
                f"{model.name}: not measured. In {TRIES * wanted - len(rounds)} rounds two loops gained less than "
                f"{FREE:g} times by the second core: this machine has no two free cores. Try again when it has."
            )
            yield None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("where", choices=("emulated", "pc"))
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--rounds", type=int, default=21)
    given = parser.parse_args()
    bars: list[Bar | None] = []
    for bar in emulated(given.networks) if given.where == "emulated" else on_this_pc(given.rounds, given.networks):
        bars.append(bar)
        if bar is not None:
            print(bar, flush=True)
    if any(bar is not None and not bar.held for bar in bars):
        return 1
    return NO_CORES if None in bars else 0


if __name__ == "__main__":
    sys.exit(main())
