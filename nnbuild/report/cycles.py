"""Cycles of a run on a processor, as a table and as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nnbuild.cycles.clock import Time
from nnbuild.cycles.run import Cycles
from nnbuild.device.run_time import Modelled
from nnbuild.report.constant_sizes import ConstantSizes, constants_objects, constants_text
from nnbuild.report.table import render

CAUSES = ("loads", "branches", "others", "flash_code", "flash_data")


@dataclass(frozen=True)
class LayerCycles:
    name: str
    op: str
    kernel: str
    macs: int
    time: Time


@dataclass(frozen=True)
class CycleProfile:
    board: str
    model: str
    layers: tuple[LayerCycles, ...]
    cycles: Cycles
    stored: tuple[ConstantSizes, ...]


def cycles_text(profile: CycleProfile) -> str:
    causes = [name.replace("_", " ") for name in CAUSES]
    heads = ["layer", "op", "kernel", "MACs", "cycles", "per MAC", "instructions", *causes]
    rows = [
        [layer.name, layer.op, layer.kernel, f"{layer.macs:,}" if layer.macs else "", *_columns(layer.time, layer.macs)]
        for layer in profile.layers
    ]
    macs, whole = sum(layer.macs for layer in profile.layers), profile.cycles.whole
    table = render(heads, rows, 3, ["total", "", "", f"{macs:,}", *_columns(whole, macs)])
    low, high = profile.cycles.error
    about = f"{whole.cycles:,} cycles of a {profile.cycles.core}, modelled; {low:+g} to {high:+g} %"
    found = Modelled(profile.cycles.core, whole.cycles, profile.cycles.hertz, profile.cycles.error)
    return f"{table}\n\none run    {about}\nestimated  {found.milliseconds()}\n{constants_text(profile.stored)}"


def _columns(time: Time, macs: int) -> list[str]:
    per_mac = f"{time.cycles / macs:.2f}" if macs else ""
    return [f"{time.cycles:,}", per_mac, f"{time.instructions:,}", *(f"{getattr(time, name):,}" for name in CAUSES)]


def cycles_object(profile: CycleProfile) -> dict[str, Any]:
    cycles = profile.cycles
    return {
        "board": profile.board,
        "model": profile.model,
        "core": cycles.core,
        "hertz": cycles.hertz,
        **_values(cycles.whole),
        "milliseconds": cycles.milliseconds,
        "milliseconds_error": [cycles.milliseconds * percent / 100 for percent in cycles.error],
        "error_percent": list(cycles.error),
        "layers": [
            {"name": each.name, "op": each.op, "kernel": each.kernel, "macs": each.macs, **_values(each.time)}
            for each in profile.layers
        ],
        "stored": constants_objects(profile.stored),
    }


def _values(time: Time) -> dict[str, Any]:
    stalls = {name: getattr(time, name) for name in CAUSES}
    return {"cycles": time.cycles, "instructions": time.instructions, "stalls": stalls}
