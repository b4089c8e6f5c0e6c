"""Counts the bytes of a built model by kind."""

from __future__ import annotations

from pathlib import Path

from nnbuild.backends.firmware.image import used_bytes
from nnbuild.base.errors import CheckFailed
from nnbuild.emit.weights import weights_bytes
from nnbuild.jobs.measured_code import code_bytes, objects_of
from nnbuild.jobs.pipeline import Compiled


def memory_of(compiled: Compiled, program: Path) -> dict[str, int]:
    """`flash_code` is the model's code and constants other than weights, including the library functions it uses;
    omitted for a program that was moved from its build folder."""
    plan = compiled.plan
    objects = objects_of(compiled.board, plan.prefix, program.parent)
    return {
        **({"flash_code": sum(code_bytes(path) for path in objects)} if objects else {}),
        "flash_weights": weights_bytes(plan),
        "arena": plan.arena,
        "state": plan.state,
        **_whole(compiled, program),
    }


def hold_flash(compiled: Compiled, program: Path) -> None:
    """Refuses a program whose model exceeds `--flash`: the search had only estimates of the code's size."""
    flash, memory = compiled.options.of_weights.flash, memory_of(compiled, program)
    if flash is None or "flash_code" not in memory:
        return
    code, weights = memory["flash_code"], memory["flash_weights"]
    more = code + weights - flash
    if more > 0:
        raise CheckFailed(
            f"--flash {flash:,}",
            f"the program takes {code + weights:,}, {more:,} more: its code, {code:,} of them, was estimated.",
            f"Give --flash {flash - more} to leave room for this, or allow more." if more < flash else "Allow more.",
        )


def _whole(compiled: Compiled, program: Path) -> dict[str, int]:
    """The linked firmware's use of each memory of its part, and the memory's size."""
    memories = compiled.board.memories
    if not memories:
        return {}
    used = used_bytes(program, memories)
    return {f"{m.name}_{word}": size for m in memories for word, size in (("used", used[m.name]), ("size", m.length))}
