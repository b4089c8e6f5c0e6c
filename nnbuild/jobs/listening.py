"""Facts for reports about front ends, streams and events, from the settings and from the measured cost of a row."""

from __future__ import annotations

from dataclasses import replace

from nnbuild.features.frontend_c import state_bytes
from nnbuild.features.network_binding import Hearing
from nnbuild.jobs.job import place, profile_job
from nnbuild.jobs.pipeline import Compiled
from nnbuild.report.listening import Events, FrontEnd, Listening, Step
from nnbuild.streaming.stream import Streamed


def listening_of(compiled: Compiled, measured: bool) -> Listening | None:
    """None for a network without front end and stream. With `measured`, the front end runs."""
    hearing, plan = compiled.hearing, compiled.plan
    if hearing is None and plan.state == 0:
        return None
    shape = plan.tensor(plan.graph.inputs[0]).shape if plan.graph.inputs else ()
    stream = plan.graph.stream
    axis = stream.axis if stream is not None else next((i for i, size in enumerate(shape) if size > 1), 0)
    rows = shape[axis] if shape else 1
    step = _step(compiled.streamed) if compiled.streamed is not None else None
    if hearing is None:
        return Listening(rows, rows, plan.state, step=step)
    return Listening(
        hearing.rows, hearing.hop, plan.state, _front_end(compiled, hearing, measured), step, _events(hearing)
    )


def without_hearing(compiled: Compiled) -> Compiled:
    """The network alone, which a report checks layer by layer."""
    return replace(compiled, hearing=None)


def _step(found: Streamed) -> Step:
    return Step(
        found.meaning,
        found.rows,
        found.hop,
        found.macs,
        found.window_macs,
        found.needed,
        found.warm_up,
        found.late,
        found.reasons,
    )


def _front_end(compiled: Compiled, hearing: Hearing, measured: bool) -> FrontEnd:
    framing, cost, unit = hearing.front_end.framing, None, ""
    if measured:
        with place(None) as where:
            profile = profile_job(compiled, where)
        cost, unit = profile.layers[0].cost, profile.unit
    each, window = (1000 * size / framing.rate for size in (framing.step, framing.window))
    return FrontEnd(hearing.front_end.told, each, window, cost, unit, state_bytes(hearing.front_end))


def _events(hearing: Hearing) -> Events:
    listen = hearing.recipe.listen
    return Events(len(hearing.classes), listen.mean, listen.cutoff, listen.consecutive, listen.cool_off)
