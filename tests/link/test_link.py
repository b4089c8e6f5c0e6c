"""The client against the C side: every command, on a good line."""

from __future__ import annotations

import dataclasses
import json
import random
import re
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from link_devices import Faults, MemoryDevice, MemoryTransport, fake_outputs, memory_link, samples

from nnbuild.base.errors import NnbuildError, UsageError
from nnbuild.device.descriptor import parse_descriptor
from nnbuild.device.errors import (
    DeviceFault,
    DeviceMissing,
    DeviceRestarted,
    ProtocolError,
    TransportClosed,
    WrongFirmware,
)
from nnbuild.device.frames import Command, FrameReader, Message, Status, encode
from nnbuild.device.link import Link, Region, StackUse
from nnbuild.device.session import dump_layers, measure, open_model, profile_sample, run_samples, to_wire, write_sample

DESCRIPTOR_KEYS = ["name", "hash", "inputs", "outputs", "steps", "shape", "type", "scale", "zero_point", "layer", "op"]


@pytest.fixture
def transport(device: MemoryDevice) -> MemoryTransport:
    return MemoryTransport(device)


@pytest.fixture
def link(transport: MemoryTransport) -> Link:
    return memory_link(transport)


def test_hello_tells_the_facts(link: Link) -> None:
    hello = link.hello()
    assert (hello.version, hello.payload, hello.steps, hello.hertz, hello.unit) == (
        1,
        1024,
        3,
        168_000_000,
        "instructions",
    )


def test_describe_gives_the_model(link: Link) -> None:
    model = open_model(link)
    assert (model.name, model.hash, model.version) == ("fake", "0123456789abcdef", "0.1.0")
    assert [(tensor.name, tensor.shape, tensor.type) for tensor in model.inputs] == [
        ("a", (2, 3), "float32"),
        ("b", (4,), "int8"),
    ]
    assert (model.outputs[1].scale, model.outputs[1].zero_point, model.outputs[0].scale) == (0.25, 2, None)
    assert [(step.layer, step.op, step.kernel, step.macs) for step in model.steps] == [
        ("double", "Mul", "scalar", 6),
        ("sum", "Add", "scalar", 3),
        ("mix", "Dense", "smlad", 16),
    ]


def test_a_known_descriptor_is_not_read_again(link: Link, transport: MemoryTransport) -> None:
    hello = link.hello()
    text = link._read_chunks(hello.descriptor_size, link._describe_chunk)
    before = transport.written
    assert link.describe(text).name == "fake"
    assert transport.written == before
    assert link.describe(text + b" ").name == "fake"
    assert transport.written > before


def test_samples_give_the_right_results_in_order(link: Link) -> None:
    model = open_model(link)
    batch = samples(5)
    runs = run_samples(link, model, batch, stateful=True)
    for index, sample in enumerate(batch):
        total, mixed = fake_outputs(sample, index)
        assert np.array_equal(runs.raw[0][index], total)
        assert np.array_equal(runs.raw[1][index], mixed)
        assert np.array_equal(runs.y[1][index], (mixed.astype(np.float32) - 2) * np.float32(0.25))
    assert runs.ticks == (7,) * 5


def test_reset_each_starts_every_sample_anew(link: Link) -> None:
    batch = samples(3)
    runs = run_samples(link, open_model(link), batch, stateful=True, reset_each=True)
    for index, sample in enumerate(batch):
        assert np.array_equal(runs.raw[1][index], fake_outputs(sample, 0)[1])


def test_no_samples_give_empty_results(link: Link) -> None:
    runs = run_samples(link, open_model(link), [])
    assert [values.shape for values in runs.raw] == [(0, 3), (0, 4)]


def test_layers_and_profile(link: Link) -> None:
    model = open_model(link)
    sample = samples(1)[0]
    layers = dict(dump_layers(link, model, sample))
    assert np.array_equal(layers[0], sample["a"] * 2)
    assert np.array_equal(layers[1], fake_outputs(sample, 0)[0])
    assert np.array_equal(layers[2], fake_outputs(sample, 0)[1])
    assert profile_sample(link, model, sample) == [7, 7, 7]


def test_stack_init_state_and_reset(link: Link) -> None:
    model = open_model(link)
    assert link.stack() == StackUse(1234, 4096)
    write_sample(link, model, samples(1)[0])
    link.run()
    assert link.read(Region.STATE, 0, 4) == struct.pack("<i", 1)
    assert link.init() == 7
    assert link.read(Region.STATE, 0, 4) == struct.pack("<i", 0)
    link.reset()
    assert link.hello().steps == 3


def test_chunks_of_any_size(link: Link) -> None:
    hello = link.hello()
    whole = link._read_chunks(hello.descriptor_size, link._describe_chunk)
    link._limit = link._chunk = 13
    assert link._read_chunks(hello.descriptor_size, link._describe_chunk) == whole


@pytest.mark.parametrize(
    ("region", "index", "offset", "size", "status"),
    [
        (9, 0, 0, 1, Status.RANGE),
        (Region.INPUT, 2, 0, 1, Status.RANGE),
        (Region.INPUT, 0, 25, 0, Status.RANGE),
        (Region.INPUT, 0, 24, 1, Status.RANGE),
        (Region.INPUT, 0, 0xFFFFFFFF, 24, Status.RANGE),
        (Region.INPUT, 0, 0, 0xFFFF, Status.RANGE),
        (Region.OUTPUT, 0, 0, 12, Status.ORDER),
        (Region.STEP_OUTPUT, 0, 0, 12, Status.ORDER),
        (Region.INPUT, 0, 24, 0, Status.OK),
    ],
)
def test_wrong_reads_are_refused(
    device: MemoryDevice, region: int, index: int, offset: int, size: int, status: int
) -> None:
    request = Message(Command.READ, 2, 3, struct.pack("<BxHIH", region, index, offset, size))
    device.feed(encode(Message(Command.HELLO, 1, 3)) + encode(request))
    assert FrameReader().feed(device.take())[1] == Message(Command.READ | 0x80, 2, 3, b"", status)


@pytest.mark.parametrize(
    ("command", "payload", "status"),
    [
        (0x0B, b"", Status.UNKNOWN),
        (0x7F, b"", Status.UNKNOWN),
        (Command.HELLO, b"x", Status.MALFORMED),
        (Command.WRITE, b"\0\0\0\0\0", Status.MALFORMED),
        (Command.READ, b"\0" * 9, Status.MALFORMED),
        (Command.READ, b"\0" * 11, Status.MALFORMED),
        (Command.RUN, b"\0", Status.MALFORMED),
        (Command.STEPS, struct.pack("<II", 1, 2), Status.ORDER),
        (Command.STEPS, struct.pack("<II", 2, 1), Status.RANGE),
        (Command.STEPS, struct.pack("<II", 0, 4), Status.RANGE),
        (Command.WRITE, struct.pack("<HI", 0, 0xFFFFFFFC) + b"\0" * 8, Status.RANGE),
    ],
)
def test_wrong_requests_are_refused(device: MemoryDevice, command: int, payload: bytes, status: int) -> None:
    device.feed(encode(Message(Command.HELLO, 1, 3)) + encode(Message(command, 2, 3, payload)))
    assert FrameReader().feed(device.take())[1] == Message(command | 0x80, 2, 3, b"", status)


def test_a_repeated_request_runs_once(device: MemoryDevice) -> None:
    run = encode(Message(Command.RUN, 2, 3))
    state = encode(Message(Command.READ, 3, 3, struct.pack("<BxHIH", Region.STATE, 0, 0, 4)))
    device.feed(encode(Message(Command.HELLO, 1, 3)) + run * 3 + state)
    _, first, second, third, read = FrameReader().feed(device.take())
    assert first == second == third
    assert read is not None and read.payload == struct.pack("<i", 1)


def test_an_old_request_is_refused_and_changes_nothing(device: MemoryDevice) -> None:
    device.feed(encode(Message(Command.HELLO, 65535, 3)) + encode(Message(Command.INIT, 0, 3)))
    device.feed(
        encode(Message(Command.RUN, 5, 3)) + encode(Message(Command.RUN, 4, 3)) + encode(Message(Command.RUN, 5, 3))
    )
    answers = FrameReader().feed(device.take())
    assert [answer.status for answer in answers if answer] == [0, 0, 0, Status.STALE, 0]
    assert answers[2] == answers[4]


def test_without_a_session_nothing_is_done(device: MemoryDevice) -> None:
    for command in Command:
        if command != Command.HELLO:
            device.feed(encode(Message(command, 1, 3)))
    answers = FrameReader().feed(device.take())
    assert {answer.status for answer in answers if answer} == {Status.NO_SESSION}
    assert len(answers) == len(Command) - 1


def test_log_text_comes_beside_the_replies(link: Link, device: MemoryDevice, transport: MemoryTransport) -> None:
    long = "clock 168 MHz; " * 20
    transport.before_feed = lambda _: device.log(long)
    link.hello()
    assert "".join(link.log) == long


def test_a_fault_is_told_in_words(link: Link, device: MemoryDevice, transport: MemoryTransport) -> None:
    link.hello()
    words = [0] * 13
    words[6], words[8], words[11] = 0x08001234, (1 << 9) | (1 << 15), 0x20030000
    transport.before_feed = lambda _: device.fault(1, words)
    with pytest.raises(DeviceFault) as caught:
        link.run()
    assert "bus error on a data access at pc 0x08001234, address 0x20030000" in str(caught.value)


def test_a_fault_from_before_the_session_is_only_noted(link: Link, device: MemoryDevice) -> None:
    device.fault(2, [2, 0x80000010, 0])
    link.hello()
    assert "illegal instruction at pc 0x80000010" in link.log[0]


def test_silence_ends_in_an_error(link: Link, transport: MemoryTransport) -> None:
    transport.silent = True
    with pytest.raises(DeviceMissing) as caught:
        link.hello()
    assert str(caught.value) == (
        "fake device: The device does not answer while saying hello: nothing comes back. "
        "Check that it is powered and connected, runs this firmware, and uses the same line rate."
    )
    assert caught.value.exit_code == 3


def test_silence_in_the_middle_ends_in_an_error(link: Link, transport: MemoryTransport) -> None:
    model = open_model(link)
    transport.silent = True
    for job in (link.run, link.profile, link.stack, lambda: write_sample(link, model, samples(1)[0])):
        with pytest.raises(DeviceMissing, match="nothing comes back"):
            job()


def test_endless_noise_ends_in_an_error(device: MemoryDevice) -> None:
    class Noise(MemoryTransport):
        def read(self, timeout: float) -> bytes:
            self.clock += 0.001
            return self.random.randbytes(50)

    with pytest.raises(DeviceMissing, match="only corrupted frames come back"):
        memory_link(Noise(device)).hello()


def test_garbage_at_boot_does_no_harm(device: MemoryDevice) -> None:
    for seed in range(200):
        device.start()
        transport = MemoryTransport(device)
        rng = random.Random(seed)
        device.feed(rng.randbytes(rng.randrange(3000)))
        transport._to_host.append((0.0, rng.randbytes(rng.randrange(3000))))
        link = memory_link(transport, seed)
        batch = samples(1, seed)
        runs = run_samples(link, open_model(link), batch)
        assert np.array_equal(runs.raw[1][0], fake_outputs(batch[0], 0)[1])


def test_a_closed_line_is_an_error_at_every_step(device: MemoryDevice) -> None:
    def job(transport: MemoryTransport) -> None:
        link = memory_link(transport)
        model = open_model(link)
        run_samples(link, model, samples(2))
        profile_sample(link, model, samples(1)[0])
        list(dump_layers(link, model, samples(1)[0]))
        link.stack()
        link.reset()

    whole = MemoryTransport(device)
    job(whole)
    for at in range(1, whole.operations + 1):
        device.start()
        transport = MemoryTransport(device)
        transport.close_at = at
        with pytest.raises(TransportClosed, match=r"fake device: The line ended\. It happened while"):
            job(transport)


def test_a_device_that_keeps_restarting_is_given_up(device: MemoryDevice) -> None:
    transport = MemoryTransport(device)
    link = memory_link(transport)
    model = open_model(link)

    def restart(line: MemoryTransport) -> None:
        if line.written % 3 == 0:
            device.start()

    transport.before_feed = restart
    with pytest.raises(DeviceRestarted, match="The device restarted while"):
        run_samples(link, model, samples(50))


def test_everything_is_measured_though_the_device_restarts(device: MemoryDevice) -> None:
    """One restart, at each request of the whole measurement in turn."""
    batch = samples(2)

    def measured(restart_at: int) -> int:
        def restart(line: MemoryTransport) -> None:
            if line.written == restart_at:
                device.start()

        device.start()
        transport = MemoryTransport(device)
        link = memory_link(transport, restart_at)
        model = open_model(link)
        transport.written = 0
        transport.before_feed = restart
        found = measure(link, model, batch, stateful=True)
        assert [np.array_equal(found.runs.raw[1][i], fake_outputs(batch[i], i)[1]) for i in range(2)] == [True, True]
        assert (found.init_ticks, found.stack) == (7, StackUse(1234, 4096))
        assert [(layer.name, layer.cost) for layer in found.layers] == [("double", 7), ("sum", 7), ("mix", 7)]
        assert np.array_equal(dict(dump_layers(link, model, batch[0]))[2], fake_outputs(batch[0], 0)[1])
        return transport.written

    requests = measured(0)
    for at in range(1, requests + 1):
        assert measured(at) >= requests


def test_a_description_of_something_else_is_refused(link: Link) -> None:
    link.greeting = dataclasses.replace(link.hello(), steps=4)
    with pytest.raises(WrongFirmware, match=r"The model has 4 steps, its descriptor 3\."):
        link.describe()


def test_a_restart_with_another_model_is_noticed(device: MemoryDevice) -> None:
    transport = MemoryTransport(device)
    link = memory_link(transport)
    model = open_model(link)
    assert link.greeting is not None
    link.greeting = dataclasses.replace(link.greeting, descriptor_crc=1)
    device.start()
    with pytest.raises(WrongFirmware, match="The device restarted with a model other than 'fake'"):
        run_samples(link, model, samples(1))


@pytest.mark.turns(2)
@pytest.mark.parametrize("trials", [50, pytest.param(400, marks=pytest.mark.fuzz)])
@pytest.mark.parametrize("stateful", [False, True])
def test_a_restart_in_the_middle_never_gives_a_wrong_result(device: MemoryDevice, stateful: bool, trials: int) -> None:
    for seed in range(trials):
        device.start()
        restart_at = random.Random(seed).randrange(3, 30)

        def restart(line: MemoryTransport, at: int = restart_at) -> None:
            if line.written == at:
                device.start()

        transport = MemoryTransport(device, Faults(drop=0.002, flip=0.002), seed)
        link = memory_link(transport, seed)
        model = open_model(link)
        transport.written = 0
        transport.before_feed = restart
        batch = samples(4, seed)
        runs = run_samples(link, model, batch, stateful=stateful, reset_each=not stateful)
        for index, sample in enumerate(batch):
            assert np.array_equal(runs.raw[0][index], fake_outputs(sample, 0)[0])
            assert np.array_equal(runs.raw[1][index], fake_outputs(sample, index if stateful else 0)[1])


def test_another_model_is_refused(link: Link) -> None:
    with pytest.raises(WrongFirmware) as caught:
        open_model(link, _described(link, hash="feedfacefeedface"))
    assert str(caught.value) == (
        "fake device: The device carries model 'fake' (0123456789abcdef), not the one just built (feedfacefeedface). "
        "Flash the new firmware first, for example: scons flash check"
    )


def _facts(link: Link) -> dict[str, Any]:
    return dict(open_model(link).facts)


def _described(link: Link, **changes: object) -> bytes:
    """The fake device's descriptor with changes."""
    return json.dumps({**_facts(link), **changes}, separators=(",", ":")).encode()


def test_other_facts_of_the_same_model_are_accepted(link: Link) -> None:
    assert open_model(link, _described(link, version="another")).name == "fake"


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"name": "c"}, "its output 1 as 'mix' (int8 [4], scale 0.25, zero point 2); the model's is 'c' (int8 [4]"),
        ({"scale": 0.5}, "(int8 [4], scale 0.25, zero point 2); the model's is 'mix' (int8 [4], scale 0.5, zero"),
        ({"zero_point": 0}, "zero point 2); the model's is 'mix' (int8 [4], scale 0.25, zero point 0)"),
        ({"shape": [2, 2]}, "(int8 [4], scale 0.25, zero point 2); the model's is 'mix' (int8 [2, 2], scale"),
        ({"type": "uint8"}, "(int8 [4], scale 0.25, zero point 2); the model's is 'mix' (uint8 [4], scale"),
    ],
)
def test_a_wrong_description_of_the_right_model_is_refused(link: Link, change: dict[str, object], wrong: str) -> None:
    first, second = _facts(link)["outputs"]
    with pytest.raises(WrongFirmware, match=re.escape(wrong)):
        open_model(link, _described(link, outputs=[first, {**second, **change}]))


def test_missing_and_swapped_outputs_are_refused(link: Link) -> None:
    first, second = _facts(link)["outputs"]
    with pytest.raises(WrongFirmware, match=r"its output 1 as 'mix' .*; the model's is absent"):
        open_model(link, _described(link, outputs=[first]))
    with pytest.raises(WrongFirmware, match="its output 0 as "):
        open_model(link, _described(link, outputs=[second, first]))


def test_a_wrong_description_of_a_layers_output_is_refused(link: Link) -> None:
    *others, last = _facts(link)["steps"]
    changed = {**last, "output": {**last["output"], "scale": 0.5}}
    with pytest.raises(WrongFirmware, match="its layer 'mix' as "):
        open_model(link, _described(link, steps=[*others, changed]))


def test_another_link_version_is_refused(link: Link, transport: MemoryTransport) -> None:
    def hello_of_version_2(_: MemoryTransport) -> None:
        answer = Message(Command.HELLO | 0x80, link._sequence, link._session, b"\x02" + b"\0" * 19)
        transport._to_host.append((0.0, encode(answer)))

    transport.before_feed = hello_of_version_2
    with pytest.raises(WrongFirmware, match="The firmware speaks version 2 of the link, this nnbuild version 1"):
        link.hello()


def test_a_greeting_without_sense_is_refused(link: Link, transport: MemoryTransport) -> None:
    def odd_hello(_: MemoryTransport) -> None:
        payload = struct.pack("<BBHIIII", 1, 0, 1024, 1 << 31, 0, 3, 1)
        transport._to_host.append((0.0, encode(Message(Command.HELLO | 0x80, link._sequence, link._session, payload))))

    transport.before_feed = odd_hello
    with pytest.raises(WrongFirmware, match="Its greeting is invalid"):
        link.hello()


class Liar(MemoryTransport):
    """Answers every request with a sound frame, mostly of the wrong contents."""

    def write(self, data: bytes) -> None:
        (request,) = [message for message in FrameReader().feed(data) if message is not None]
        payload = self.random.randbytes(self.random.choice([0, 1, 4, 8, 20, 30, len(request.payload), 100]))
        if request.type == Command.HELLO and self.random.random() < 0.8:
            steps, size = self.random.choice([0, 1, 3, 1 << 30]), self.random.choice([0, 2, 50, 1 << 30])
            payload = struct.pack("<BBHIIII", 1, 0, self.random.choice([0, 16, 1024]), size, 0, steps, 1) + payload[:9]
        status = self.random.choice([0, 0, 0, 0, self.random.randrange(256)])
        answer = Message(request.type | 0x80, request.sequence, request.session, payload, status)
        self._to_host.append((self.clock, encode(answer)))


def test_a_lying_device_never_causes_more_than_an_error(device: MemoryDevice) -> None:
    endings = set()
    for seed in range(2000):
        link = memory_link(Liar(device, seed=seed), seed)
        try:
            link.hello()
            for job in (link.stack, link.run, link.profile, link.init, link.describe):
                job()
            link.write(0, bytes(40))
            endings.add("survived")
        except NnbuildError as error:
            endings.add(type(error).__name__)
    assert {"WrongFirmware", "ProtocolError", "DeviceRestarted", "ModelRefused"} <= endings


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(DESCRIPTOR_KEYS), inner, max_size=9)
        ),
        max_leaves=30,
    )
)
def test_unknown_descriptors_are_refused(facts: object) -> None:
    try:
        parse_descriptor(json.dumps(facts).encode())
    except WrongFirmware as error:
        assert "Build and flash the firmware again" in str(error)


def test_descriptors_that_are_no_json_are_refused() -> None:
    for text in (b"", b"{}", b"[1]", b'{"name": 1', b"\xff", b"[" * 100_000):
        with pytest.raises(WrongFirmware, match="Build and flash the firmware again"):
            parse_descriptor(text)


def test_refusals_that_should_not_happen_are_told(link: Link) -> None:
    link.hello()
    with pytest.raises(ProtocolError, match=r"The device refused a request \(order\) while running step 2"):
        link.steps(2, 3)
    with pytest.raises(ProtocolError, match=r"\(order\) while reading output 0"):
        link.read(Region.OUTPUT, 0, 12)


def test_samples_that_do_not_fit_are_refused(link: Link) -> None:
    model = open_model(link)
    a, b = model.inputs
    with pytest.raises(UsageError, match=r"input 'a': A sample has shape \(3, 2\), the model takes \(2, 3\)"):
        to_wire(a, np.zeros((3, 2), np.float32))
    with pytest.raises(UsageError, match="input 'b': A sample has type int16, the model takes int8"):
        to_wire(b, np.zeros(4, np.int16))
    with pytest.raises(UsageError, match=r"input 'b': the samples have no array for it\. Give arrays named a, b"):
        write_sample(link, model, {"a": np.zeros((2, 3), np.float32)})
    assert to_wire(b, np.array([1, -2, 3, -4], np.int8)) == b"\x01\xfe\x03\xfc"
    assert to_wire(b, np.array([0.25, -0.25, 100, -100], np.float32)) == bytes([256 - 2, 256 - 4, 127, 128])
