"""Prints the call of a step's kernel, with the planned addresses and the version that the processor supports."""

from __future__ import annotations

from nnbuild.emit.core_memory import local_calls
from nnbuild.emit.text import SIZES, pointer_to
from nnbuild.plan.plan import Location, Plan, Step, Version


def calls(plan: Plan, step: Step, part: bool = False) -> list[str]:
    """The lines within a function; none for steps of the device. `part` calls the kernel for the part `index` only."""
    if step.tiling is not None:
        return local_calls(step, part)
    return [] if step.on_device else kernel_calls(plan, step, part)


def kernel_calls(plan: Plan, step: Step, part: bool = False) -> list[str]:
    """The same with the processor's kernels."""
    if len(step.versions) == 1:
        return [f"        {_call(plan, step, step.versions[0], part)}"]
    lines = ["        switch (context->isa) {"]
    for level, version in reversed(list(enumerate(reversed(step.versions)))):
        lines.append(f"        case {level}:" if level else "        default:")
        lines.append(f"            {_call(plan, step, version, part)}\n            break;")
    return [*lines, "        }"]


def borders_name(version: Version) -> str:
    """Name of the table of a version's parts."""
    return f"{version.function}_borders"


def _call(plan: Plan, step: Step, version: Version, part: bool) -> str:
    arguments = [pointer_to(plan.locations[name], plan.tensor(name).dtype) for name in (*step.inputs, *step.outputs)]
    demand, extent = version.demand, step.extent(version)
    if demand.scratch:
        scratch = pointer_to(Location("arena", step.scratch or 0, demand.scratch), demand.scratch_type)
        apart = step.scratch_bytes // SIZES[demand.scratch_type]
        arguments.append(f"{scratch} + index * {apart}" if part else scratch)
    if version.takes_weights:
        arguments.append(f"{plan.prefix}_weights")
    bounds = f"{borders_name(version)}[index], {borders_name(version)}[index + 1]" if part else f"0, {extent}"
    return f"{version.function}({', '.join(arguments)}, {bounds});"
