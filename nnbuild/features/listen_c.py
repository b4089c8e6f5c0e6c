"""Prints the listening program: rows enter the network's input, it runs when due, and its answers become events."""

from __future__ import annotations

import numpy as np

from nnbuild import __version__
from nnbuild.base.literals import C_TYPES, float_literal
from nnbuild.base.vendored import definitions, float_rules
from nnbuild.base.writer import Writer
from nnbuild.emit.header import one_model
from nnbuild.emit.instructions import called
from nnbuild.emit.wrap import wrapped
from nnbuild.features.network_binding import Hearing


def listen_files(hearing: Hearing, prefix: str, *included: str) -> dict[str, bytes]:
    """Its header and C file. `included` are the headers of the network and of the front end."""
    w = Writer(prefix)
    _forget(w, hearing)
    _enter(w, hearing)
    _fill(w, hearing)
    _judge(w, hearing)
    _spot(w, hearing)
    _listen(w, hearing, features_of(hearing, prefix))
    source = _source(hearing, prefix, w)
    texts = {f"{prefix}_listen.h": _header(hearing, prefix, (*included, source)), f"{prefix}_listen.c": source}
    return {name: wrapped(text).encode() for name, text in texts.items()}


def features_of(hearing: Hearing, prefix: str) -> str:
    """Name of the front end's files."""
    return hearing.recipe.name or prefix


def _header(hearing: Hearing, prefix: str, others: tuple[str, ...]) -> str:
    """The declarations; the names of the functions that programs call first depend on all of them, and on others."""
    head, functions = _declarations(hearing, prefix), _functions(hearing, prefix)
    first = (f"{prefix}_spotter_init", f"{prefix}_listen_init")
    return "\n".join((head, *(one_model(name, head, functions, *others) for name in first), functions))


def _declarations(hearing: Hearing, prefix: str) -> str:
    upper, features = prefix.upper(), features_of(hearing, prefix)
    listen, framing = hearing.recipe.listen, hearing.front_end.framing
    kind, count = C_TYPES[hearing.input.dtype], len(hearing.classes)
    first = framing.window + (hearing.rows - 1) * framing.step
    return f"""\
/* {prefix}_listen: printed by nnbuild {__version__}. Samples in, events out. */
#ifndef {upper}_LISTEN_H
#define {upper}_LISTEN_H

#include "{prefix}.h"
#include "{features}_features.h"

#ifdef __cplusplus
extern "C" {{
#endif

#define {upper}_LISTEN_ROWS {hearing.rows} /* rows in the network's input */
#define {upper}_LISTEN_HOP {hearing.hop} /* new rows per run */
#define {upper}_LISTEN_FIRST {first} /* samples before its first run */
#define {upper}_LISTEN_MEAN {listen.mean}
#define {upper}_LISTEN_LIMIT {hearing.limit} /* a mean of the last answers above it is an event */

/* The network with its state. It takes rows, so that several may share a front end. */
typedef struct {prefix}_spotter {{
    {prefix}_context net;
    {kind} window[{hearing.rows * hearing.width}]; /* ring of rows */
    int32_t next; /* index of the next row to write */
    int32_t due; /* rows until the next run */
    int32_t last[{listen.mean * count}]; /* ring of answers */
    int32_t sums[{count}];
    int32_t above[{count}]; /* consecutive means above the limit */
    int32_t at;
    int32_t cool;
    int32_t runs; /* completed runs */
    int32_t event; /* the class that the last run detected, or -1 */
    int32_t score; /* its mean */
}} {prefix}_spotter;
"""


def _functions(hearing: Hearing, prefix: str) -> str:
    row, sample = C_TYPES[hearing.front_end.row[0]], C_TYPES[hearing.front_end.framing.sample]
    features = features_of(hearing, prefix)
    return f"""\
typedef struct {prefix}_listener {{
    {features}_features features;
    {prefix}_spotter spotter;
}} {prefix}_listener;

/* Resets everything. Call it once before use. */
void {prefix}_spotter_init({prefix}_spotter *s);
void {prefix}_listen_init({prefix}_listener *l);

/* Takes one row of {features}_features. Returns 1 on an event (s->event), 0 on none, < 0 if a run failed. */
int32_t {prefix}_spot({prefix}_spotter *s, const {row} *row);

/*
 * Takes any number of samples and computes all runs that are due. Returns the number of events, the last of which is
 * in l->spotter, or a negative value if a run failed.
 */
int32_t {prefix}_listen({prefix}_listener *l, const {sample} *samples, int32_t n);

/* {prefix}_spot in parts, for callers that cannot block: if _spot_row returns 1, run s->net, then _spot_answer. */
int32_t {prefix}_spot_row({prefix}_spotter *s, const {row} *row);
int32_t {prefix}_spot_answer({prefix}_spotter *s);

#ifdef __cplusplus
}}
#endif

#endif
"""


def _source(hearing: Hearing, prefix: str, w: Writer) -> str:
    printed = str(w)
    floats = any(word in printed for word in ("float ", "float)"))
    parts = [
        f"/* {prefix}_listen: printed by nnbuild {__version__}. Rows to the network, answers to events. */",
        float_rules() if floats else "",
        f'#include "{prefix}_listen.h"\n',
        definitions(w.helpers | called(w.instructions.values()), prefix),
        printed,
    ]
    return "\n".join(part for part in parts if part)


def _enter(w: Writer, hearing: Hearing) -> None:
    """Prints `enter`: converts a value of a row for the network's input."""
    row, kind = C_TYPES[hearing.front_end.row[0]], C_TYPES[hearing.input.dtype]
    with w.function(f"static {kind} {w.prefix}_enter({row} value)"):
        quant = hearing.input.quant
        if hearing.map is not None:
            m = hearing.map
            w(f"int64_t sum = (int64_t)value * {m.factor} + {m.start};")
            if m.truncates:
                w(f"if (sum < 0) sum += {(1 << m.shift) - 1};")
            w(f"sum >>= {m.shift};")
            w(f"return ({kind})(sum < {m.low} ? {m.low} : sum > {m.high} ? {m.high} : sum);")
            w.bill(8)
            return
        value = "(float)value" if hearing.front_end.row[0] != "float32" else "value"
        if hearing.front_end.row[0] != "float32" or hearing.recipe.scale != 1.0:
            value = f"{value} * {float_literal(hearing.recipe.scale)}"
        w(f"const float x = {value};")
        if quant is None:
            w("return x;")
            return
        limits, scale = np.iinfo(hearing.input.dtype), float_literal(quant.scale)
        if hearing.recipe.rounding == "truncate":
            w(f"const float moved = x / {scale} + {float_literal(quant.zero_point)};")
            w(f"if (moved < {float_literal(int(limits.min))}) return {limits.min};")
            w(f"if (moved > {float_literal(int(limits.max))}) return {limits.max};")
            w(f"return ({kind})moved;")
        else:
            whole = w.helper("quantizef", "x", scale, str(quant.zero_point), str(limits.min), str(limits.max))
            w(f"return ({kind}){whole};")
        w.bill(20)
    w()


def _forget(w: Writer, hearing: Hearing) -> None:
    """Prints `forget`: discards all answers so far."""
    listen, count = hearing.recipe.listen, len(hearing.classes)
    with w.function(f"static void {w.prefix}_forget({w.prefix}_spotter *s)"):
        w("s->at = 0;")
        with w.loop("i", listen.mean * count):
            w("s->last[i] = 0;")
        with w.loop("i", count):
            w("s->sums[i] = 0;")
            w("s->above[i] = 0;")
    w()


def _fill(w: Writer, hearing: Hearing) -> None:
    """Prints `spot_row`: stores the row, and fills the network's input when a run is due."""
    p, rows, width = w.prefix, hearing.rows, hearing.width
    row, kind = C_TYPES[hearing.front_end.row[0]], C_TYPES[hearing.input.dtype]
    w()
    with w.function(f"int32_t {p}_spot_row({p}_spotter *s, const {row} *row)"):
        w(f"{kind} *const to = s->window + s->next * {width};")
        with w.loop("i", width):
            w(f"to[i] = {p}_enter(row[i]);")
        w(f"s->next = s->next + 1 < {rows} ? s->next + 1 : 0;")
        w("if (--s->due > 0) return 0;")
        w(f"s->due = {hearing.hop};")
        w(f"{kind} *input = ({kind} *){p}_input(&s->net, 0);")
        with w.loop("i", f"{rows * width}", start=f"s->next * {width}", trips=rows * width / 2):
            w("*input++ = s->window[i];")
            w.bill(2)
        with w.loop("i", f"s->next * {width}", trips=rows * width / 2):
            w("*input++ = s->window[i];")
            w.bill(2)
        w("return 1;")
    w()


def _judge(w: Writer, hearing: Hearing) -> None:
    """Prints `spot_answer`, in the integers of network_binding.py."""
    p, listen, count = w.prefix, hearing.recipe.listen, len(hearing.classes)
    kind = C_TYPES[hearing.output.dtype]
    names = f"{p}_classes"
    dense = list(hearing.classes) == list(range(count))
    if not dense:
        w(f"static const int32_t {names}[{count}] = {{{', '.join(map(str, hearing.classes))}}};")
        w()
    with w.function(f"int32_t {p}_spot_answer({p}_spotter *s)"):
        w(f"const {kind} *const output = (const {kind} *){p}_output(&s->net, 0);")
        w("int32_t best = -1;")
        w("++s->runs;")
        w("s->event = -1;")
        w("s->score = 0;")
        if hearing.warm_up > 1:
            w(f"if (s->runs < {hearing.warm_up}) return 0;")
        w("if (s->cool > 0) --s->cool;")
        w(f"int32_t *const last = s->last + s->at * {count};")
        with w.loop("i", count):
            place = "i" if dense else f"{names}[i]"
            if hearing.output.dtype == "float32":
                w(f"const float answer = output[{place}] * 255.0f;")
                w("const int32_t now = !(answer > 0.0f) ? 0 : answer > 255.0f ? 255 : (int32_t)answer;")
            else:
                w(f"const int32_t now = output[{place}] - {int(np.iinfo(hearing.output.dtype).min)};")
            w("s->sums[i] += now - last[i];")
            w("last[i] = now;")
            w(f"s->above[i] = s->sums[i] > {hearing.limit * listen.mean} ? s->above[i] + 1 : 0;")
            heard = f"s->cool == 0 && s->above[i] >= {listen.consecutive}"
            w(f"if ({heard} && (best < 0 || s->sums[i] > s->sums[best])) best = i;")
            w.bill(16)
        w(f"s->at = s->at + 1 < {listen.mean} ? s->at + 1 : 0;")
        w("if (best < 0) return 0;")
        w(f"s->event = {'best' if dense else f'{names}[best]'};")
        w(f"s->score = s->sums[best] / {listen.mean};")
        w(f"s->cool = {listen.cool_off + 1};")
        w(f"{p}_forget(s);")
        w("return 1;")
    w()


def _spot(w: Writer, hearing: Hearing) -> None:
    p, row = w.prefix, C_TYPES[hearing.front_end.row[0]]
    with w.function(f"int32_t {p}_spot({p}_spotter *s, const {row} *row)"):
        w(f"if (!{p}_spot_row(s, row)) return 0;")
        w(f"const int status = {p}_run(&s->net);")
        w("if (status != 0) return status < 0 ? status : -status;")
        w(f"return {p}_spot_answer(s);")
    w()
    with w.function(f"void {p}_spotter_init({p}_spotter *s)"):
        w(f"{p}_init(&s->net);")
        w("s->next = 0;")
        w(f"s->due = {hearing.rows};")
        w("s->cool = 0;")
        w("s->runs = 0;")
        w("s->event = -1;")
        w("s->score = 0;")
        w(f"{p}_forget(s);")
    w()


def _listen(w: Writer, hearing: Hearing, features: str) -> None:
    p, framing = w.prefix, hearing.front_end.framing
    with w.function(f"void {p}_listen_init({p}_listener *l)"):
        w(f"{features}_features_init(&l->features);")
        w(f"{p}_spotter_init(&l->spotter);")
    w()
    sample = C_TYPES[framing.sample]
    with w.function(f"int32_t {p}_listen({p}_listener *l, const {sample} *samples, int32_t n)"):
        w("int32_t events = 0;")
        with w.block("while (n > 0)"):
            w(f"const int32_t taken = {features}_features_push(&l->features, samples, n);")
            w(f"samples += taken * {framing.axes};")
            w("n -= taken;")
            with w.block("if (l->features.ready)"):
                w(f"const int32_t heard = {p}_spot(&l->spotter, l->features.row);")
                w("if (heard < 0) return heard;")
                w("events += heard;")
        w("return events;")
