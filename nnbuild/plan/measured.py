"""Measured costs, which take precedence over the cost model for the same work by the same kernel.

A file in the folder measured/ of the user's cache holds work -> kernel -> cost of one run: <board>.json in cycles of a
device, <isa>.json in instructions. `nnbuild profile --save` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from nnbuild.base.paths import measured_costs
from nnbuild.ops.site import Site

Table = Mapping[str, Mapping[str, int]]


def work_name(site: Site) -> str:
    """Identifies the work without the weights' values: operations, options, shapes and types."""
    parts = []
    for part in (site, *site.tail):
        shapes = [f"{t.dtype}{list(t.shape)}" for t in (*part.inputs, *part.outputs)]
        constants = [f"{role}{list(c.data.shape)}" for role, c in sorted(part.constants.items())]
        options = [f"{key}={value}" for key, value in sorted(vars(part.attributes).items())]
        parts.append(" ".join([part.op.kind, *options, *shapes, *constants]))
    return " + ".join(parts)


def measured(name: str, site: Site, kernel: str) -> int | None:
    """Cost of one run by the table of this name; None where it was not measured."""
    if site.op.outer:
        return None
    return table(name).get(work_name(site), {}).get(kernel)


def file_of(name: str) -> Path:
    return measured_costs() / f"{name}.json"


@cache
def table(name: str) -> Table:
    try:
        found: Table = json.loads(file_of(name).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return found


def merged(known: Table, new: Table) -> dict[str, dict[str, int]]:
    """Both tables, new figures replacing old ones, in an order independent of when they came."""
    names = sorted({*known, *new})
    return {name: dict(sorted({**known.get(name, {}), **new.get(name, {})}.items())) for name in names}


def text(known: Table) -> str:
    return json.dumps(known, indent=1) + "\n"
