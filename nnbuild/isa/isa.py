"""What there is to say of an instruction set, as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Isa:
    """An instruction set that kernels are written for.

    features: what kernels may ask for in their `needs`: its own name, and those of the sets it contains.
    architectures: the boards' architectures that may have it; none named means all.
    guard: where the compiler has its spellings; elsewhere their meanings are compiled.
    includes: the compiler's own headers that its spellings need.
    target: what a function's `target` attribute must name, so that the C compiles without special flags.
    cpu_flags: what Linux calls the processor's abilities that it takes.
    gcc_options: optimizations of gcc that harm kernels of this set, or help them, as gcc's pragma spells them.
    options_where: the preprocessor condition under which these do so for portable kernels too; none means always.
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
    """A set that has all of another one; what is given is added to what the base has."""
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
