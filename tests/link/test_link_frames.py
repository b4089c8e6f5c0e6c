"""The frame format, in Python and against the C side."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from link_devices import MemoryDevice

from nnbuild.device.frames import GARBLED, Command, FrameReader, Message, Status, decode, encode, stuff, unstuff


@given(st.binary(max_size=1200))
def test_stuffing_comes_back_and_holds_no_zero(data: bytes) -> None:
    assert 0 not in stuff(data)
    assert unstuff(stuff(data)) == data


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"\0\0", b"x" * 253, b"x" * 254, b"x" * 255, b"x" * 254 + b"\0", b"\0" + b"x" * 508, b"x\0" * 300],
)
def test_stuffing_at_block_borders(data: bytes) -> None:
    assert unstuff(stuff(data)) == data
    assert 0 not in stuff(data)


@given(st.binary(max_size=64))
def test_unstuffing_noise_never_fails(data: bytes) -> None:
    decode(data.replace(b"\0", b"\1"))


def test_every_single_byte_change_is_noticed() -> None:
    message = Message(Command.WRITE, 7, 0x12345678, bytes(range(40)))
    frame = encode(message)
    for position in range(len(frame)):
        for value in (0, 1, 0x55, 0xFF, frame[position] ^ 0x80):
            changed = frame[:position] + bytes([value]) + frame[position + 1 :]
            decoded = [found for found in FrameReader().feed(changed + b"\0") if found is not None]
            assert decoded in ([], [message])


def test_reader_finds_frames_among_noise_whatever_the_cuts() -> None:
    rng = random.Random(5)
    messages = [
        Message(rng.randrange(256), rng.randrange(65536), 9, rng.randbytes(rng.randrange(300))) for _ in range(50)
    ]
    line = b"".join(rng.randbytes(rng.randrange(20)) + encode(message) for message in messages)
    reader, found = FrameReader(), []
    while line:
        cut = rng.randrange(1, 40)
        found += [message for message in reader.feed(line[:cut]) if message is not None]
        line = line[cut:]
    assert found == messages


def test_reader_lets_endless_noise_go() -> None:
    reader = FrameReader()
    assert None in reader.feed(b"\x55" * 300_000)
    assert reader.feed(encode(Message(Command.RUN)))[-1] == Message(Command.RUN)


@pytest.mark.parametrize("size", [0, 1, 200, 238, 239, 240, 241, 242, 243, 244, 245, 254, 500, 1018])
@pytest.mark.parametrize("filler", [b"\0", b"\x01", b"\xff"])
def test_c_side_takes_and_sends_every_length(device: MemoryDevice, size: int, filler: bytes) -> None:
    """A write of any length is understood in C (refused for its range, not for its frame)."""
    hello, write = Message(Command.HELLO, 1, 3), Message(Command.WRITE, 2, 3, b"\0\0\0\0\0\0" + filler * size)
    device.feed(encode(hello) + encode(write))
    answers = FrameReader().feed(device.take())
    assert [answer is not None and answer.status for answer in answers] == [
        Status.OK,
        Status.OK if size <= 24 else Status.RANGE,
    ]


@pytest.mark.parametrize("size", range(0, 780, 37))
def test_c_side_sends_what_python_reads(device: MemoryDevice, size: int) -> None:
    request = Message(Command.DESCRIBE, 2, 3, (0).to_bytes(4, "little") + size.to_bytes(2, "little"))
    device.feed(encode(Message(Command.HELLO, 1, 3)) + encode(request))
    _, answer = FrameReader().feed(device.take())
    assert answer is not None
    assert len(answer.payload) == size
    assert answer.payload.startswith(b'{"name":"fake","hash"'[:size])


def test_c_side_reports_a_broken_frame(device: MemoryDevice) -> None:
    frame = bytearray(encode(Message(Command.HELLO, 1, 3)))
    frame[5] ^= 0x10
    device.feed(bytes(frame))
    assert [message and message.type for message in FrameReader().feed(device.take())] == [GARBLED]


def test_c_side_skips_an_overlong_frame(device: MemoryDevice) -> None:
    device.feed(b"\x55" * 5000 + b"\0" + encode(Message(Command.HELLO, 1, 3)))
    kinds = [message and message.type for message in FrameReader().feed(device.take())]
    assert kinds == [GARBLED, Command.HELLO | 0x80]
