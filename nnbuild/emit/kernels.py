"""<model>_kernels.c: every step's function, specialised to its layer; and the private header that declares them."""

from __future__ import annotations

from math import prod

from nnbuild.emit.text import comment_safe, shape_text
from nnbuild.emit.vendored import definitions
from nnbuild.emit.weights import WEIGHTS, blob_bytes, places
from nnbuild.graph import Shape, Tensor
from nnbuild.literals import C_TYPES
from nnbuild.plan.plan import Plan, Step
from nnbuild.writer import Writer


def kernels(plan: Plan) -> str:
    w = Writer(plan.prefix)
    for step in plan.steps:
        w()
        _function(w, step)
    head = f"/* {comment_safe(plan.graph.name)}: one function a step, made for its shapes. */\n"
    include = f'#include "{plan.prefix}_private.h"\n'
    helpers = definitions(w.helpers, plan.prefix)
    return "\n".join([head + include, helpers] if helpers else [head + include]) + str(w)


def private_header(plan: Plan) -> str:
    guard = f"{plan.prefix.upper()}_PRIVATE_H"
    lines = [
        f"/* {comment_safe(plan.graph.name)}: what its own files share; a program needs {plan.prefix}.h only. */",
        f"#ifndef {guard}\n#define {guard}\n",
        f'#include "{plan.prefix}.h"\n',
        *(_exchanged(plan) if plan.swappable else _constants(plan)),
        *(f"{signature(step)};" for step in plan.steps),
        "\n#endif",
    ]
    return "\n".join(lines) + "\n"


def _constants(plan: Plan) -> list[str]:
    lines = [f"extern const {C_TYPES[d.dtype.name]} {name}[{d.size}];" for name, d in plan.constants.items()]
    return [*lines, ""] if lines else []


def _exchanged(plan: Plan) -> list[str]:
    """Constants by their place in one block, of which there may be several: a run is told which it is to use."""
    size = blob_bytes(plan)
    return [
        f"#define {plan.prefix.upper()}_WEIGHT_BYTES {size}",
        f"extern const uint8_t {plan.prefix}_{WEIGHTS}[{max(1, size)}];",
        *(
            f"#define {name} ((const {C_TYPES[data.dtype.name]} *)(const void *)({WEIGHTS} + {at}))"
            for name, data, at in places(plan)
        ),
        "",
    ]


def signature(step: Step, name: str | None = None) -> str:
    """Pointers promise not to overlap unless the plan laid an output over an input."""
    restrict = "" if step.shares_storage else "restrict "
    parameters = [
        *(f"const {_pointer(t, restrict)}{n}" for t, n in zip(step.site.inputs, step.names.inputs, strict=True)),
        *(f"{_pointer(t, restrict)}{n}" for t, n in zip(step.site.outputs, step.names.outputs, strict=True)),
    ]
    if step.scratch is not None:
        parameters.append(f"{C_TYPES[step.demand.scratch_type]} *{restrict}{step.names.scratch}")
    if step.takes_weights:
        parameters.append(f"const uint8_t *{WEIGHTS}")
    return f"void {name or step.function}({', '.join(parameters)}, int32_t begin, int32_t end)"


def _pointer(tensor: Tensor, restrict: str) -> str:
    return f"{C_TYPES[tensor.dtype]} *{restrict}"


def _function(w: Writer, step: Step) -> None:
    w(f"/* {describe(step)} */")
    if not step.op.outer:
        with w.function(signature(step)):
            step.choice.kernel.emit(w, step.site, step.names)
        return
    once = f"{step.function}_once"
    with w.function("static " + signature(step, once)):
        step.choice.kernel.emit(w, step.site, step.names)
    w()
    with w.function(signature(step)), w.loop("index", "end", start="begin", trips=prod(step.op.outer)):
        arguments = [
            *(_moved(n, step.site.shape(i)) for i, n in enumerate(step.names.inputs)),
            *(_moved(n, step.site.output_shape(i)) for i, n in enumerate(step.names.outputs)),
            *([step.names.scratch] if step.scratch is not None else []),
            *([WEIGHTS] if step.takes_weights else []),
        ]
        w(f"{once}({', '.join(arguments)}, 0, {step.demand.extent});")


def _moved(name: str, shape: Shape) -> str:
    """The part of a tensor that belongs to `index`."""
    return f"{name} + index * {prod(shape)}"


def describe(step: Step) -> str:
    """One line on a step: what, from where to where, by which kernel, at which price."""

    def shapes(tensors: tuple[Tensor, ...]) -> str:
        return ", ".join(shape_text(tensor.shape) for tensor in tensors)

    work = f"{step.macs:,} MACs, " if step.macs else ""
    flow = f"{shapes(step.site.inputs)} -> {shapes(step.site.outputs)}"
    name = comment_safe(step.op.layer or step.op.name)
    return f"{name}: {step.op.kind} {flow}, {work}{step.kernel_name}, about {step.choice.price.cycles:,.0f} cycles"
