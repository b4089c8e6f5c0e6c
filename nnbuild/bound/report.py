"""The bound as text and as JSON."""

from __future__ import annotations

from typing import Any

from nnbuild.bound.walk import Bound

SHOWN = 25


def bound_text(bound: Bound) -> str:
    lines = [f"{bound.entry}: at most {bound.instructions:,} instructions for every input"]
    if bound.cycles is not None:
        about = "zero wait states, interrupts excluded"
        lines.append(f"{bound.entry}: at most {bound.cycles:,} cycles on a {bound.core} at {about}")
    if bound.turns > 1:
        lines.append(f"{bound.turns} runs rotate through slots of the state; the bound is for the longest")
    parts = sorted(bound.parts, key=lambda part: -part.total)
    width = max(len(f"{parts[0].total:,}"), len("in all"))
    lines.append(f"  {'in all':>{width}}  {'calls':>7}  {'at most':>{width}}  function, with its callees")
    for part in parts[:SHOWN]:
        lines.append(f"  {part.total:>{width},}  {part.calls:>7,}  {part.worst:>{width},}  {part.name}")
    if len(parts) > SHOWN:
        lines.append(f"  and {len(parts) - SHOWN} more")
    places = f"{bound.branches} place" + ("s" if bound.branches != 1 else "")
    lines.append(f"In {places}, branches depend on inputs; the longer path counts there.")
    return "\n".join(lines) + "\n"


def bound_json(bound: Bound) -> dict[str, Any]:
    return {
        "entry": bound.entry,
        "instructions": bound.instructions,
        "cycles": bound.cycles,
        "core": bound.core or None,
        "turns": bound.turns,
        "branches": bound.branches,
        "functions": [part._asdict() for part in bound.parts],
        "loops": [loop._asdict() for loop in bound.loops],
        "jumps": [{"address": address, "targets": list(targets)} for address, targets in bound.jumps],
        "irregular": list(bound.irregular),
    }
