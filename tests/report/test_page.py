"""The page: sound HTML that needs nothing else, says everything, and is the same each time."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from nnbuild.device.accelerator import AcceleratorUse, DeviceLayer
from nnbuild.report.facts import Facts, as_object, from_object
from nnbuild.report.listening import Events, FrontEnd, Listening, Step
from nnbuild.report.number_format import MINUS, TIMES
from nnbuild.report.page import page
from nnbuild.report.palette import PAINTS
from tests.report import samples

ALONE = {"meta", "link", "br", "wbr"}
FULL = 1_000_000


class Reader(HTMLParser):
    """What a page holds, as far as the tests ask; refuses tags that do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.inside: dict[str, list[list[str]]] = {"table": [], "svg": []}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        for outer in set(self.open) & self.inside.keys():
            self.inside[outer][-1].append(tag)
        if tag in self.inside:
            self.inside[tag].append([])
        if tag not in ALONE:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "title", "desc"} & set(self.open):
            self.texts.append(data)


def read(facts: Facts) -> Reader:
    reader = Reader()
    reader.feed(page(facts))
    reader.close()
    assert reader.open == []
    return reader


def text(facts: Facts) -> str:
    return re.sub(r"\s+", " ", " ".join(read(facts).texts))


EVERY: list[Any] = [samples.facts(), samples.not_run(), samples.large(60), replace(samples.facts(), quantization=None)]


@pytest.mark.parametrize("facts", EVERY)
def test_every_table_and_picture_says_what_it_is(facts: Facts) -> None:
    reader = read(facts)
    assert reader.inside["table"]
    assert all("caption" in tags and "th" in tags for tags in reader.inside["table"])
    assert all(tags[:2] == ["title", "desc"] for tags in reader.inside["svg"])
    heads = [attributes for tag, attributes in reader.tags if tag == "th"]
    assert all(attributes["scope"] in ("row", "col") for attributes in heads)
    names = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(names) == len(set(names))
    for _, attributes in reader.tags:
        for name in (attributes.get("aria-labelledby") or "").split():
            assert name in names
        target = attributes.get("href") or "#"
        assert target == "data:," or target[1:] in ("", *names)


@pytest.mark.parametrize("facts", EVERY)
def test_it_needs_nothing_else(facts: Facts) -> None:
    content = page(facts)
    assert "http" not in content
    assert not re.search(r"<script|<iframe|<img|src=|@import|url\(|\son\w+=", content)


def test_every_colour_is_known() -> None:
    assert set(re.findall(r"var\(--([\w-]+)\)", page(samples.large(20)))) - {"heat"} <= PAINTS.keys()


def test_all_that_is_known_is_said() -> None:
    said = text(samples.facts())
    for piece in (
        "PASS",
        "3,000 instructions, 2.00 per MAC",
        "20,000 of 1,048,576",
        f"next best scalar: 2.0{TIMES} the cycles, {MINUS}10 B of weights, {MINUS}16 B of scratch",
        "It is fullest at step 1, b: 576 bytes are in use.",
        "shares bytes with sum",
        "at most 248 bytes of stack, of the 2,048",
        "The layer with the most noise is b, 31.5 dB.",
        "Accuracy on the labels 90.00 %",
        "0 of 30 integers differ",
        "expf: nn_expf.c",
        "nnbuild report net.h5 --board stm32 --quantize int8",
        "gcc 12",
        "a" * 64,
        "0123456789abcdef",
        "A note",
    ):
        assert piece in said, piece


def test_what_was_not_run_is_said() -> None:
    said = text(samples.not_run())
    assert "NOT RUN" in said
    assert "Nothing was run: no board. Costs on this page are estimates." in said
    assert "PASS" not in said


def test_a_failed_check_is_seen_at_once() -> None:
    check = samples.check()
    gates = (replace(check.gates[0], passed=False), *check.gates[1:])
    said = text(replace(samples.facts(), check=replace(check, gates=gates)))
    assert "FAIL" in said
    assert "PASS" not in said
    assert "1 of 2" in said


def test_names_are_no_markup() -> None:
    evil = '<script>alert("x")</script>&'
    facts = samples.facts()
    node, row, origin = (
        replace(facts.nodes[1], name=evil),
        replace(facts.layers[0], name=evil, kernel=evil),
        replace(facts.origin, command=evil),
    )
    content = page(replace(facts, name=evil, nodes=(facts.nodes[0], node), layers=(row,), origin=origin, notes=(evil,)))
    assert "<script" not in content
    assert "&lt;script&gt;" in content


def test_many_classes_are_told_by_what_is_confused_most() -> None:
    count = 1000
    matrix = tuple(
        tuple(5 if b == (a + 1) % count and a < 3 else int(a == b) for b in range(count)) for a in range(count)
    )
    check = samples.check()
    output = replace(check.outputs[0], confusion=matrix)
    facts = replace(samples.facts(), check=replace(check, outputs=(output,)))
    assert "Most frequent confusions, of 1,000 classes" in text(facts)
    assert len(page(facts)) < FULL / 4


def test_a_large_model_makes_no_large_page() -> None:
    assert len(page(samples.large(400)).encode()) < FULL


def test_the_same_facts_give_the_same_bytes() -> None:
    assert page(samples.large(50)) == page(samples.large(50))


def test_a_picture_that_has_nothing_to_show_is_left_out() -> None:
    assert "This model needs no arena." in text(replace(samples.facts(), buffers=(), peak=None, arena=0))


def test_a_program_that_chooses_as_it_runs_names_both_kernels() -> None:
    facts = samples.facts()
    both = replace(facts.layers[0], versions=(("avx2_fma", "blocked"), ("sse2", "scalar")))
    said = text(replace(facts, layers=(both, *facts.layers[1:])))
    assert "blocked for avx2_fma, scalar for sse2" in said


def test_a_device_beside_the_processor_has_a_section() -> None:
    assert 'id="device"' not in page(samples.facts())
    layer = DeviceLayer("conv", 3, 1000.0, 60_000, 512)
    beside = AcceleratorUse("mine", 1000.0, 2, (layer,), (("pool", "its pad is 1"),), 64, busy=2000, idle=20, tasks=6)
    told = page(replace(samples.facts(), beside=beside))
    assert 'id="device"' in told
    assert "mine: 3 tasks a run, estimated 1,000 cycles, measured 1,000 (+0.0 %), idle 1.0 %" in told
    assert "use of its multipliers 93.8 %" in told
    assert "pool stays on the processor: its pad is 1." in told
    assert from_object(json.loads(json.dumps(as_object(replace(samples.facts(), beside=beside))))).beside == beside


def test_the_headline_is_time_where_a_clock_is_known() -> None:
    emulated = samples.facts()
    assert emulated.check is not None
    assert "One run 3.00 k emulated: 3,000 instructions" in text(emulated)
    for kind, shown in (("estimated", "3.06 ms"), ("at least", "≥ 3.06 ms")):
        told = replace(emulated, check=replace(emulated.check, milliseconds=3.064, milliseconds_are=kind))
        wanted = f"One run {shown} estimated for the processor; emulated: 3,000 instructions"
        assert wanted in text(told)
    planned = replace(samples.not_run(), clock=1_000_000)
    assert "One run 3.6 ms estimated at 1 MHz: 3,600 estimated cycles" in text(planned)


def test_a_network_that_listens_has_a_section() -> None:
    assert "Listening" not in page(samples.facts())
    front = FrontEnd("40 bands from 20 to 4000 Hz", 20.0, 30.0, 54_720, "instructions", 3_216)
    step = Step("window", 49, 2, 1_105_408, 2_656_768, 107_008, 25, 0, (("conv <1>", "padding makes 7 new"),))
    listening = Listening(49, 2, 20_480, front, step, Events(2, 5, 0.9, 1, 50))
    told = page(replace(samples.facts(), listening=listening))
    for words in (
        "54,720",
        "a step takes 2 of 49 rows and means the window that ends there: 1,105,408 MACs, 2.4 times fewer",
        "trained without padding along time, 107,008",
        "2 classes count, where the mean of 5 answers is above 0.9; then none for 50 runs",
        "The first answer that counts is there after 1010 ms; an event waits 160 ms of answers before it in the mean.",
        "Layer conv &lt;1&gt; is not cheaper: padding makes 7 new.",
    ):
        assert words in told, words
    plain = page(replace(samples.facts(), listening=Listening(3, 3, 3_888)))
    assert "a run takes 3 rows, all of which are new; earlier rows are kept in the state" in plain
    kept = from_object(json.loads(json.dumps(as_object(replace(samples.facts(), listening=listening)))))
    assert kept.listening == listening
