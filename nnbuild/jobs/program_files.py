"""The source files of a program besides the model's own; refuses a model that does not fit its board."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nnbuild.backends.firmware.layout import DoesNotFit, flash_room
from nnbuild.backends.link_binding import TARGET_FILE, descriptor, descriptor_text
from nnbuild.backends.listen_binding import listening_descriptor, listening_target
from nnbuild.backends.registry import backend_of
from nnbuild.base.errors import NnbuildError, UsageError
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import Compiled, compile_model, precision

OTHER_FORMATS = ("int16", "int8")


def program_files(compiled: Compiled) -> dict[str, bytes]:
    """All files of the program, including the model's. For a model that is too large, suggests options that fit."""
    try:
        files = {**compiled.artifact.files, **backend_of(compiled.board).files(compiled.board, compiled.plan)}
    except DoesNotFit as problem:
        raise DoesNotFit(problem.where, problem.cause, _advice(compiled), problem.over) from None
    if compiled.hearing is None:
        return files
    if TARGET_FILE not in files:
        cause = f"programs for {compiled.board.name} take the network's inputs, not sound."
        raise UsageError("--features", cause, "Leave it out, or choose another board.")
    return files | {TARGET_FILE: listening_target(compiled.plan, compiled.hearing).encode()}


def descriptor_of(compiled: Compiled) -> bytes:
    """The description of the model that its program contains."""
    plan, hearing = compiled.plan, compiled.hearing
    return descriptor_text(descriptor(plan) if hearing is None else listening_descriptor(plan, hearing))


def refuse_other_model(compiled: Compiled, program: Path) -> None:
    """Refuses a program that serves another model; the user's own programs do not identify theirs."""
    if compiled.digest.encode() not in program.read_bytes():
        raise UsageError(str(program), "It contains another model, or was built with other options.", "Build it anew.")


def _advice(compiled: Compiled) -> str:
    room = flash_room(compiled.board, compiled.plan)
    others = _others(compiled) if room is None or room > 0 else []  # no kernels are so small
    fitting = [words for words, options in others if _fits(options)]
    if fitting:
        return f"It would fit with {' or '.join(fitting)}."
    return "No other option makes it fit: use a smaller model or a larger board."


def _others(compiled: Compiled) -> list[tuple[str, Options]]:
    """Other options that may need less memory, with their names."""
    options = compiled.options
    found = []
    if options.layers:
        found.append(("--layers left out", replace(options, layers=False)))
    for optimize in ("ram", "size"):
        if options.optimize != optimize:
            found.append((f"--optimize {optimize}", replace(options, optimize=optimize, layers=False)))
    if precision(compiled.graph) == "float":
        found += [(f"--quantize {form}", replace(options, quantize=form, layers=False)) for form in OTHER_FORMATS]
        if not options.of_weights.given:
            found.append(("--weights-bits 8", replace(options, weights_bits="8", layers=False)))
    elif options.quantize == "int16":
        found.append(("--quantize int8", replace(options, quantize="int8", layers=False)))
    return found


def _fits(options: Options) -> bool:
    try:
        compiled = compile_model(options)
        backend_of(compiled.board).files(compiled.board, compiled.plan)
    except NnbuildError:
        return False
    return True
