"""Costs that were measured: for the same work by the same kernel they outrank the bill.

One file an instruction set, measured/<isa>.json in the user's cache, holds work -> kernel -> instructions of one run.
`nnbuild profile --alternatives --save` writes them.
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
    """Names what is computed, without what the weights are: operations, options, shapes and types."""
    parts = []
    for part in (site, *site.tail):
        shapes = [f"{t.dtype}{list(t.shape)}" for t in (*part.inputs, *part.outputs)]
        constants = [f"{role}{list(c.data.shape)}" for role, c in sorted(part.constants.items())]
        options = [f"{key}={value}" for key, value in sorted(vars(part.attributes).items())]
        parts.append(" ".join([part.op.kind, *options, *shapes, *constants]))
    return " + ".join(parts)


def measured(isa: str, site: Site, kernel: str) -> int | None:
    """Instructions of one run; None where nobody has measured this."""
    if site.op.outer:
        return None
    return table(isa).get(work_name(site), {}).get(kernel)


def file_of(isa: str) -> Path:
    return measured_costs() / f"{isa}.json"


@cache
def table(isa: str) -> Table:
    try:
        found: Table = json.loads(file_of(isa).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return found


def merged(known: Table, new: Table) -> dict[str, dict[str, int]]:
    """Both, the new figures over the old ones, in an order that does not depend on when they came."""
    names = sorted({*known, *new})
    return {name: dict(sorted({**known.get(name, {}), **new.get(name, {})}.items())) for name in names}


def text(known: Table) -> str:
    return json.dumps(known, indent=1) + "\n"
