"""Contiguous floats one by one, several in every turn of a loop, through pointers: for cores whose loads of floats have
no index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from nnbuild.base.writer import Writer
from nnbuild.kernels.contract import Demand, K, Names, only_float
from nnbuild.kernels.loops.strided import Elements, Loops
from nnbuild.ops.site import Site

TURN = 2


@dataclass(frozen=True)
class Turns(Elements[K]):
    """Of operations whose operands are their inputs and constants in the order of `names`."""

    def accepts(self, site: Site[K]) -> str | None:
        walks = self.walks(site)
        return only_float(site) or walks.no_vectors(TURN) or ("it has few elements" if walks.sizes[-1] < TURN else None)

    def demand(self, site: Site[K]) -> Demand:
        return self.demanded(site, TURN if _is_even(self.walks(site)) else 1)

    def emit(self, w: Writer, site: Site[K], names: Names) -> None:
        walks = self.walks(site)

        def run(at: list[str], length: str, count: int) -> None:
            steps = [walk.strides[-1] for walk in walks.walks]
            held = _pointers(w, site, names, at)
            moving = {held.outputs[0]: 1, **dict(zip(_operands(site, held), steps[1:], strict=True))}

            def elements(number: int) -> None:
                for place in w.each(range(number)):
                    self.element(w, self.floats, site, held, [str(place * step) for step in steps], 1)
                for pointer, step in moving.items():
                    if step:
                        w(f"{pointer} += {number * step};")

            with w.loop("turn", f"{length} / {TURN}" if length else "end - begin", trips=count // TURN):
                elements(TURN)
            if length and (not length.isdigit() or count % TURN):
                with w.loop("rest", 1 if length.isdigit() else f"{length} % {TURN}", trips=count % TURN):
                    elements(1)

        if _is_even(walks):  # whole turns are work items
            at = [f"{walk.start} + begin * {TURN * walk.strides[-1]}" for walk in walks.walks]
            run(at, "", walks.extent)
        else:
            walks.runs(w, run)


def _is_even(walks: Loops) -> bool:
    return len(walks.sizes) == 1 and walks.extent % TURN == 0


def _operands(site: Site[K], names: Names) -> Iterator[str]:
    """The operands in the order of their walks: a constant "left" is the first one."""
    held = [names.packed[role] for role in site.constants]
    yield from (*held, *names.inputs) if "left" in site.constants else (*names.inputs, *held)


def _pointers(w: Writer, site: Site[K], names: Names, at: list[str]) -> Names:
    """Pointers that move, in place of the operands and the output; a tensor that is both operands has one."""
    moving: dict[str, str] = {}
    for operand, place in zip(_operands(site, names), at[1:], strict=True):
        if operand not in moving:
            moving[operand] = f"from{len(moving)}"
            w(f"const float *{moving[operand]} = {operand} + {place};")
    w(f"float *to = {names.outputs[0]} + {at[0]};")
    packed = {role: moving[name] for role, name in names.packed.items() if name in moving}
    return replace(names, inputs=tuple(moving[name] for name in names.inputs), outputs=("to",), packed=packed)
