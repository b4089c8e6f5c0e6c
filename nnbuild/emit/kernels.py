"""<model>_kernels.c: one function per step, specialised to its layer; and the private header that declares them."""

from __future__ import annotations

import re
from math import prod

from nnbuild.base.literals import C_TYPES
from nnbuild.base.vendored import definitions, float_rules
from nnbuild.base.writer import Writer
from nnbuild.emit.device import declaration
from nnbuild.emit.instructions import called, instructions
from nnbuild.emit.text import comment_safe, shape_text
from nnbuild.emit.weights import blob_bytes, block_offsets
from nnbuild.emit.wrap import COLUMNS
from nnbuild.isa.isa import Isa
from nnbuild.model.graph import Shape, Tensor
from nnbuild.plan.plan import WEIGHTS, Plan, Step, Version

FLOAT = re.compile(r"\bfloat\b|_p[sd]\(")
"""Matches C that computes with floats."""


MEANINGS = ("#elif defined(__GNUC__) && !defined(__clang__)", '#pragma GCC optimize("no-tree-loop-vectorize")')
"""Goes where the portable C is compiled: gcc 12 at -O3 computes wrong sums when it vectorizes it."""


COMPACT = """\
/* Few bytes count for more than time here, with any flags but -O0. */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#elif defined(__GNUC__) && defined(__OPTIMIZE__)
#pragma GCC optimize("Os")
#endif
"""
COMPACT_END = """\
#ifdef __clang__
#pragma clang attribute pop
#endif
"""


def kernels(plan: Plan) -> str:
    """For each instruction set: the functions that its kernels call, then the kernels."""
    head = f"/* {comment_safe(plan.graph.name)}: one function a step, made for its shapes. */\n"
    parts = [part for index, isa in enumerate(plan.isas) for part in _part(plan, index, isa)]
    rules = _floats(plan) if any(FLOAT.search(part) for part in parts) else ""
    parts.insert(0, head + rules + _compiler(plan) + f'#include "{plan.prefix}_private.h"\n')
    if plan.encoding.compact and plan.steps:
        parts = [parts[0], COMPACT, *parts[1:], COMPACT_END]
    return "\n".join(part for part in parts if part)


def _floats(plan: Plan) -> str:
    """The float rules, also for functions whose target attribute allows fused multiply-add."""
    fuses = any("fma" in isa.target.split(",") for isa in plan.isas)
    return ("#define NN_TARGET_FMA\n" if fuses else "") + float_rules() + "\n"


def _part(plan: Plan, index: int, isa: Isa) -> list[str]:
    prefix = version_prefix(plan, isa)
    w = Writer(prefix)
    attribute = f"{prefix.upper()}_TARGET " if isa.target else ""
    for number, step in enumerate(plan.steps):
        if number:
            w()
        _function(w, step, step.versions[index], attribute)
    vendored = definitions(w.helpers | called(w.instructions.values()), prefix, isa.features)
    twice = [name for name in w.instructions if f" {prefix}_{name}(" in vendored]
    assert not twice, f"instructions have the names of vendored functions: {twice}"
    return [
        _target(isa, attribute) if isa.target else "",
        vendored,
        instructions(w.instructions.values(), prefix, attribute),
        str(w) if plan.steps else "",
    ]


def version_prefix(plan: Plan, isa: Isa) -> str:
    """Prefix of a version's names; its own where there are several versions."""
    return f"{plan.prefix}_{isa.name}" if len(plan.isas) > 1 else plan.prefix


def _compiler(plan: Plan) -> str:
    """Compiler settings at the top of the file: disables harmful gcc passes, includes intrinsics."""
    lines = []
    options = list(dict.fromkeys(option for isa in plan.isas for option in isa.gcc_options))
    if options:
        quoted = [f'"{option}"' for option in options]
        pragmas = [f"#pragma GCC optimize({', '.join(quoted[at : at + 4])})" for at in range(0, len(quoted), 4)]
        where = dict.fromkeys(isa.options_where for isa in plan.isas if isa.options_where and not _serves(plan, isa))
        lines += [" && ".join(["#if defined(__GNUC__) && !defined(__clang__)", *where]), *pragmas, "#endif"]
    for guard in dict.fromkeys(isa.guard for isa in plan.isas if isa.includes):
        headers = dict.fromkeys(header for isa in plan.isas if isa.guard == guard for header in isa.includes)
        lines += [f"#if {guard}", *(f"#include <{header}>" for header in headers), *MEANINGS, "#endif"]
    return "\n".join([*lines, ""]) + "\n" if lines else ""


def _serves(plan: Plan, isa: Isa) -> bool:
    """Whether any kernel uses the set's own features."""
    versions = (version for step in plan.steps for version in step.versions)
    return any(version.isa == isa and version.choice.kernel.needs & isa.features for version in versions)


def _target(isa: Isa, attribute: str) -> str:
    """The attribute that enables the set for single functions, where the compiler supports it."""
    told = f'__attribute__((target("{isa.target}")))'
    apart = "" if len(f"#define {attribute}{told}") <= COLUMNS else "\\\n    "
    return f"""\
#if {isa.guard}
#define {attribute}{apart}{told}
#else
#define {attribute.rstrip()}
#endif
"""


APART = """\
/*
 * Where gcc 12 knows the object in which two arrays lie, as with -flto or in one file, it may compute an address in
 * one from that in the other, take this for an access to address 0, and drop the call. So calls tell a step nothing.
 */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define {name} __attribute__((noipa))
#elif defined(__GNUC__) && !defined(__clang__)
#define {name} __attribute__((noinline, noclone))
#else
#define {name}
#endif
"""


def private_header(plan: Plan) -> str:
    guard, apart = f"{plan.prefix.upper()}_PRIVATE_H", f"{plan.prefix.upper()}_APART"
    lines = [
        f"/* {comment_safe(plan.graph.name)}: what its own files share; a program needs {plan.prefix}.h only. */",
        f"#ifndef {guard}\n#define {guard}\n",
        f'#include "{plan.prefix}.h"\n',
        *(_exchanged(plan) if plan.in_block else _constants(plan)),
        APART.format(name=apart),
        *(f"{apart} {signature(step, version)};" for step in plan.steps for version in step.versions),
        *declaration(plan),
        "\n#endif",
    ]
    return "\n".join(lines) + "\n"


def _constants(plan: Plan) -> list[str]:
    lines = [f"extern const {C_TYPES[d.dtype.name]} {name}[{d.size}];" for name, d in plan.constants.items()]
    return [*lines, ""] if lines else []


def _exchanged(plan: Plan) -> list[str]:
    """Constants as offsets into a block; a run is told which block to use."""
    size = blob_bytes(plan)
    return [
        f"#define {plan.prefix.upper()}_WEIGHT_BYTES {size}",
        f"extern const uint8_t {plan.prefix}_{WEIGHTS}[{max(1, size)}];",
        *(
            f"#define {name} ((const {C_TYPES[data.dtype.name]} *)(const void *)({WEIGHTS} + {at}))"
            for name, data, at in block_offsets(plan)
        ),
        "",
    ]


def signature(step: Step, version: Version, name: str | None = None) -> str:
    """Pointers are `restrict` unless the plan laid an output over an input."""
    restrict = "" if step.shares_storage else "restrict "
    names, demand = version.names, version.demand
    parameters = [
        *(f"const {_pointer(t, restrict)}{n}" for t, n in zip(step.site.reads, names.inputs, strict=True)),
        *(f"{_pointer(t, restrict)}{n}" for t, n in zip(step.site.writes, names.outputs, strict=True)),
    ]
    if demand.scratch:
        parameters.append(f"{C_TYPES[demand.scratch_type]} *{restrict}{names.scratch}")
    if version.takes_weights:
        parameters.append(f"const uint8_t *{WEIGHTS}")
    return f"void {name or version.function}({', '.join(parameters)}, int32_t begin, int32_t end)"


def _pointer(tensor: Tensor, restrict: str) -> str:
    return f"{C_TYPES[tensor.dtype]} *{restrict}"


def _function(w: Writer, step: Step, version: Version, attribute: str) -> None:
    names, emit = version.names, version.choice.kernel.emit
    scratch = [names.scratch] if version.demand.scratch else []
    w(f"/* {describe(step, version)} */")
    if not step.op.outer:
        with w.function(attribute + signature(step, version), [*names.inputs, *scratch]):
            emit(w, step.site, names)
        return
    once = f"{version.function}_once"
    with w.function(f"{attribute}static {signature(step, version, once)}", [*names.inputs, *scratch]):
        emit(w, step.site, names)
    w()
    arguments = [
        *(_moved(n, step.site.shape(i)) for i, n in enumerate(names.inputs)),
        *(_moved(n, step.site.output_shape(i)) for i, n in enumerate(names.outputs)),
        *scratch,
        *([WEIGHTS] if version.takes_weights else []),
    ]
    whole = w.function(attribute + signature(step, version))
    with whole, w.loop("index", "end", start="begin", trips=prod(step.op.outer)):
        w(f"{once}({', '.join(arguments)}, 0, {version.demand.extent});")


def _moved(name: str, shape: Shape) -> str:
    """The part of a tensor that belongs to `index`."""
    return f"{name} + index * {prod(shape)}"


def describe(step: Step, version: Version | None = None) -> str:
    """Describes a step in one line: layers, operations, shapes, kernel and price."""

    def shapes(tensors: tuple[Tensor, ...]) -> str:
        return ", ".join(shape_text(tensor.shape) for tensor in tensors)

    work = f"{step.macs:,} MACs, " if step.macs else ""
    flow = f"{shapes(step.site.reads)} -> {shapes(step.site.writes)}"
    taken = version or step.versions[0]
    price = f"about {taken.choice.price.cycles:,.0f} cycles"
    if step.on_device and version is None:
        return f"{comment_safe(step.layer)}: {step.kind} {flow}, {work}by the device"
    return f"{comment_safe(step.layer)}: {step.kind} {flow}, {work}{taken.kernel_name}, {price}"
