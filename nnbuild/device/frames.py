"""Frames of the link: byte stuffing, CRC and message header. docs/link.md has the layouts."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum

HEADER = struct.Struct("<BBHI")
_CRC = struct.Struct("<I")
_LONGEST_FRAME = 1 << 17  # a longer run of bytes without a zero is noise, not a frame


class Command(IntEnum):
    """Types of requests; a reply adds REPLY."""

    HELLO = 0x01
    DESCRIBE = 0x02
    WRITE = 0x03
    RUN = 0x04
    STEPS = 0x05
    PROFILE = 0x06
    READ = 0x07
    STACK = 0x08
    INIT = 0x09
    RESET = 0x0A


LOG = 0x60
FAULT = 0x61
GARBLED = 0x62
REPLY = 0x80


class Status(IntEnum):
    OK = 0
    UNKNOWN = 1
    MALFORMED = 2
    RANGE = 3
    MODEL = 4
    ORDER = 5
    NO_SESSION = 6
    STALE = 7


@dataclass(frozen=True)
class Message:
    """The contents of a frame. Requests have status 0; unsolicited messages have sequence and session 0."""

    type: int
    sequence: int = 0
    session: int = 0
    payload: bytes = b""
    status: int = 0


def stuff(data: bytes) -> bytes:
    """COBS: encodes the bytes without a zero."""
    out = bytearray()
    for piece in data.split(b"\0"):
        while len(piece) >= 254:
            out += b"\xff" + piece[:254]
            piece = piece[254:]
        out.append(len(piece) + 1)
        out += piece
    return bytes(out)


def unstuff(data: bytes) -> bytes | None:
    """The inverse of `stuff`; None where the blocks are inconsistent."""
    out = bytearray()
    position = 0
    while position < len(data):
        code = data[position]
        block = data[position + 1 : position + code]
        if code == 0 or len(block) != code - 1:
            return None
        out += block
        position += code
        if code != 0xFF and position < len(data):
            out.append(0)
    return bytes(out)


def encode(message: Message) -> bytes:
    """The bytes to send for a message."""
    head = HEADER.pack(message.type, message.status, message.sequence, message.session)
    body = head + message.payload
    return b"\0" + stuff(body + _CRC.pack(zlib.crc32(body))) + b"\0"


def decode(stuffed: bytes) -> Message | None:
    """The message between two zeros; None if it is corrupt."""
    body = unstuff(stuffed)
    if body is None or len(body) < HEADER.size + _CRC.size:
        return None
    body, crc = body[: -_CRC.size], _CRC.unpack(body[-_CRC.size :])[0]
    if zlib.crc32(body) != crc:
        return None
    kind, status, sequence, session = HEADER.unpack_from(body)
    return Message(kind, sequence, session, body[HEADER.size :], status)


class FrameReader:
    """Splits received bytes into messages; None stands for a corrupt frame."""

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[Message | None]:
        messages: list[Message | None] = []
        *frames, rest = data.split(b"\0")
        for frame in frames:
            stuffed = bytes(self._pending + frame)
            self._pending.clear()
            if stuffed:
                messages.append(decode(stuffed))
        self._pending += rest
        if len(self._pending) > _LONGEST_FRAME:
            self._pending.clear()
            messages.append(None)
        return messages
