"""What a plan is made for: the board's and the user's requirements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nnbuild.base.cost_model import Pace
from nnbuild.isa.c99 import C99
from nnbuild.isa.isa import Isa
from nnbuild.offload.device import Device
from nnbuild.plan.cores import ALONE, Cores


@dataclass(frozen=True)
class Target:
    """What the plan must know of the board and of the user's options.

    architecture: the board's, which determines code size.
    big_endian: the order of bytes in its memory.
    features: what the board has beyond its instruction set, such as a floating-point unit.
    keep_tensors: no chains, and every tensor stays until the end of the run, for inspection.
    pace: cycles that instructions and memory cost on the part; without it, kernels are priced by instructions.
    float_operation: instructions of an addition or multiplication of floats.
    wide_product: instructions of a product of 64 bits.
    part: the name under which costs measured on it are stored.
    chunked: a step is computed in several calls, so that others can run between them.
    max_ram: bytes that the arena should not exceed; kernels are chosen accordingly.
    cores: those that compute a step together.
    max_flash: bytes that constants and estimated code should not exceed.
    min_size: with optimize=size, trade no bytes for time.
    compact: compilers are told to prefer few bytes to speed.
    compressed: weights are changed to take fewer bytes, so with optimize=size bytes count more than otherwise.
    host_memory: constants lie in a PC's memory, not in a part's flash.
    forced_kernels: operation, or first operation of a chain -> the kernel to take.
    extra_isas: further sets, for which every step gets another version; the program picks the best one at run time.
    device: the device beside the processor, which computes what it can do faster.
    forced_places: operation -> where it must be computed: "device" or "cpu".
    bounded: the instructions of a run must have a bound that can be proved.
    swappable: every step takes a pointer to the weights, so that they can be exchanged between runs.
    """

    isa: Isa = C99
    architecture: str = "native"
    big_endian: bool = False
    features: frozenset[str] = frozenset()
    alignment: int = 16
    keep_tensors: bool = False
    optimize: str = "speed"
    pace: Pace | None = None
    float_operation: float = 1
    wide_product: float = 1
    part: str = ""
    chunked: bool = False
    max_ram: int | None = None
    max_flash: int | None = None
    min_size: bool = False
    compact: bool = False
    compressed: bool = False
    host_memory: bool = False
    forced_kernels: Mapping[str, str] = field(default_factory=dict)
    extra_isas: tuple[Isa, ...] = ()
    cores: Cores = ALONE
    swappable: bool = False
    bounded: bool = False
    device: Device | None = None
    forced_places: Mapping[str, str] = field(default_factory=dict)

    @property
    def in_block(self) -> bool:
        """Whether kernels take a pointer to their constants, because there are copies or replacements."""
        return self.swappable or self.cores.local is not None

    @property
    def table(self) -> str:
        """Name of the table of measured costs: a part's cycles, or a set's instructions."""
        return self.part if self.pace is not None else self.isa.name
