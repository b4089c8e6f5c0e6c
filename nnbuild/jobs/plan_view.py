"""A plan as a report shows it: plain rows for the picture of the network, the layers and the memory.

Only this module reads plans for reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from nnbuild.isa.registry import isas
from nnbuild.jobs.constant_sizes import constant_sizes
from nnbuild.model.graph import Graph, Op, Tensor
from nnbuild.model.verify import constant_shapes
from nnbuild.ops.reshape import Reshape
from nnbuild.plan.buffers import scratch_name
from nnbuild.plan.plan import Plan, Step
from nnbuild.plan.select import NEEDS, Alternative
from nnbuild.report.constant_sizes import ConstantSizes
from nnbuild.report.facts import Buffer, Layer, Node, Option, Peak, Role
from nnbuild.report.number_format import TIMES

CLAMPS: dict[tuple[float | None, float | None], str] = {(0.0, None): "relu", (0.0, 6.0): "relu6"}


def shape_text(tensor: Tensor) -> str:
    return TIMES.join(map(str, tensor.shape)) or "1"


def ops_of(step: Step) -> tuple[Op, ...]:
    """The operations of a step, in order."""
    return step.site.ops


def title_of(op: Op) -> str:
    return op.layer or op.name


def kind_of(op: Op) -> str:
    """The displayed name of an operation; binary ones are named by their function."""
    return str(getattr(op.attributes, "function", op.kind)) if op.kind in ("binary", "activation") else op.kind


def layers(plan: Plan, costs: Sequence[int] | None, code: Mapping[str, int]) -> tuple[Layer, ...]:
    """One row per step; `costs` are measured, `code` gives the bytes of each function."""
    measured: Sequence[int | None] = costs if costs is not None else [None] * len(plan.steps)
    rows = zip(plan.steps, measured, constant_sizes(plan), strict=True)
    return tuple(_layer(plan, step, cost, code, stored) for step, cost, stored in rows)


def _layer(plan: Plan, step: Step, cost: int | None, code: Mapping[str, int], stored: ConstantSizes) -> Layer:
    ops = ops_of(step)
    out = plan.tensor(step.outputs[0])
    return Layer(
        name=step.layer,
        op=" + ".join(kind_of(op) for op in ops),
        kernel=step.kernel_name,
        shape=shape_text(out),
        format=out.dtype,
        macs=step.macs,
        cost=cost,
        priced=float(step.choice.price.cycles),
        versions=tuple((version.isa.name, version.kernel_name) for version in step.versions),
        weights=sum(plan.constants[name].nbytes for name in _constants(step)),
        encoding=step.choice.kernel.encoding,
        code=_code(step, code),
        output=sum(plan.tensor(name).nbytes for name in step.outputs),
        scratch=_scratch(step),
        parts=step.parts,
        in_place=step.shares_storage,
        options=tuple(_option(a) for a in step.alternatives if not _is_elsewhere(a, plan)),
        stored=stored,
    )


def _code(step: Step, code: Mapping[str, int]) -> int:
    """Bytes of the functions that only this step uses; functions shared by several steps are not counted."""
    own = tuple(version.function for version in step.versions)
    return sum(size for name, size in code.items() if name in own or name.startswith(tuple(f"{n}_" for n in own)))


def _constants(step: Step) -> set[str]:
    """The constants that any version of the step reads; versions may share them."""
    return {name for version in step.versions for name in version.names.packed.values()}


def _scratch(step: Step) -> int:
    """Scratch bytes: versions share one area, but parts that run in parallel have their own."""
    return step.scratch_bytes * step.parts


def _is_elsewhere(alternative: Alternative, plan: Plan) -> bool:
    """Whether the alternative needs another processor, which is not worth reporting, except on a PC, where --isa is
    a choice."""
    if not alternative.reason.startswith(NEEDS):
        return False
    named = alternative.reason.removeprefix(NEEDS).replace(",", " ").split()
    return not all("native" in isas()[name].architectures for name in named if name in isas()) or (
        "native" not in plan.isas[0].architectures
    )


def _option(alternative: Alternative) -> Option:
    price = alternative.price
    if price is None:
        return Option(alternative.kernel, None, False, 0, 0, alternative.reason)
    return Option(alternative.kernel, float(price.cycles), price.measured, price.weights, price.scratch, "")


def nodes(plan: Plan, rows: Sequence[Layer]) -> tuple[Node, ...]:
    """The inputs, then every operation in execution order."""
    graph = plan.graph
    total = sum(row.weight for row in rows) or 1.0
    shares = {ops_of(step)[0].name: row.weight / total for step, row in zip(plan.steps, rows, strict=True)}
    leads = {op.name: title_of(ops_of(step)[0]) for step in plan.steps for op in ops_of(step)[1:]}
    makers: dict[str, int] = {}
    found: list[Node] = []
    for name in graph.inputs:
        makers[name] = len(found)
        found.append(_input(graph, name))
    for op in graph.ops:
        sources = tuple(dict.fromkeys(makers[name] for name in op.inputs if name in makers))
        made = graph.tensors[op.outputs[0]]
        ends = any(name in graph.outputs for name in op.outputs)
        detail = " ".join((_detail(graph, op), *([f"in one step with {leads[op.name]}"] if op.name in leads else [])))
        node = Node(
            title_of(op),
            kind_of(op),
            detail.strip(),
            shape_text(made),
            made.dtype,
            sources,
            ends,
            shares.get(op.name, 0.0),
        )
        makers |= dict.fromkeys(op.outputs, len(found))
        found.append(node)
    return tuple(found)


def _input(graph: Graph, name: str) -> Node:
    tensor = graph.tensors[name]
    return Node(name, "input", "", shape_text(tensor), tensor.dtype, (), name in graph.outputs, 0.0)


def _detail(graph: Graph, op: Op) -> str:
    """The window, stride and fused operations, which distinguish it from others of its kind."""
    attributes = op.attributes
    kernel = constant_shapes(graph, op).get("kernel", ())
    window = getattr(attributes, "window", kernel[:2] if len(kernel) == 4 else ())
    words = [TIMES.join(map(str, window))] if window else []
    for word, sign in (("strides", "/"), ("dilation", "dilated ")):
        pair = getattr(attributes, word, (1, 1))
        if prod(pair) > 1 and pair != window:
            words.append(sign + TIMES.join(map(str, dict.fromkeys(pair))))
    if op.kind in ("pool2d", "reduce", "recurrent"):
        words.insert(0, str(getattr(attributes, "function", "")))
    clamp = getattr(attributes, "clamp", None)
    bounds: tuple[float | None, float | None] = (clamp.low, clamp.high) if clamp is not None else (None, None)
    if bounds != (None, None):
        words.append(CLAMPS.get(bounds, "clamp"))
    return " ".join(filter(None, words))


def buffers(plan: Plan) -> tuple[Buffer, ...]:
    """Every buffer of the arena with its offset and lifetime, by offset."""
    graph, end = plan.graph, len(plan.steps)
    roots = _roots(graph)
    first = {roots[name]: -1 for name in graph.inputs}
    last = dict(first)
    for index, step in enumerate(plan.steps):
        for name in (*step.inputs, *step.outputs):
            first.setdefault(roots[name], index)
            last[roots[name]] = index
    last |= {roots[name]: end for name in graph.outputs}
    outputs, inputs = {roots[name] for name in graph.outputs}, set(graph.inputs)
    titles = _titles(plan)
    found = []
    for name, begin in first.items():
        place = plan.locations.get(name)
        if place is not None and place.space == "arena":
            role: Role = "input" if name in inputs else "output" if name in outputs else "tensor"
            found.append(Buffer(titles[name], role, place.offset, place.size, begin, last[name], ()))
    for index, step in enumerate(plan.steps):
        if step.scratch is not None:
            title = titles[scratch_name(step.op)]
            found.append(Buffer(title, "scratch", step.scratch, _scratch(step), index, index, ()))
    found.sort(key=lambda b: (b.first, b.offset, b.name))
    return tuple(replace(b, overlaps=tuple(o.name for o in found if o is not b and _shares(b, o))) for b in found)


def _titles(plan: Plan) -> dict[str, str]:
    """Buffer -> unique title: the layers that write it, or the input's name."""
    roots, titles = _roots(plan.graph), {name: name for name in plan.graph.inputs}
    for step in plan.steps:
        for name in step.outputs:
            titles.setdefault(roots[name], _new(step.layer, name, titles))
        scratch = scratch_name(step.op)
        titles[scratch] = _new(f"scratch of {step.layer}", scratch, titles)
    return titles


def _new(title: str, name: str, titles: Mapping[str, str]) -> str:
    return name if title in titles.values() else title


def _roots(graph: Graph) -> dict[str, str]:
    """Tensor -> the tensor that owns its storage: a reshape moves nothing."""
    roots = {name: name for name in graph.tensors}
    for op in graph.ops:
        if isinstance(op.attributes, Reshape):
            roots[op.outputs[0]] = roots[op.inputs[0]]
    return roots


def _shares(a: Buffer, b: Buffer) -> bool:
    together = a.first <= b.last and b.first <= a.last
    return together and a.offset < b.offset + b.size and b.offset < a.offset + a.size


def peak(plan: Plan) -> Peak | None:
    most = plan.peak
    titles = _titles(plan)
    alive = tuple(titles.get(name, name) for name, _ in most.alive) if most is not None else ()
    return Peak(most.step, most.layer, most.size, alive) if most is not None else None
