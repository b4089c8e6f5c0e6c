"""The options of a compilation, and what follows from them: board, device, quantization and target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from nnbuild.backends.registry import backend_of, bounded_entry
from nnbuild.base.errors import UsageError
from nnbuild.base.names import identifier, of_file
from nnbuild.board.board import Board, with_baud, with_context_memory, with_instruction_budget
from nnbuild.board.cores import USES, with_local
from nnbuild.board.tables import boards, find
from nnbuild.compress.options import WeightOptions as WeightWishes
from nnbuild.compress.options import option_text
from nnbuild.compress.options import weight_options as weight_wishes
from nnbuild.cycles.cost_model import pace_of
from nnbuild.frontend.import_options import LAYOUTS, ImportOptions, Numbers
from nnbuild.isa.registry import find_isas
from nnbuild.jobs.accelerator import with_device_driver
from nnbuild.jobs.cores import cores_of, for_cores
from nnbuild.model.graph import Shape
from nnbuild.offload.device import Device
from nnbuild.offload.table import find_device, rules_of
from nnbuild.plan.select import OPTIMIZE, PRICES
from nnbuild.plan.target import Target
from nnbuild.quantize.calibrate import METHODS
from nnbuild.quantize.data import Source
from nnbuild.quantize.quantize import Recipe

BYTES = {"float": 4, "int8": 1, "int16": 1}
"""Bytes per weight."""


@dataclass(frozen=True)
class Options:
    """The options of a compilation. `layers` keeps every layer's output, for comparison; `memory` is the board's
    memory for the arena; `kernels` are (operation, kernel) pairs that override the choice; `swappable` makes weights
    replaceable at run time; `shape` and `io_layout` complete the model's file."""

    model: Path
    board: str = "linux"
    quantize: str = "float"
    calibrate: Path | None = None
    method: str = "minmax"
    keep: tuple[tuple[str, str], ...] = ()
    io: str = "integer"
    bias_correction: bool = True
    accuracy_drop: float | None = None
    prune: str | float | Mapping[str, float] | None = None
    share: str | int | None = None
    weights_bits: str | float | Mapping[str, str | float] | None = None
    flash: str | int | None = None
    """Requests for weights, see `nnbuild.compress`."""
    image_range: tuple[float, float] = (0.0, 1.0)
    optimize: str = "speed"
    price: str = "cycles"
    isa: str | None = None
    threads: int | None = None
    """Number of cores that compute large steps together; None takes the board's table."""
    local: str | None = None
    """Whether each core computes in its own memory, and is checked: off, on or checked; None takes the board's
    table."""
    name: str | None = None
    weights: str = "auto"
    layers: bool = False
    baud: int | None = None
    memory: str | None = None
    kernels: tuple[tuple[str, str], ...] = ()
    swappable: bool = False
    max_instructions: int | None = None
    labels: Path | None = None
    """File of class names, one per line."""
    features: Path | None = None
    """Settings of a front end: the program then takes sound or sensor samples."""
    shape: tuple[tuple[str, Shape], ...] = ()
    io_layout: str = LAYOUTS[0]
    fix: tuple[tuple[str, Numbers], ...] = ()
    """Inputs that are always the same numbers."""
    device: str | None = None
    """An accelerator beside the processor, by name or folder."""
    place: tuple[tuple[str, str], ...] = ()
    """(layer, "cpu" or "device"): where to compute it, regardless of cost."""
    stream: str | None = None
    """The part of the model's window that a step takes: auto or an axis, and perhaps ",hop=N"."""

    @property
    def import_options(self) -> ImportOptions:
        return ImportOptions(dict(self.shape), self.io_layout, dict(self.fix))

    @property
    def of_weights(self) -> WeightWishes:
        return weight_wishes(self.prune, self.share, self.weights_bits, self.flash, self.accuracy_drop)

    @property
    def import_words(self) -> list[str]:
        """What is said of the model's inputs as command-line arguments."""
        words = [word for text in shape_texts(self.shape) for word in ("--shape", text)]
        words += [word for text in fix_texts(self.fix) for word in ("--fix", text)]
        return words + (["--io-layout", self.io_layout] if self.io_layout != LAYOUTS[0] else [])

    @property
    def weight_words(self) -> list[str]:
        """The requests for weights as command-line arguments."""
        given = {
            "--prune": option_text(self.prune),
            "--share": self.share,
            "--weights-bits": option_text(self.weights_bits),
            "--flash": self.flash,
        }
        return [word for name, value in given.items() if value is not None for word in (name, str(value))]


def shape_texts(shapes: Iterable[tuple[str, Shape]]) -> list[str]:
    return [f"{name}={','.join(map(str, sizes))}" for name, sizes in shapes]


def fix_texts(fixed: Iterable[tuple[str, Numbers]]) -> list[str]:
    return [f"{name}={','.join(f'{number:.17g}' for number in numbers)}" for name, numbers in fixed]


CHOICES: Mapping[str, tuple[str, ...]] = {
    "quantize": tuple(BYTES),
    "method": METHODS,
    "io": ("integer", "float"),
    "optimize": OPTIMIZE,
    "price": PRICES,
    "weights": ("auto", "array", "binary"),
    "io_layout": LAYOUTS,
    "local": USES,
}
"""Allowed words of options that are one of a few words."""


def board_of(options: Options) -> Board:
    """The board with the requested line rate, memory and budget; refuses what it cannot have."""
    board = with_context_memory(
        with_baud(for_cores(find(options.board), options.threads), options.baud), options.memory
    )
    board = replace(board, cores=with_local(board.name, board.cores, options.local))
    board = with_instruction_budget(with_device_driver(board, device_of(options, board)), options.max_instructions)
    if board.instruction_budget is not None:
        bounded_entry(board)
    return board


def device_of(options: Options, board: Board) -> Device | None:
    """The requested device, with its driver for the board."""
    if options.device is None:
        if options.place:
            raise UsageError("--place", "it needs a device.", "Name one with --device, or leave it out.")
        return None
    if options.swappable:
        raise UsageError("--swappable", "a device uses its own copies of constants.", "Leave out one of the two.")
    if cores_of(board, options.threads).count > 1:
        cause = "only one core can drive a device."
        raise UsageError(f"--device {options.device}", cause, "Give --threads 1, or leave the device out.")
    device = find_device(options.device).with_driver(board.kinds)
    driver = device.driver()
    if driver is None or not board.kinds & driver.boards:
        names = ", ".join(f"{each.name} ({', '.join(sorted(each.boards))})" for each in device.drivers) or "none"
        which = "no driver is" if driver is None else f"the driver {driver.name!r} is not"
        cause = f"{which} for a board like {board.name!r}."
        step = f"Its drivers: {names}; write one, or choose another board."
        raise UsageError(f"--device {options.device}", cause, step)
    return device


def prefix_of(options: Options) -> str:
    """The C prefix: the given name, or the file's."""
    return of_file(options.model.stem) if options.name is None else identifier(options.name)


def recipe_of(options: Options) -> Recipe:
    source = Source(options.calibrate, options.image_range)
    return Recipe(
        form=options.quantize,
        source=source,
        method=options.method,
        keep=dict(options.keep),
        float_edge=options.io == "float",
        bias_correction=options.bias_correction,
        device=rules_of(find_device(options.device)) if options.device is not None else {},
    )


def target_of(options: Options, board: Board) -> Target:
    """The plan's target, with the requested instruction set or the board's own."""
    best, *others = find_isas(options.isa or board.isa, board.architecture)
    return Target(
        isa=best,
        architecture=board.architecture,
        big_endian=board.big_endian,
        extra_isas=tuple(others),
        features=board.features,
        alignment=board.alignment,
        keep_tensors=options.layers,
        optimize=options.optimize,
        compressed=options.of_weights.changes_weights,
        pace=pace_of(board) if options.price == "cycles" else None,
        float_operation=board.float_operation,
        wide_product=board.wide_product,
        part=board.name,
        host_memory=not board.memories,
        forced_kernels=dict(options.kernels),
        cores=cores_of(board, options.threads),
        swappable=_swappable(options, board),
        bounded=board.instruction_budget is not None,
        device=device_of(options, board),
        forced_places=dict(options.place),
    )


def _swappable(options: Options, board: Board) -> bool:
    if options.swappable and not backend_of(board).exchanges_weights:
        able = ", ".join(each.name for each in boards() if backend_of(each).exchanges_weights)
        cause = f"the weights of a program for {board.name} cannot be replaced at run time."
        raise UsageError("--swappable", cause, f"Leave it out, or choose a board that supports it: {able}.")
    return options.swappable
