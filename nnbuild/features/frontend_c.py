"""Prints a front end: a header, and one C file."""

from __future__ import annotations

import re

from nnbuild import __version__
from nnbuild.base.literals import C_TYPES
from nnbuild.base.vendored import definitions, float_rules
from nnbuild.base.writer import Writer
from nnbuild.emit.header import one_model
from nnbuild.emit.instructions import called, instructions
from nnbuild.emit.wrap import wrapped
from nnbuild.features.frontend import FrontEnd, Member
from nnbuild.features.tables import Tables
from nnbuild.isa.arm import ARMV7EM_DSP

SIZES = {"float32": 4, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4}


def feature_files(front_end: FrontEnd, prefix: str) -> dict[str, bytes]:
    w, tables = Writer(prefix), Tables()
    front_end.print_frame(w, tables)
    _init(w, front_end)
    _push(w, front_end)
    head, rest = _header(front_end, prefix, tables)
    source = _source(front_end, prefix, w, tables)
    same = one_model(f"{prefix}_features_init", head, rest, source)
    texts = {f"{prefix}_features.h": f"{head}\n{same}\n{rest}", f"{prefix}_features.c": source}
    return {name: wrapped(text).encode() for name, text in texts.items()}


def members(front_end: FrontEnd) -> tuple[Member, ...]:
    """The members of the struct, the row first."""
    dtype, size = front_end.row
    framing = front_end.framing
    return (
        Member("row", dtype, size),
        Member("samples", framing.sample, framing.window * framing.axes),
        *front_end.members,
    )


def state_bytes(front_end: FrontEnd) -> int:
    """Bytes of the struct, up to padding."""
    return 8 + sum(-(-SIZES[each.dtype] * each.size // 4) * 4 for each in members(front_end))


def _header(front_end: FrontEnd, prefix: str, tables: Tables) -> tuple[str, str]:
    """The constants and the struct, and the functions."""
    framing, (_, size) = front_end.framing, front_end.row
    upper = f"{prefix.upper()}_FEATURES"
    numbers = {"RATE": framing.rate, "WINDOW": framing.window, "STEP": framing.step, "SIZE": size}
    numbers |= {"AXES": framing.axes} if framing.axes > 1 else {}
    fields = "\n".join(f"    {C_TYPES[each.dtype]} {each.name}[{each.size}];" for each in members(front_end))
    defines = "\n".join(f"#define {upper}_{name} {value}" for name, value in numbers.items())
    each = f", each {framing.axes} values," if framing.axes > 1 else ""
    head = f"""\
/* {prefix}_features: printed by nnbuild {__version__}. {front_end.told}. */
#ifndef {upper}_H
#define {upper}_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* The first row is complete after WINDOW samples{each} and another one after each further STEP. */
{defines}

/* All memory it needs, {state_bytes(front_end):,} bytes; tables are {tables.bytes:,} bytes of constants. */
typedef struct {prefix}_features {{
    int32_t held; /* samples held; if negative, samples to skip */
    int32_t ready; /* whether the last push completed a row */
{fields}
}} {prefix}_features;
"""
    return (
        head,
        f"""\
/* Starts a new stream. */
void {prefix}_features_init({prefix}_features *f);

/*
 * Takes samples until a row is complete or all are taken, and returns how many it took; pass the rest in the next call.
 * It never blocks. Afterwards `ready` tells whether `row` is new.
 */
int32_t {prefix}_features_push({prefix}_features *f, const {C_TYPES[framing.sample]} *samples, int32_t n);

#ifdef __cplusplus
}}
#endif

#endif
""",
    )


def _source(front_end: FrontEnd, prefix: str, w: Writer, tables: Tables) -> str:
    printed = str(w)
    options = ", ".join(f'"{option}"' for option in ARMV7EM_DSP.gcc_options)
    parts = [
        f"/* {prefix}_features: printed by nnbuild {__version__}. One row of features from each frame of samples. */",
        float_rules() if re.search(r"\bfloat\b", printed) else "",
        f"#if defined(__GNUC__) && !defined(__clang__)\n#pragma GCC optimize({options})\n#endif",
        f'#include "{prefix}_features.h"\n',
        "\n".join(tables.lines()),
        definitions(w.helpers | called(w.instructions.values()), prefix),
        instructions(w.instructions.values(), prefix, ""),
        printed,
    ]
    return "\n".join(part for part in parts if part)


def _init(w: Writer, front_end: FrontEnd) -> None:
    with w.function(f"void {w.prefix}_features_init({w.prefix}_features *f)"):
        w("f->held = 0;")
        w("f->ready = 0;")
        for each in front_end.members:
            if each.kept:
                with w.loop("i", each.size):
                    w(f"f->{each.name}[i] = 0;")
    w()


def _push(w: Writer, front_end: FrontEnd) -> None:
    framing = front_end.framing
    kind, axes = C_TYPES[framing.sample], framing.axes
    values = f"{axes} * " if axes > 1 else ""
    kept = framing.window - framing.step
    signature = f"int32_t {w.prefix}_features_push({w.prefix}_features *f, const {kind} *samples, int32_t n)"
    with w.function(signature):
        w("int32_t taken = 0;")
        w("f->ready = 0;")
        if kept < 0:
            with w.block("if (f->held < 0)"):
                w("taken = n < -f->held ? n : -f->held;")
                w("f->held += taken;")
        w(f"const int32_t room = {framing.window} - f->held;")
        w("const int32_t count = n - taken < room ? n - taken : room;")
        w(f"{kind} *const to = f->samples + {values}f->held;")
        w(f"const {kind} *const from = samples + {values}taken;")
        with w.loop("i", f"{values}count", trips=framing.step * axes):
            w("to[i] = from[i];")
            w.bill(2)
        w("f->held += count;")
        w("taken += count;")
        with w.block(f"if (f->held == {framing.window})"):
            w(f"{w.prefix}_frame(f);")
            w("f->ready = 1;")
            w(f"f->held = {kept};")
            if kept > 0:
                with w.loop("i", kept * axes):
                    w(f"f->samples[i] = f->samples[i + {framing.step * axes}];")
                    w.bill(2)
        w("return taken;")
