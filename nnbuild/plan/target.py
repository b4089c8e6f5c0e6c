"""What a plan is made for."""

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
    """What the plan must know of the board and of the user's wishes.

    architecture: the board's, which says how many bytes code takes.
    features: what the board has beyond its instruction set, such as a unit for floats.
    apart: computes every operation by itself and keeps every tensor until the end of the run, to be looked at.
    pace: what instructions and memory cost on the part; without it, kernels are priced by instructions.
    part: the name under which costs that were measured on it are kept.
    pieces: a step is computed in several calls, so that others can run between them.
    room: bytes that the arena should not exceed; kernels are chosen for that where they have to be.
    cores: those that compute a step together.
    weights: bytes that the constants should not exceed.
    fewest: with optimize=size none is given for time.
    ample: constants lie in the memory of a PC, not in a part's flash.
    kernels: the kernel to take for the operation, or the chain that begins with it, of this name.
    also: further sets, for which every step gets a version of its own; the best that the processor has is found out
    when the program runs.
    device: the device beside the processor, which computes what it does sooner; `placed` names operations that are to
    be computed by it, or not: "device" or "cpu".
    swappable: every step is told where the weights lie, so that a run can be given others.
    """

    isa: Isa = C99
    architecture: str = "native"
    features: frozenset[str] = frozenset()
    alignment: int = 16
    keep_tensors: bool = False
    optimize: str = "speed"
    pace: Pace | None = None
    part: str = ""
    chunked: bool = False
    max_ram: int | None = None
    max_weights: int | None = None
    min_size: bool = False
    host_memory: bool = False
    forced_kernels: Mapping[str, str] = field(default_factory=dict)
    extra_isas: tuple[Isa, ...] = ()
    cores: Cores = ALONE
    swappable: bool = False
    device: Device | None = None
    forced_places: Mapping[str, str] = field(default_factory=dict)

    @property
    def in_block(self) -> bool:
        """Whether kernels are told where their constants lie, of which there may be copies or others."""
        return self.swappable or self.cores.local is not None

    @property
    def table(self) -> str:
        """The table of measured costs: cycles of a part, or instructions of a set."""
        return self.part if self.pace is not None else self.isa.name
