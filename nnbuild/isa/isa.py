"""The description of an instruction set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Isa:
    """An instruction set that kernels are written for.

    features: what kernels may name in their `needs`: the set's name, and those of the sets it contains.
    architectures: the boards' architectures that may have it; empty means all.
    guard: the condition for its spellings; elsewhere their meanings are compiled.
    includes: the compiler's headers that its spellings need.
    target: the argument of a function's `target` attribute, so that the C compiles without special flags.
    cpu_flags: Linux' names of the processor features that it needs.
    gcc_options: optimizations of gcc that harm kernels of this set, or help them, in the notation of gcc's pragma.
    options_where: the preprocessor condition under which these affect portable kernels too; empty means always.
    """

    name: str
    summary: str
    features: frozenset[str] = frozenset()
    architectures: tuple[str, ...] = ()
    guard: str = ""
    includes: tuple[str, ...] = ()
    target: str = ""
    cpu_flags: tuple[str, ...] = ()
    gcc_options: tuple[str, ...] = ()
    options_where: str = ""


def extended(base: Isa, name: str, summary: str, **changes: tuple[str, ...] | str) -> Isa:
    """A superset of another set; the changes are added to the base's values."""
    return Isa(
        name=name,
        summary=summary,
        features=base.features | {name},
        architectures=base.architectures,
        guard=base.guard,
        includes=base.includes,
        target=",".join(part for part in (base.target, str(changes.get("target", ""))) if part),
        cpu_flags=(*base.cpu_flags, *changes.get("cpu_flags", ())),
        gcc_options=(*base.gcc_options, *changes.get("gcc_options", ())),
    )
