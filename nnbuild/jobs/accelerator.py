"""An accelerator beside the processor: its effect on a board, and what notes and reports say about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from nnbuild.base.errors import UsageError
from nnbuild.base.mapped_device import MappedDevice
from nnbuild.board.board import Board
from nnbuild.device.accelerator import AcceleratorUse, DeviceLayer
from nnbuild.emit.device import source_names
from nnbuild.model.graph import Graph
from nnbuild.offload.device import Device, Driver
from nnbuild.plan.device_program import WriteConstants
from nnbuild.plan.device_tasks import Copy
from nnbuild.plan.offload import ALL
from nnbuild.plan.plan import Plan


def with_device_driver(board: Board, device: Device | None) -> Board:
    """Returns the board with the compiler and linker flags, stack and memory map that the device's driver needs."""
    driver = device.driver() if device is not None else None
    if device is None or driver is None:
        return board
    mapped = _simulated(device, driver)
    return replace(
        board,
        flags=(*board.flags, *driver.flags),
        link_flags=(*board.link_flags, *_linked(device, driver)),
        driver_stack=driver.stack,
        mapped=mapped,
        real_device="" if mapped is not None or driver.software else f"{device.name}:{driver.name}",
    )


def _linked(device: Device, driver: Driver) -> list[str]:
    made = device.functions.link(driver.name) if device.functions.link is not None else []
    return [*driver.link_flags, *made]


def device_facts(plan: Plan) -> dict[str, Any] | None:
    """The device's source files and the flags for its driver, for other build systems."""
    if plan.device is None:
        return None
    device = plan.device.device
    driver = device.driver()
    files = [f"{plan.prefix}_device.c", *source_names(device)]
    flags = list(driver.flags) if driver is not None else []
    return {"files": files, "flags": flags, "link": _linked(device, driver) if driver is not None else []}


def _simulated(device: Device, driver: Driver) -> Callable[[], MappedDevice] | None:
    place, make = driver.simulated, device.functions.simulated
    return None if place is None or make is None else lambda: MappedDevice(*place, make())


def unknown_places(graph: Graph, places: tuple[tuple[str, str], ...]) -> None:
    """Refuses a --place for a layer that the model does not have."""
    known = {op.layer for op in graph.ops} | {op.name for op in graph.ops}
    for layer, place in places:
        if layer not in known and layer != ALL:
            names = ", ".join(sorted(known)[:12])
            raise UsageError(f"--place {layer}={place}", "the model has no such layer.", f"Its layers: {names} …")


def device_notes(plan: Plan) -> Iterator[str]:
    """Notes on how much of the model the device computes."""
    program = plan.device
    if program is None:
        return
    steps = [step for step in plan.steps if step.on_device]
    if not steps:
        yield f"{program.device.name} computes nothing: {_why(plan)}"
        return
    macs, whole = sum(step.macs for step in steps), sum(step.macs for step in plan.steps)
    share = 100 * macs / whole if whole else 0.0
    yield (
        f"{program.device.name} computes {len(steps)} of {len(plan.steps)} steps, {share:.0f} % of the MACs, in about "
        f"{program.cycles:,.0f} of its cycles"
    )


def _why(plan: Plan) -> str:
    if not any(tensor.quant is not None for tensor in plan.graph.tensors.values()):
        return "it computes integers, and the model is in float; give --quantize int8"
    return "by its table it supports no layer, or the processor is faster for each (`--place` tells why)"


def accelerator_use(plan: Plan) -> AcceleratorUse | None:
    """The plan's share for the device; None where the device computes nothing."""
    program = plan.device
    if program is None or not program.tasks:
        return None
    layers = []
    for number, step in enumerate(plan.steps):
        tasks = program.of_step(number)
        if tasks:
            cycles = sum(task.item.cycles for task in tasks)
            copied = sum(done.size for done in program.done.get(number, ()) if isinstance(done, (Copy, WriteConstants)))
            layers.append(DeviceLayer(step.layer, len(tasks), cycles, step.macs, copied))
    names = {op.name: step.layer for step in plan.steps for op in step.site.ops}
    refused = tuple((names.get(name, name), reason) for name, reason in program.refused.items())
    return AcceleratorUse(program.device.name, program.cycles, 0, tuple(layers), refused, program.device.macs)
