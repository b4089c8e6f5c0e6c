"""The multicore run-time of a library: its C, and how CMake and SCons build it with the user's compiler."""

from __future__ import annotations

from collections.abc import Mapping

from nnbuild import __version__
from nnbuild.backends.cores import CORES
from nnbuild.base.paths import FIRMWARE
from nnbuild.base.template import fill
from nnbuild.board.board import Board
from nnbuild.emit.artifact import Artifact
from nnbuild.plan.plan import Plan

ANYWHERE = ("posix", "openmp", "freertos")
"""Run-times that need nothing from a board."""
_BARE, _CORTEX_M = "platform/bare/nn_bare.h", "arch/cortex_m/nn_cortex_m.h"
_ARM = ("cores/nn_cores_arm.h", _BARE, _CORTEX_M)
HEADERS = {"rv": (_BARE,), "sse200": _ARM, "rp2": (*_ARM, "link/nn_platform.h")}
"""Files of firmware/ that the others include."""
TOLD = (
    *("NN_CLINT_BASE", "NN_CLINT_HERTZ", "NN_CORES_TIMER", "NN_CPU_HERTZ"),
    *("NN_PSM_BASE", "NN_PSM_CORE"),
)
"""Numbers that they need from a board."""


def run_time(board: Board, plan: Plan, artifact: Artifact) -> dict[str, bytes]:
    own = board.cores.runtime
    assert own is not None, "a board of several cores names its run-time"
    each = dict.fromkeys((own, *ANYWHERE))
    files = {f"cores/nn_cores_{name}.c": CORES / f"nn_cores_{name}.c" for name in each}
    files |= {f"cores/{name}": CORES / name for name in ("nn_cores.c", "nn_cores_port.h")}
    files |= {f"cores/{name.rpartition('/')[2]}": FIRMWARE / name for name in HEADERS.get(own, ())}
    if board.cores.computes_locally:
        local = ("nn_local.c", "nn_local.h", *(f"nn_local_{name}.c" for name in (own, "posix")))
        files |= {f"cores/{name}": CORES / name for name in local if (CORES / name).is_file()}
    files["include/nn_cores.h"] = CORES / "nn_cores.h"
    sources = [f"src/{name}" for name in artifact.files if name.endswith((".c", ".S"))]
    numbers = told(board)
    values = {
        "PREFIX": plan.prefix,
        "VERSION": __version__,
        "LANGUAGES": "C ASM" if any(name.endswith(".S") for name in sources) else "C",
        "RUNTIME": own,
        "RUNTIMES": ", ".join(each),
        "CORES": str(board.cores.count),
        "BOUND": str(board.cores.bound),
        "CMAKE_SOURCES": "\n".join(f"  {name}" for name in sources),
        "SCONS_SOURCES": "\n".join(f'    "{name}",' for name in sources) + "\n",
        "DEFINES": " ".join(f'"{name}={value}u"' for name, value in numbers.items()),
        "SCONS_DEFINES": "".join(f', "{name}": "{value}u"' for name, value in numbers.items()),
    }
    builds = {name: fill(f"library/{name}", values).encode() for name in ("CMakeLists.txt", "SConscript")}
    return {name: path.read_bytes() for name, path in files.items()} | builds


def told(board: Board) -> Mapping[str, int]:
    numbers = board.firmware.defines if board.firmware is not None else {}
    own = board.cores.local if board.cores.computes_locally else None
    local = {"NN_LOCAL_ORIGIN": own.origin, "NN_LOCAL_BYTES": own.length} if own is not None else {}
    return {name: numbers[name] for name in TOLD if name in numbers} | local
