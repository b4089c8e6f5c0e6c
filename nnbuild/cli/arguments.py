"""Arguments and helpers that several commands share."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nnbuild.backends.registry import choices, refuse_choices
from nnbuild.base.files import write_whole
from nnbuild.base.sanitize import printable
from nnbuild.board.tables import find
from nnbuild.frontend.import_options import LAYOUTS, ImportOptions
from nnbuild.jobs.compression import weight_facts
from nnbuild.jobs.options import CHOICES, Options
from nnbuild.jobs.pipeline import BASELINE, Compiled
from nnbuild.quantize.formats import FORMATS
from nnbuild.report.weights import weights_text

QUIET = 2.0
"""Seconds between progress lines."""
_heard = [time.monotonic()]
_PRUNE = "the share of weights to prune, such as 0.9; or fc1=0.9,fc2=0.5; or by-layer, or auto"
_SHARE = "number of different weight values per layer, 2 to 256"
_BITS = (
    "bits per weight of integer layers, 2 to 7, in steps of a half up to 5, or 8, also of float layers; auto: narrower "
    "where that costs little; or one per layer: 3,fc2=2.5"
)
_FLASH = "limit for the model's constants and code in bytes, such as 64K: weights are compressed to meet it"

QUANTIZE = CHOICES["quantize"]


_IMAGE_RANGE = "values of black and white in calibration images (default: 0,1)"
_PRICE = "choose kernels by cycles of the board's processor, or by instructions, as emulators count (default: cycles)"
_KEEP = "a different format for one layer: int8, int16 or float; may be given several times"
_PLAIN_BIAS = "do not correct biases for the average error of rounded weights"
_LOCAL = (
    "compute each step on copies in each core's own memory, where the board has it; checked: a core that touches "
    "anything else takes a fault (default: the board's table)"
)
_CORES = "number of cores, or threads, that compute large steps together (default: the board's table; on a PC 1)"
MOST_NAMED = 5
"""Values of an output that a note lists."""
_ISA = "instruction set of the kernels: c99, sse2, avx2_fma, native …, or several with commas (default: the board's)"
_DROP = "use finer formats for layers until the accuracy loss on the (labelled) calibration samples is at most this"
_MEMORY = "the board's memory for the arena (default: the first that fits)"
_BAUD = "rate of the serial line, 115200 to 2000000, built into the firmware (default: the board's)"
_MAX_INSTRUCTIONS = "fail unless a proof shows that no input makes a run execute more instructions (Cortex-M)"
_LABELS = "file of class names, one per line (default: those in a .tflite file)"
_FEATURES = "front end for the model: the program then takes microphone or sensor samples and reports events"
_SWAPPABLE = "make the weights replaceable at run time, on boards that support it"
_SHAPE = "sizes of an input that the file leaves open: x=1,3,96,96; once for each such input"
_FIX = "an input that is always the same number, or numbers, and becomes a constant: rate=16000; once for each"
_LAYOUT = "layout of an ONNX model's input and output images: as in its file, or channels last (default: %(default)s)"
_DEVICE = "accelerator beside the processor: its name, or the folder of its device.toml; NAME:DRIVER selects a driver"
_PLACE = "compute a layer on the processor or the device, regardless of cost; * means every layer the device supports"
_STREAM = (
    "take only new rows: auto or the time axis of the input, counted from 0; after commas hop=N rows a step, "
    "meaning=stream for a model that goes on instead of beginning anew with each window"
)
_IO = "number format of a quantized model's inputs and outputs (default: %(default)s)"


def _pair(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a range of two numbers, such as 0,1 or -1,1") from None
    return low, high


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 256:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 256")
    return int(text)


def _instructions(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of instructions")
    return int(text)


def _shaped(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, sizes = text.rpartition("=")
    parts = sizes.split(",")
    if not equals or not all(part.isascii() and part.isdecimal() and 0 < int(part) < 2**31 for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not INPUT=SIZES, as x=1,3,96,96")
    return name, tuple(int(part) for part in parts)


def _fixed(text: str) -> tuple[str, tuple[float, ...]]:
    name, equals, numbers = text.rpartition("=")
    try:
        found = tuple(float(number) for number in numbers.split(","))
    except ValueError:
        found = ()
    if not equals or not found:
        raise argparse.ArgumentTypeError(f"{text!r} is not INPUT=NUMBERS, as rate=16000")
    return name, found


def _kept(text: str) -> tuple[str, str]:
    layer, equals, form = text.rpartition("=")
    if not equals or form not in FORMATS:
        raise argparse.ArgumentTypeError(f"{text!r} is not LAYER=int8, LAYER=int16 or LAYER=float")
    return layer, form


def _placed(text: str) -> tuple[str, str]:
    layer, equals, place = text.rpartition("=")
    if not equals or place not in ("cpu", "device"):
        raise argparse.ArgumentTypeError(f"{text!r} is not LAYER=cpu or LAYER=device")
    return layer, place


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="a .h5, .keras, .tflite or .onnx file")
    add_inputs(parser)


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """What the model's file leaves open."""
    parser.add_argument("--shape", action="append", default=[], type=_shaped, metavar="INPUT=SIZES", help=_SHAPE)
    parser.add_argument("--fix", action="append", default=[], type=_fixed, metavar="INPUT=NUMBERS", help=_FIX)
    parser.add_argument("--io-layout", choices=CHOICES["io_layout"], default=LAYOUTS[0], help=_LAYOUT)


def add_build_options(parser: argparse.ArgumentParser, board: bool = True) -> None:
    add_model(parser)
    if board:
        where = parser.add_argument_group("where it runs")
        where.add_argument("--board", default="linux", help="a board, or your own board table (default: this PC)")
        where.add_argument("--memory", metavar="NAME", help=_MEMORY)
        add_device(where)
    _add_numbers(parser.add_argument_group("numbers"))
    _add_code(parser.add_argument_group("code"))


def add_device(group: argparse._ActionsContainer) -> None:
    group.add_argument("--device", metavar="NAME", help=_DEVICE)
    group.add_argument("--place", action="append", default=[], type=_placed, metavar="LAYER=PLACE", help=_PLACE)


def _add_numbers(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--quantize", choices=QUANTIZE, default="float", help="number format (default: %(default)s)")
    group.add_argument("--calibrate", type=Path, metavar="FILE", help="samples (.npz, .npy, a folder of images)")
    group.add_argument(
        "--calibration", choices=CHOICES["method"], default="minmax", help="method (default: %(default)s)"
    )
    group.add_argument("--image-range", type=_pair, default=(0.0, 1.0), metavar="LOW,HIGH", help=_IMAGE_RANGE)
    group.add_argument("--keep", action="append", default=[], type=_kept, metavar="LAYER=FORMAT", help=_KEEP)
    group.add_argument("--io", choices=CHOICES["io"], default="integer", help=_IO)
    group.add_argument("--no-bias-correction", action="store_true", help=_PLAIN_BIAS)
    group.add_argument("--accuracy-drop", type=float, metavar="POINTS", help=_DROP)
    group.add_argument("--prune", metavar="SHARE", help=_PRUNE)
    group.add_argument("--share", metavar="COUNT", help=_SHARE)
    group.add_argument("--weights-bits", metavar="BITS", help=_BITS)
    group.add_argument("--flash", metavar="BYTES", help=_FLASH)


def _add_code(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--optimize", choices=CHOICES["optimize"], default="speed", help="what counts (default: %(default)s)"
    )
    group.add_argument("--price", choices=CHOICES["price"], default="cycles", help=_PRICE)
    group.add_argument("--stream", metavar="auto|AXIS[,hop=N][,meaning=M]", help=_STREAM)
    group.add_argument("--isa", metavar="NAME", help=_ISA)
    group.add_argument("--cores", "--threads", dest="threads", type=_count, metavar="N", help=_CORES)
    group.add_argument("--local", choices=CHOICES["local"], help=_LOCAL)
    group.add_argument("--name", help="prefix of all C identifiers (default: from the file's name)")
    group.add_argument("--labels", type=Path, metavar="FILE", help=_LABELS)
    group.add_argument("--features", type=Path, metavar="FILE.toml", help=_FEATURES)
    group.add_argument("--swappable", action="store_true", help=_SWAPPABLE)
    group.add_argument(
        "--weights",
        choices=CHOICES["weights"],
        default="auto",
        help="constants as C arrays, or as a .bin included by a .S (default: binary above 256 KB)",
    )


def add_layers(parser: argparse.ArgumentParser) -> None:
    """For commands that build a program for check --layers."""
    parser.add_argument("--layers", action="store_true", help="do not fuse layers, for check --layers")


def add_max_instructions(parser: argparse._ActionsContainer, what: str = _MAX_INSTRUCTIONS) -> None:
    """For commands that build a program or take one."""
    parser.add_argument("--max-instructions", type=_instructions, metavar="N", help=what)


def add_baud(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--baud", type=int, metavar="RATE", help=_BAUD)


def import_options_of(arguments: argparse.Namespace) -> ImportOptions:
    return ImportOptions(dict(arguments.shape), arguments.io_layout, dict(arguments.fix))


def options_to_run(arguments: argparse.Namespace, *, layers: bool = False) -> Options:
    """Like `options_of`, for a program that runs here and now: on this PC with its best instruction set. One that was
    built before has the set that `options_of` gives."""
    options = options_of(arguments, layers=layers)
    built = getattr(arguments, "program", None) is not None
    here = not built and options.isa is None and find(options.board).isa == BASELINE
    return replace(options, isa="native") if here else options


def options_of(arguments: argparse.Namespace, *, layers: bool = False) -> Options:
    wanted = {choice.name: getattr(arguments, choice.name, None) for choice in choices()}
    given = {name: value for name, value in wanted.items() if value is not None}
    if given:
        refuse_choices(find(arguments.board), given)
    return Options(
        model=arguments.model,
        board=arguments.board,
        quantize=arguments.quantize,
        calibrate=arguments.calibrate,
        method=arguments.calibration,
        keep=tuple(arguments.keep),
        io=arguments.io,
        bias_correction=not arguments.no_bias_correction,
        accuracy_drop=arguments.accuracy_drop,
        prune=arguments.prune,
        share=arguments.share,
        weights_bits=arguments.weights_bits,
        flash=arguments.flash,
        image_range=arguments.image_range,
        optimize=arguments.optimize,
        price=arguments.price,
        isa=arguments.isa,
        threads=arguments.threads,
        local=arguments.local,
        name=arguments.name,
        weights=arguments.weights,
        layers=layers,
        baud=getattr(arguments, "baud", None),
        swappable=arguments.swappable,
        memory=getattr(arguments, "memory", None),
        labels=arguments.labels,
        features=arguments.features,
        max_instructions=getattr(arguments, "max_instructions", None),
        shape=tuple(arguments.shape),
        io_layout=arguments.io_layout,
        fix=tuple(arguments.fix),
        device=getattr(arguments, "device", None),
        place=tuple(getattr(arguments, "place", ())),
        stream=arguments.stream,
    )


def print_json(value: Mapping[str, Any], file: str = "-") -> None:
    """Prints one JSON object to a file or to standard output."""
    text = json.dumps(value, indent=2)
    if file == "-":
        print(text)
    else:
        write_whole(Path(file), f"{text}\n".encode())


def progress(what: str) -> Callable[[int, int | None], None] | None:
    """A progress line that updates in place on a terminal; None in a pipe."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int | None) -> None:
        end = "\r\x1b[K" if total is not None and done >= total else ""
        of = f"/{total}" if total is not None else ""
        print(f"\r\x1b[K{what} {done}{of}{end}", end="", file=sys.stderr, flush=True)

    return show


def announce(text: str) -> None:
    """Prints a line of progress at most every few seconds, also in a pipe."""
    now = time.monotonic()
    if now - _heard[-1] > QUIET:
        _heard[-1] = now
        print(f"nnbuild: {printable(text)}", file=sys.stderr, flush=True)


def say_weights(compiled: Compiled) -> None:
    """Reports the compression of the weights, where requested, and the cost of each byte."""
    found = weight_facts(compiled.compression)
    if found is not None and found.asked:
        print("\n".join(map(printable, weights_text(found).split("\n"))), file=sys.stderr)


def say_notes(notes: tuple[str, ...]) -> None:
    for note in notes:
        print(f"nnbuild: note: {printable(note)}", file=sys.stderr)


def say_same(output: str, same: bool, samples: int) -> None:
    """A note on an output that never changes."""
    if same:
        seen = f"output {output!r} is the same for all {samples} samples"
        say_notes((f"{seen}: they show hardly any mistake in what leads to it",))


def say_cut(output: str, cut: int, samples: int) -> None:
    """A note on an output that `cut` of the samples drive beyond what its integers hold."""
    if cut:
        cause = (
            f"output {output!r}: {cut} of {samples} samples lead to values far beyond what its integers hold, and are"
        )
        say_notes((f"{cause} cut off. Calibrate with samples that reach as far",))


def say_lost(output: str, lost: tuple[int, ...], count: int) -> None:
    """A note on an output of which `lost` of `count` values say nothing any more."""
    if not lost:
        return
    named = ", ".join(map(str, lost[:MOST_NAMED])) + (", …" if len(lost) > MOST_NAMED else "")
    which = f"its values at {named} (of {count}) vary" if count > 1 else "it varies"
    cause = f"output {output!r}: {which} by less than quantization errs."
    advice = (
        "Use a finer format (int16, or --keep for the last layer), calibrate with samples like the device's, or train"
    )
    say_notes((f"{cause} {advice} outputs of one size",))
