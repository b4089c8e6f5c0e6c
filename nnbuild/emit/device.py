"""<model>_device.c: the device's program, and the processor's fallback if the device fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nnbuild.base.literals import array_lines
from nnbuild.base.paths import FIRMWARE
from nnbuild.emit.call import kernel_calls
from nnbuild.emit.text import comment_safe
from nnbuild.offload.device import Device
from nnbuild.plan.device_program import DeviceProgram, DriverAction, SubmitTask, WriteConstants
from nnbuild.plan.device_tasks import Copy
from nnbuild.plan.plan import Plan

API = ("nn_device", "nn_offload")


def device_file(plan: Plan, program: DeviceProgram) -> str:
    parts = [
        f"/* {comment_safe(plan.graph.name)}: what {comment_safe(program.device.name)} computes, and how. */",
        f'#include "{plan.prefix}_private.h"\n\n#include "nn_offload.h"\n',
        *(_tables(plan, program) if program.tasks else []),
        _step(plan, program),
    ]
    return "\n".join(parts)


def acts_at(program: DeviceProgram | None, step: int) -> bool:
    """Whether the device's driver acts at a step."""
    return program is not None and step in program.done


def _tables(plan: Plan, program: DeviceProgram) -> Iterator[str]:
    size = program.device.descriptor
    data = b"".join(task.descriptor for task in program.tasks)
    yield "/* The descriptors, addresses included: one for each task. */"
    yield f"static const uint8_t descriptors[{len(program.tasks)} * {size}] = {{"
    for number, task in enumerate(program.tasks):
        yield f"    /* {number}: {task.item.task.operation} for {comment_safe(task.item.task.name)} */"
        yield from _bytes(data[number * size : (number + 1) * size])
    yield "};\n"
    if program.constants:
        yield "/* Weights, biases and scales in the order in which the device reads them. */"
        yield f"static const uint8_t constants[{len(program.constants)}] = {{"
        yield from _bytes(program.constants)
        yield "};\n"
    rows, first = _actions(plan, program)
    yield "/* {kind, device address, arena offset, count, bytes, pitch or deadline, arena pitch} */"
    yield f"static const nn_offload_action actions[{len(rows)}] = {{"
    yield from (f"    {row}," for row in rows)
    yield "};\n"
    yield "/* Index of each step's first action. */"
    yield f"static const uint32_t begins[{len(first)}] = {{"
    yield from ("    " + line for line in array_lines(np.array(first, np.uint32)))
    yield "};\n"
    resident = len(program.constants) if program.resident else 0
    held = "constants" if program.constants else "0"
    yield "static const nn_offload_program program = {"
    yield f"    actions, descriptors, {size}, {held}, {resident}, {program.address}"
    yield "};\n"


def _bytes(data: bytes) -> Iterator[str]:
    yield from ("    " + line for line in array_lines(np.frombuffer(data, np.uint8)))


def _actions(plan: Plan, program: DeviceProgram) -> tuple[list[str], list[int]]:
    begins = {region.region.first for region in program.regions}
    rows: list[str] = []
    first = [0]
    for step in range(len(plan.steps)):
        rows += ["{NN_OFFLOAD_BEGIN, 0, 0, 0, 0, 0, 0}"] if step in begins else []
        rows += [_row(plan, done) for done in program.done.get(step, ())]
        first.append(len(rows))
    return rows, first


def _row(plan: Plan, done: DriverAction) -> str:
    if isinstance(done, Copy):
        kind = "WRITE" if done.to_device else "READ"
        place = plan.locations[done.tensor].offset + done.offset
        bytes_ = f"{done.channels}, {done.pitch}, {done.apart}"
        return f"{{NN_OFFLOAD_{kind}, {done.address}, {place}, {done.pixels}, {bytes_}}}"
    if isinstance(done, WriteConstants):
        return f"{{NN_OFFLOAD_CONSTANTS, {done.address}, {done.offset}, 1, {done.size}, 0, 0}}"
    if isinstance(done, SubmitTask):
        return f"{{NN_OFFLOAD_SUBMIT, 0, {done.task}, {done.task & 0xFFFF}, 0, {done.deadline}, 0}}"
    return f"{{NN_OFFLOAD_WAIT, 0, 0, {done.unfinished}, 0, {done.deadline}, 0}}"


def _step(plan: Plan, program: DeviceProgram) -> str:
    p = plan.prefix
    if not program.tasks:
        head = f"int {p}_device_step({p}_context *context, unsigned step)"
        return f"{head}\n{{\n    (void)context;\n    (void)step;\n    return 0;\n}}\n"
    cases = []
    for region in program.regions:
        steps = region.region.steps
        names = ", ".join(comment_safe(plan.steps[step].layer) for step in steps)
        lines = [f"    case {region.region.last}: /* {names} */", f"        nn_offload_rescue({len(steps)});"]
        for step in steps:
            lines += kernel_calls(plan, plan.steps[step])
        cases.append("\n".join([*lines, "        break;"]))
    return f"""\
/* Performs the device's actions of a step. If the device failed, the processor recomputes the region of steps at its
 * end, from the arena. */
int {p}_device_step({p}_context *context, unsigned step)
{{
    const int status = nn_offload_act(&program, (uint8_t *)&context->arena, begins[step], begins[step + 1]);

    if (status == NN_DEVICE_OK) {{
        return 0;
    }}
    switch (step) {{
{chr(10).join(cases)}
    default:
        break;
    }}
    return 0;
}}
"""


def declaration(plan: Plan) -> list[str]:
    """Declaration for the private header."""
    return [f"int {plan.prefix}_device_step({plan.prefix}_context *context, unsigned step);"] if plan.device else []


def source_names(device: Device) -> list[str]:
    """The files that a program with this device needs besides the model's own."""
    return [path.name for path in _sources(device)]


def device_sources(device: Device) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in _sources(device)}


def _sources(device: Device) -> list[Path]:
    """The common device code, and the driver with its headers."""
    ours = [FIRMWARE / "include" / f"{name}.h" for name in API] + [FIRMWARE / "device" / f"{name}.c" for name in API]
    driver = device.driver()
    if driver is None:
        return ours
    headers = [path for folder in driver.includes for path in sorted(folder.glob("*.h"))]
    return [*ours, *driver.sources, *headers]
