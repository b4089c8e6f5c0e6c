"""<model>_kernels.c: every step's function, specialised to its layer; and the private header that declares them."""

from __future__ import annotations

from math import prod

from nnbuild.emit.instructions import instructions
from nnbuild.emit.text import comment_safe, shape_text
from nnbuild.emit.vendored import definitions
from nnbuild.graph import Shape, Tensor
from nnbuild.isa.isa import Isa
from nnbuild.literals import C_TYPES
from nnbuild.plan.plan import Plan, Step
from nnbuild.writer import Writer


def kernels(plan: Plan) -> str:
    w = Writer(plan.prefix)
    attribute = f"{plan.prefix.upper()}_TARGET " if plan.isa.target else ""
    for step in plan.steps:
        w()
        _function(w, step, attribute)
    head = f"/* {comment_safe(plan.graph.name)}: one function a step, made for its shapes. */\n"
    parts = [
        head + _compiler(plan.isa, plan.prefix) + f'#include "{plan.prefix}_private.h"\n',
        definitions(w.helpers, plan.prefix),
        instructions(w.instructions.values(), plan.prefix, attribute),
    ]
    return "\n".join(part for part in parts if part) + str(w)


def _compiler(isa: Isa, prefix: str) -> str:
    """What the compiler must be told before it sees a line: gcc's harmful passes, intrinsics, the target."""
    lines = []
    if isa.gcc_options:
        options = ", ".join(f'"{option}"' for option in isa.gcc_options)
        lines += ["#if defined(__GNUC__) && !defined(__clang__)", f"#pragma GCC optimize({options})", "#endif"]
    lines += [f"#include <{header}>" for header in isa.includes]
    if isa.target:
        lines += ["", f'#define {prefix.upper()}_TARGET __attribute__((target("{isa.target}")))']
    return "\n".join([*lines, ""]) + "\n" if lines else ""


def private_header(plan: Plan) -> str:
    guard = f"{plan.prefix.upper()}_PRIVATE_H"
    lines = [
        f"/* {comment_safe(plan.graph.name)}: what its own files share; a program needs {plan.prefix}.h only. */",
        f"#ifndef {guard}\n#define {guard}\n",
        f'#include "{plan.prefix}.h"\n',
        *(f"extern const {C_TYPES[d.dtype.name]} {name}[{d.size}];" for name, d in plan.constants.items()),
        *([""] if plan.constants else []),
        *(f"{signature(step)};" for step in plan.steps),
        "\n#endif",
    ]
    return "\n".join(lines) + "\n"


def signature(step: Step, name: str | None = None) -> str:
    """Pointers promise not to overlap unless the plan laid an output over an input."""
    restrict = "" if step.shares_storage else "restrict "
    parameters = [
        *(f"const {_pointer(t, restrict)}{n}" for t, n in zip(step.site.reads, step.names.inputs, strict=True)),
        *(f"{_pointer(t, restrict)}{n}" for t, n in zip(step.site.writes, step.names.outputs, strict=True)),
    ]
    if step.scratch is not None:
        parameters.append(f"{C_TYPES[step.demand.scratch_type]} *{restrict}{step.names.scratch}")
    return f"void {name or step.function}({', '.join(parameters)}, int32_t begin, int32_t end)"


def _pointer(tensor: Tensor, restrict: str) -> str:
    return f"{C_TYPES[tensor.dtype]} *{restrict}"


def _function(w: Writer, step: Step, attribute: str) -> None:
    w(f"/* {describe(step)} */")
    if not step.op.outer:
        with w.function(attribute + signature(step)):
            step.choice.kernel.emit(w, step.site, step.names)
        return
    once = f"{step.function}_once"
    with w.function(f"{attribute}static {signature(step, once)}"):
        step.choice.kernel.emit(w, step.site, step.names)
    w()
    with w.function(attribute + signature(step)), w.loop("index", "end", start="begin", trips=prod(step.op.outer)):
        arguments = [
            *(_moved(n, step.site.shape(i)) for i, n in enumerate(step.names.inputs)),
            *(_moved(n, step.site.output_shape(i)) for i, n in enumerate(step.names.outputs)),
            *([step.names.scratch] if step.scratch is not None else []),
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
    flow = f"{shapes(step.site.reads)} -> {shapes(step.site.writes)}"
    price = f"about {step.choice.price.cycles:,.0f} cycles"
    return f"{comment_safe(step.layer)}: {step.kind} {flow}, {work}{step.kernel_name}, {price}"
