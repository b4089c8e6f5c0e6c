"""How many bytes a built model takes, and of what kind."""

from __future__ import annotations

from pathlib import Path

from elftools.elf.elffile import ELFFile

from nnbuild.backends.firmware.image import used_bytes
from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import CheckFailed
from nnbuild.emit.weights import weights_bytes
from nnbuild.jobs.pipeline import Compiled

CODE = (".text", ".rodata")


def memory_of(compiled: Compiled, program: Path) -> dict[str, int]:
    """`flash_code` is the model's own text and constants other than weights, with the vendored functions it uses; it is
    left out for a program that was taken out of the folder it was built in."""
    plan, folder = compiled.plan, program.parent
    stems = [name.format(prefix=plan.prefix) for name in backend_of(compiled.board).stack.objects]
    objects = [path for path in (folder / f"{stem}.o" for stem in stems) if path.is_file()]
    return {
        **({"flash_code": sum(code_bytes(path) for path in objects)} if objects else {}),
        "flash_weights": weights_bytes(plan),
        "arena": plan.arena,
        "state": plan.state,
        **_whole(compiled, program),
    }


def hold_flash(compiled: Compiled, program: Path) -> None:
    """Refuses a program whose model takes more than `--flash` gives it: the search had only estimates of code."""
    flash, memory = compiled.options.of_weights.flash, memory_of(compiled, program)
    if flash is None or "flash_code" not in memory:
        return
    code, weights = memory["flash_code"], memory["flash_weights"]
    more = code + weights - flash
    if more > 0:
        raise CheckFailed(
            f"--flash {flash:,}",
            f"the program takes {code + weights:,}, {more:,} more: its code, {code:,} of them, was estimated.",
            f"Give --flash {flash - more} to leave room for this." if more < flash else "Allow more.",
        )


def _whole(compiled: Compiled, program: Path) -> dict[str, int]:
    """What the linked firmware takes of each memory of its part, and how large that is."""
    memories = compiled.board.memories
    if not memories:
        return {}
    used = used_bytes(program, memories)
    return {f"{m.name}_{word}": size for m in memories for word, size in (("used", used[m.name]), ("size", m.length))}


def code_bytes(path: Path) -> int:
    with path.open("rb") as file:
        sections = ELFFile(file).iter_sections()
        return sum(int(section["sh_size"]) for section in sections if section.name.startswith(CODE))
