"""Prints what listens: rows into the network's input, a run where one is due, and what its answers mean."""

from __future__ import annotations

from math import prod

import numpy as np

from nnbuild import __version__
from nnbuild.base.literals import C_TYPES, float_literal
from nnbuild.base.vendored import definitions, float_rules
from nnbuild.base.writer import Writer
from nnbuild.emit.instructions import called
from nnbuild.emit.wrap import wrapped
from nnbuild.features.network_binding import Hearing


def listen_files(hearing: Hearing, prefix: str) -> dict[str, bytes]:
    w = Writer(prefix)
    _forget(w, hearing)
    _enter(w, hearing)
    _fill(w, hearing)
    _judge(w, hearing)
    _spot(w, hearing)
    _listen(w, hearing, features_of(hearing, prefix))
    source = _source(hearing, prefix, w)
    texts = {f"{prefix}_listen.h": _header(hearing, prefix), f"{prefix}_listen.c": source}
    return {name: wrapped(text).encode() for name, text in texts.items()}


def features_of(hearing: Hearing, prefix: str) -> str:
    """What the front end's files are called."""
    return hearing.recipe.name or prefix


def _header(hearing: Hearing, prefix: str) -> str:
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

#define {upper}_LISTEN_ROWS {hearing.rows} /* that the network sees */
#define {upper}_LISTEN_HOP {hearing.hop} /* new ones between its runs */
#define {upper}_LISTEN_FIRST {first} /* samples before its first run */
#define {upper}_LISTEN_MEAN {listen.mean}
#define {upper}_LISTEN_LIMIT {hearing.limit} /* an event: the mean of the last answers is above it */

/* The network with what it remembers: fed with rows, so that several may share a front end. */
typedef struct {prefix}_spotter {{
    {prefix}_context net;
    {kind} window[{hearing.rows * hearing.width}]; /* rows in a ring */
    int32_t next; /* the row to be written */
    int32_t due; /* rows until the next run */
    int32_t last[{listen.mean * count}]; /* answers, in a ring */
    int32_t sums[{count}];
    int32_t above[{count}]; /* how often in a row a mean was above the limit */
    int32_t at;
    int32_t cool;
    int32_t runs; /* of the network so far */
    int32_t event; /* the class that the last run has heard, or -1 */
    int32_t score; /* the mean that it was heard by */
}} {prefix}_spotter;

{_functions(hearing, prefix)}"""


def _functions(hearing: Hearing, prefix: str) -> str:
    row, sample = C_TYPES[hearing.front_end.row[0]], C_TYPES[hearing.front_end.framing.sample]
    features = features_of(hearing, prefix)
    return f"""\
typedef struct {prefix}_listener {{
    {features}_features features;
    {prefix}_spotter spotter;
}} {prefix}_listener;

/* Begins anew, as after a start. */
void {prefix}_spotter_init({prefix}_spotter *s);
void {prefix}_listen_init({prefix}_listener *l);

/* Takes one row of {features}_features; 1 when something was heard (s->event), 0 when not, < 0 when a run failed. */
int32_t {prefix}_spot({prefix}_spotter *s, const {row} *row);

/*
 * Takes all of any number of samples and computes what is due. Returns how many events there were, the last of which
 * is in l->spotter; below 0 when a run of the network failed.
 */
int32_t {prefix}_listen({prefix}_listener *l, const {sample} *samples, int32_t n);

/* The parts of a spot, for those who cannot stay away for a whole one: 1 when a run is due; the run; what it means. */
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
    """Function `enter`: a value of a row as the input holds it."""
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
    """The answers so far are as if they had never been."""
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
    """Function `spot_row`: the row is kept, and the network's input filled where a run is due."""
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
    """Function `spot_answer`: in whole numbers, as network_binding.py has it."""
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


def spotter_bytes(hearing: Hearing) -> int:
    """Beside the network's own context."""
    item = np.dtype(hearing.input.dtype).itemsize
    listen, count = hearing.recipe.listen, len(hearing.classes)
    return -(-item * prod((hearing.rows, hearing.width)) // 4) * 4 + 4 * (listen.mean * count + 2 * count + 7)
