"""The report's facts on a network that runs repeatedly on new input: its front end, a step of its stream, and its
events."""

from __future__ import annotations

from dataclasses import dataclass

from nnbuild.report.html import Row, bullets, number, paragraph, table


@dataclass(frozen=True)
class FrontEnd:
    """`each` and `window`: milliseconds between rows, and of one row's samples. `cost` of a row is None where
    nothing ran; `memory`: bytes of its struct."""

    what: str
    each: float
    window: float
    cost: int | None
    unit: str
    memory: int


@dataclass(frozen=True)
class Step:
    """A step of a streamed window. `needed`: multiplications of a step if trained without padding; `late`: rows
    after the last one of an output before it is known; `kept`: (layer, the reason why it is not cheaper)."""

    meaning: str
    rows: int
    hop: int
    macs: int
    window_macs: int
    needed: int
    warm_up: int
    late: int
    kept: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Events:
    """The conditions of an event: the mean of this many answers above `cutoff`, this many times in a row, with
    `cool_off` runs without events after one."""

    classes: int
    mean: int
    cutoff: float
    consecutive: int
    cool_off: int


@dataclass(frozen=True)
class Listening:
    """A run takes `rows` of features, `hop` of them new; `state` is the network's state in bytes."""

    rows: int
    hop: int
    state: int
    front_end: FrontEnd | None = None
    step: Step | None = None
    events: Events | None = None


def listening(told: Listening, cost: float, unit: str) -> tuple[str, ...]:
    """`cost` is that of one run of the network."""
    rows: list[Row] = []
    front = told.front_end
    if front is not None:
        price = f"{front.cost:,}" if front.cost is not None else ""
        each = f"one row every {front.each:g} ms"
        rows.append(["front end", front.what, number(price, each), number(f"{front.memory:,}")])
    rows.append(["network", _network(told), number(f"{cost:,.0f}", "a run"), number(f"{told.state:,}", "state")])
    if told.events is not None:
        rows.append(["events", _events(told.events), "", ""])
    heads: Row = ["part", "what it does", number(unit), number("bytes")]
    return (
        table("From input to event", heads, rows),
        paragraph(_time(told)),
        bullets([f"Layer {layer} is not cheaper: {why}." for layer, why in told.step.kept]) if told.step else "",
    )


def _network(told: Listening) -> str:
    step = told.step
    if step is None:
        new = "all of which are new" if told.hop >= told.rows else f"{told.hop} of which are new"
        return f"a run takes {told.rows} rows, {new}" + ("; earlier rows are kept in the state" * (told.state > 0))
    fewer = f"{step.macs:,} MACs, {step.window_macs / max(1, step.macs):.1f} times fewer than the window's"
    more = f"; trained without padding along time, {step.needed:,}" if step.needed < step.macs else ""
    meaning = "the window that ends there" if step.meaning == "window" else "the whole stream"
    return f"a step takes {step.hop} of {step.rows} rows and means {meaning}: {fewer}{more}"


def _events(events: Events) -> str:
    answers = f"the mean of {events.mean} answers" if events.mean > 1 else "an answer"
    often = f" {events.consecutive} times in a row" if events.consecutive > 1 else ""
    quiet = f"; then none for {events.cool_off} runs" if events.cool_off else ""
    return f"{events.classes} classes count, where {answers} is above {events.cutoff:g}{often}{quiet}"


def _time(told: Listening) -> str:
    """When the first answer is available, and the delay of answers."""
    warm = told.step.warm_up * told.step.hop if told.step is not None else told.rows
    late = told.step.late if told.step is not None else 0
    mean = (told.events.mean - 1) * told.hop if told.events is not None else 0
    front = told.front_end
    if front is None:
        words = f"The first answer that counts is there after {warm:,} rows"
        return f"{words}; answers are {late:,} rows late." if late else f"{words}."
    first = front.window + (warm - 1) * front.each
    words = f"The first answer that counts is there after {first:g} ms"
    waits = [f"{late * front.each:g} ms for rows to come"] if late else []
    waits += [f"{mean * front.each:g} ms of answers before it in the mean"] if mean else []
    return f"{words}; an event waits {' and '.join(waits)}." if waits else f"{words}."
