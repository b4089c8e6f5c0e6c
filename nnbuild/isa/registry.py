"""Finds all instruction sets by listing this package, and those that this PC has."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType

from nnbuild.base.errors import UsageError
from nnbuild.isa.isa import Isa
from nnbuild.isa.vectors import Vectors

X86 = ("avx512_vbmi", "avx512_vnni", "avx512", "avx_vnni", "avx2_fma", "ssse3", "sse2")
PREFERRED = (*X86, "neon_i8mm", "neon_dotprod", "neon", "rvv256", "rvv", "zve32x_256", "zve32x")
"""The order in which `native` chooses among the sets of this PC, best first."""

ALIASES = {"avx2": "avx2_fma"}
"""Short names of sets: all but the first few processors with AVX2 have FMA, too."""


_added: list[tuple[Isa, Vectors]] = []


@cache
def _modules() -> tuple[ModuleType, ...]:
    folder = Path(__file__).parent
    return tuple(importlib.import_module(f"{__package__}.{m.name}") for m in pkgutil.iter_modules([str(folder)]))


@cache
def _isas() -> tuple[Isa, ...]:
    return tuple(isa for module in _modules() for isa in getattr(module, "ISAS", ()))


@cache
def _with(more: tuple[Vectors, ...]) -> tuple[Vectors, ...]:
    found = [vectors for module in _modules() for vectors in getattr(module, "VECTORS", ())]
    return tuple(sorted([*found, *more], key=lambda vectors: (vectors.lanes, vectors.name)))


def isas() -> dict[str, Isa]:
    return {isa.name: isa for isa in (*_isas(), *(isa for isa, _ in _added))}


def vector_sets() -> tuple[Vectors, ...]:
    """All vector sets, small ones first: the VECTORS of each file."""
    return _with(tuple(vectors for _, vectors in _added))


@contextmanager
def added(isa: Isa, vectors: Vectors) -> Iterator[None]:
    """Registers a set that has no file here."""
    _added.append((isa, vectors))
    try:
        yield
    finally:
        _added.remove((isa, vectors))


def find(name: str, architecture: str) -> Isa:
    """The set of this name for a board of this architecture. `native` is the best set of this PC."""
    known, name = isas(), ALIASES.get(name, name)
    if name == "native":
        return known[native()]
    if name == "baseline":
        return known[baseline()]
    fitting = [isa.name for isa in known.values() if fits(isa, architecture)]
    if name in fitting:
        return known[name]
    cause = f"boards of architecture {architecture} have no such instructions." if name in known else "there is none."
    near = difflib.get_close_matches(name, fitting, 1, 0.4)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise UsageError(f"isa {name!r}", cause, f"{hint}For this board: {', '.join(fitting)}.")


def find_isas(names: str, architecture: str) -> tuple[Isa, ...]:
    """One set, or several separated by commas, of which the program selects the best at run time: best first."""
    found = {isa.name: isa for isa in (find(name.strip(), architecture) for name in names.split(","))}
    unknown = [name for name in found if name not in PREFERRED]
    if len(found) > 1 and unknown:
        raise UsageError(
            f"isa {names!r}",
            f"a program cannot detect whether its processor has {unknown[0]}.",
            f"Name one set, or several of {', '.join(PREFERRED)}.",
        )
    ordered = sorted(found.values(), key=lambda isa: PREFERRED.index(isa.name) if isa.name in PREFERRED else 0)
    for isa in ordered[:-1]:
        if not {*isa.cpu_flags} - {*ordered[-1].cpu_flags}:
            cause = f"a program cannot tell {isa.name} from {ordered[-1].name} at run time."
            raise UsageError(f"isa {names!r}", cause, "Name only one of them.")
    return tuple(ordered)


def fits(isa: Isa, architecture: str) -> bool:
    here = "aarch64" if architecture == "native" and is_arm64() else architecture
    return not isa.architectures or here in isa.architectures


@cache
def cpu_flags() -> frozenset[str]:
    """The flags that Linux reports for this PC's processor; elsewhere none, so portable code is used."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return frozenset()
    named = (line.split(":")[1].split() for line in lines if line.startswith(("flags", "Features")))
    return frozenset(next(named, []))


def native() -> str:
    for name in PREFERRED:
        isa = isas().get(name)
        if isa is not None and fits(isa, "native") and cpu_flags() >= set(isa.cpu_flags):
            return name
    return baseline()


def baseline() -> str:
    """The set that every PC of this kind can run."""
    return "sse2" if is_x86() and "sse2" in isas() else "neon" if is_arm64() else "c99"


def is_x86() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")


def is_arm64() -> bool:
    return platform.machine().lower() in ("aarch64", "arm64")
