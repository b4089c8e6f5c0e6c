"""Instructions of one inference on 64-bit Arm, of our programs and of TFLite's interpreter, counted alike by QEMU.

    python benchmarks/aarch64.py MODEL…        # .tflite files, or .h5 ones that TensorFlow can convert, in floats

Ours are compiled with clang and with gcc. The peer is the wheel of ai-edge-litert for 64-bit Arm with one thread: with
its default delegate, XNNPACK, and with the built-in kernels alone. It runs in the Python of Debian's packages for
arm64, which are unpacked in the user's cache and not installed. What cannot be had is left out by name.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

from nnbuild.backends.kmod.packages import unpack_together
from nnbuild.backends.qemu_plugins import plugin
from nnbuild.base.errors import NnbuildError, ToolMissing
from nnbuild.base.paths import cache
from nnbuild.board.tables import find

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.vector_sets import instructions, table_of

BOARD, COUNTER = "linux-arm64", 1000
PYTHON = (
    *("python3.11-minimal", "libpython3.11-minimal", "libpython3.11-stdlib", "libc6", "zlib1g", "libexpat1"),
    *("libstdc++6", "libgcc-s1", "libffi8", "libbz2-1.0", "liblzma5", "libuuid1", "libssl3"),
)
WHEELS = ("ai-edge-litert==2.1.0", "numpy==2.4.6")
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux2014_aarch64")
RESOLVERS = {"XNNPACK": "BUILTIN", "built-in": "BUILTIN_WITHOUT_DEFAULT_DELEGATES"}
RUN = f"""\
import os, sys
sys.path.insert(0, sys.argv[1])
import numpy
from ai_edge_litert.interpreter import Interpreter, OpResolverType

def count():
    return int.from_bytes(os.pread({COUNTER}, 8, 0), "little")

made = Interpreter(sys.argv[2], num_threads=1, experimental_op_resolver_type=OpResolverType[sys.argv[3]])
made.allocate_tensors()
for each in made.get_input_details():
    made.set_tensor(each["index"], numpy.zeros(each["shape"], each["dtype"]))
made.invoke()
made.invoke()
start, nothing = count(), count()
made.invoke()
print(count() - nothing - (nothing - start))
"""
"""The third of three runs, less what it takes to look at the counter."""


@dataclass(frozen=True)
class Processor:
    """QEMU's name of a processor, and how Linux describes it, by which the peer chooses its kernels."""

    name: str
    emulated: str
    isa: str
    part: int
    features: str

    @property
    def cpuinfo(self) -> str:
        told = {"processor": "0", "Features": self.features, "CPU implementer": "0x41", "CPU architecture": "8"}
        told |= {"CPU variant": "0x1", "CPU part": f"{self.part:#x}", "CPU revision": "0"}
        return "".join(f"{name}\t: {value}\n" for name, value in told.items())


PLAIN = "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"
SECOND = f"{PLAIN} atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp"
PROCESSORS = (
    Processor("Cortex-A72", "cortex-a72", "neon", 0xD08, PLAIN),
    Processor("Neoverse N1", "neoverse-n1", "neon_dotprod", 0xD0C, SECOND),
    Processor("with i8mm", "max,sve=off,sme=off", "neon_i8mm", 0xD49, f"{SECOND} bf16 i8mm"),
)


@once
def wheels() -> Path:
    """The peer's packages, unpacked."""
    folder = cache() / "litert-arm64"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", work]
            command += ["--python-version", "3.11", *(f"--platform={name}" for name in PLATFORMS), *WHEELS]
            if subprocess.run(command).returncode:
                raise ToolMissing("the peer", f"pip has no {' and '.join(WHEELS)} for 64-bit Arm.", " ".join(command))
            whole = Path(work) / "whole"
            for wheel in sorted(Path(work).glob("*.whl")):
                zipfile.ZipFile(wheel).extractall(whole)
            whole.rename(folder)
    return folder


def peer(model: Path, processor: Processor, resolver: str) -> int:
    python = unpack_together(PYTHON, "arm64", cache() / "python-arm64")
    with tempfile.TemporaryDirectory() as work:
        root = Path(work)
        for name in ("lib", "usr", "etc"):
            (root / name).symlink_to(python / name)
        (root / "proc").mkdir()
        (root / "proc" / "cpuinfo").write_text(processor.cpuinfo)
        (root / "run.py").write_text(RUN)
        counting = f"{plugin(find(BOARD), 'nn_counter')},counter={COUNTER}"
        command = ["qemu-aarch64", "-cpu", processor.emulated, "-L", work, "-plugin", counting]
        command += [str(root / "usr" / "bin" / "python3.11"), "-S", str(root / "run.py"), str(wheels()), str(model)]
        done = subprocess.run(
            [*command, resolver], capture_output=True, text=True, env={**os.environ, "PYTHONHOME": "/usr"}
        )
    if done.returncode:
        raise NnbuildError(model.name, f"the peer ended with code {done.returncode}:\n{done.stderr[-500:]}\n", "")
    return int(done.stdout.split()[-1])


def for_peer(model: Path, folder: Path) -> Path:
    """The model as the peer reads it."""
    if model.suffix == ".tflite":
        return model
    try:
        import tensorflow as tf
    except ImportError:
        raise ToolMissing(
            model.name, "only TensorFlow can convert it for the peer.", "pip install tensorflow"
        ) from None
    made = folder / f"{model.stem}.tflite"
    made.write_bytes(tf.lite.TFLiteConverter.from_keras_model(tf.keras.models.load_model(model)).convert())
    return made


def counted(how: Callable[[], int]) -> int | None:
    """None, and a word on why, where it cannot be counted here."""
    try:
        return how()
    except (NnbuildError, OSError) as problem:
        print(f"left out: {problem}", file=sys.stderr)
        return None


def row(model: Path, processor: Processor, folder: Path) -> list[int | None]:
    tables = [table_of(BOARD, compiler, folder, processor.emulated) for compiler in ("clang", "gcc")]
    ours = [counted(lambda at=at: instructions(str(model), at, processor.isa)) if at else None for at in tables]
    return [*ours, *(counted(lambda to=to: peer(for_peer(model, folder), processor, to)) for to in RESOLVERS.values())]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Instructions of one inference on 64-bit Arm, ours and the peer's.")
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--processor", choices=[each.isa for each in PROCESSORS], help="the one with this set alone")
    given = parser.parse_args(words)
    heads = ["clang", "gcc", *RESOLVERS]
    print(f"{'model':26} {'processor':12} {'set':13}" + "".join(f"{head:>12}" for head in heads) + "  peer/ours")
    with tempfile.TemporaryDirectory() as folder, suppress(KeyboardInterrupt):
        for model in given.models:
            for processor in PROCESSORS:
                if given.processor in (None, processor.isa):
                    found = row(model, processor, Path(folder))
                    peers = [value for value in found[2:] if value]
                    ahead = f"{min(peers) / found[0]:11.2f}" if peers and found[0] else ""
                    cells = "".join(f"{value:>12,}" if value else f"{'-':>12}" for value in found)
                    print(f"{model.name:26} {processor.name:12} {processor.isa:13}{cells}{ahead}", flush=True)


if __name__ == "__main__":
    main()
