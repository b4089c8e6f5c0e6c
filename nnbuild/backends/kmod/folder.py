"""The kernel module's folder: `make` turns it into nn_<model>.ko; it is self-contained and also ready for DKMS."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nnbuild import __version__
from nnbuild.backends.kmod.api import api_header, api_source
from nnbuild.backends.kmod.bridge import bridge, golden_source, needs_fpu
from nnbuild.backends.kmod.weights import weights_file
from nnbuild.base.errors import UsageError
from nnbuild.base.paths import FIRMWARE
from nnbuild.board.board import Board
from nnbuild.isa.c99 import C99
from nnbuild.isa.registry import fits, isas
from nnbuild.isa.riscv import RV32IM
from nnbuild.model.graph import Graph
from nnbuild.plan.plan import Plan
from nnbuild.plan.target import Target

GLUE = FIRMWARE / "kmod"
LINK = FIRMWARE / "link"
SHIMS = "kernel_include"
LINK_SOURCES = ("nn_frame.c", "nn_link.c")
LINK_HEADERS = ("nn_frame.h", "nn_link.h", "nn_platform.h", "nn_target.h")
PLAIN = C99.name
ISA_FLAGS = {"sse2": "", "avx2_fma": "-mavx2 -mfma -mbmi2", "neon": "", "neon_dotprod": "", "neon_i8mm": ""}
"""Instruction sets that the glue can query the kernel for, and their compiler flags for the model's files."""
KBUILD, MAKEFILE, DKMS = "Kbuild", "Makefile", "dkms.conf"
LONGEST_NAME = 40
"""Longest name of a model: the kernel allows 55 characters for a module, and symbols need some of them."""


def module_name(prefix: str) -> str:
    return f"nn_{prefix}"


def module_file(prefix: str) -> str:
    return f"{module_name(prefix)}.ko"


def glue_sources() -> list[str]:
    return sorted(path.name for path in GLUE.glob("*.c"))


def carried_files() -> dict[str, Path]:
    """The files that are the same in every module, by their name there."""
    files = {path.name: path for path in sorted(GLUE.glob("*.[ch]"))}
    files |= {name: LINK / name for name in (*LINK_SOURCES, *LINK_HEADERS)}
    return files | {f"{SHIMS}/{path.name}": path for path in sorted((GLUE / SHIMS).glob("*.h"))}


def generated_names(prefix: str) -> list[str]:
    return [f"{prefix}_bridge.c", f"{prefix}_golden.c", f"{prefix}_kmod.c", f"{prefix}_kmod.h"]


def weights_name(prefix: str) -> str:
    return f"{prefix}.nnw"


def file_names(board: Board, prefix: str) -> list[str]:
    """The files besides the model's own, known before the model is read."""
    return [*generated_names(prefix), *carried_files(), KBUILD, MAKEFILE, DKMS]


def files(board: Board, plan: Plan) -> dict[str, bytes]:
    p = plan.prefix
    _refuse_long_names(p)
    texts = {
        f"{p}_bridge.c": bridge(plan),
        f"{p}_golden.c": golden_source(plan),
        f"{p}_kmod.c": api_source(plan),
        f"{p}_kmod.h": api_header(plan),
        KBUILD: kbuild(plan),
        MAKEFILE: makefile(),
        DKMS: dkms(p),
    }
    carried = {name: path.read_bytes() for name, path in carried_files().items()}
    exchanged = {weights_name(p): weights_file(plan)} if plan.swappable else {}
    return {name: text.encode() for name, text in texts.items()} | carried | exchanged


def _refuse_long_names(prefix: str) -> None:
    if len(prefix) > LONGEST_NAME:
        cause = f"a module's name may not be longer than {LONGEST_NAME + 3} characters."
        raise UsageError(f"model {prefix!r}", cause, "Give the model another name, with name= for scons and --name.")


def kernel_target(graph: Graph, target: Target, asked: str | None) -> Target:
    """The target for a kernel module: steps may be computed in chunks. An integer model uses only integer registers,
    which are allowed everywhere, unless the user named another set: by the C for RISC-V without vectors, which takes
    half the time of that for any processor, but where weights are exchangeable: it may depend on their values."""
    served = [PLAIN, *(name for name in ISA_FLAGS if fits(isas()[name], target.architecture))]
    if target.extra_isas or target.isa.name not in served:
        cause = "a kernel module needs an instruction set that it can query the kernel for."
        raise UsageError(f"isa {asked!r}", cause, f"Name one of {', '.join(served)}.")
    floats = any(tensor.dtype == "float32" for tensor in graph.tensors.values())
    isa = C99 if asked is None and not floats else target.isa
    more: frozenset[str] = RV32IM.features if isa == C99 and not target.swappable else frozenset()
    return replace(target, isa=isa, features=target.features | more, chunked=True)


def kbuild(plan: Plan) -> str:
    p, fpu = plan.prefix, needs_fpu(plan)
    model = [f"{p}_kernels.o", f"{p}_weights.o", f"{p}_bridge.o"]
    glue = [f"{p}_kmod.o", f"{p}_golden.o", *(Path(name).stem + ".o" for name in (*LINK_SOURCES, *glue_sources()))]
    defines = [f"-DNN_STEPS={max(1, len(plan.steps))}", f"-DNN_DEVICE='\"{module_name(p)}\"'"]
    defines += ["-DNN_FPU", f"-DNN_ISA_{plan.isa.name.upper()}"] if fpu else []
    defines += ["-DNN_SWAPPABLE"] if plan.swappable else []
    lines = [
        f"# Builds {module_file(p)}; printed by nnbuild {__version__}.",
        f"obj-m := {module_name(p)}.o",
        f"{module_name(p)}-y := {' '.join([*model, *glue])}",
        "",
        "# NN_EXTRA is for tests that build a module with a fault in it on purpose.",
        f"ccflags-y := -I$(src) {' '.join(defines)} -Werror=frame-larger-than=1024 $(NN_EXTRA)",
        "ccflags-$(CONFIG_CC_IS_GCC) += -fstack-usage -fcallgraph-info=su,da",
        "# The kernel makes functions traceable by changing their entries, which then overwrite x9 on arm64. gcc must",
        "# not rely on what it sees static functions leave unchanged.",
        "ccflags-$(CONFIG_CC_IS_GCC) += -fno-ipa-ra",
        "asflags-y := -I$(src)",
        "",
        "# The model's own files see the compiler's headers and none of the kernel's.",
        "nn-model := -O2 -ffreestanding -ffp-contract=off -Wno-declaration-after-statement \\",
        "    -isystem $(shell $(CC) -print-file-name=include) -D_MM_MALLOC_H_INCLUDED \\",
        "    -Werror=frame-larger-than=2048 $(NN_MODEL_EXTRA)",
        *_fpu_lines(plan),
        *(f"CFLAGS_{name} := $(nn-model)" + (" $(nn-fpu)" if fpu else "") for name in model),
        *(f"CFLAGS_REMOVE_{name} := $(nn-no-fpu)" for name in model if fpu),
        "",
        "# The rest sees the kernel's headers only.",
        *(f"CFLAGS_{name} := -I$(src)/{SHIMS}" for name in glue),
    ]
    return "\n".join(lines) + "\n"


def _fpu_lines(plan: Plan) -> list[str]:
    """Kernels from 6.10 on define how floating-point code is compiled. In any case the stack alignment that a function
    may expect of its caller stays the kernel's, 8 bytes: the compiler realigns where it needs more."""
    if not needs_fpu(plan):
        return ["# The model computes with integers alone: no floating point anywhere."]
    return [
        "ifdef CONFIG_X86",
        f"nn-fpu := $(or $(CC_FLAGS_FPU),-mhard-float -msse -msse2) {ISA_FLAGS.get(plan.isa.name, '')}".rstrip(),
        "nn-no-fpu := $(CC_FLAGS_NO_FPU)",
        "else",
        "nn-fpu := $(CC_FLAGS_FPU)",
        "nn-no-fpu := $(or $(CC_FLAGS_NO_FPU),-mgeneral-regs-only)",
        "endif",
    ]


def makefile() -> str:
    return """\
# make                    for the kernel that runs
# make KDIR=/path         for another one, whose headers lie there
KDIR ?= /lib/modules/$(shell uname -r)/build

# Where the kernel was built with a newer pahole than there is here, or none is, type information is left out.
all clean:
\t$(MAKE) -C $(KDIR) M=$(CURDIR) CONFIG_DEBUG_INFO_BTF_MODULES= $(if $(filter clean,$@),clean,modules)

.PHONY: all clean
"""


def dkms(prefix: str) -> str:
    name = module_name(prefix)
    return f"""\
PACKAGE_NAME="{name}"
PACKAGE_VERSION="{__version__}"
BUILT_MODULE_NAME[0]="{name}"
DEST_MODULE_LOCATION[0]="/updates/dkms"
MAKE[0]="make KDIR=$kernel_source_dir"
CLEAN="make KDIR=$kernel_source_dir clean"
AUTOINSTALL="yes"
"""
