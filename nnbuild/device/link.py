"""The host's side of the link: requests survive a bad line, or fail in bounded time with a reason.

Every request has a sequence number, and the device executes each number once: resending is always safe.
"""

from __future__ import annotations

import contextlib
import secrets
import struct
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from nnbuild.device.cores import CoreCosts, CoreMeter
from nnbuild.device.descriptor import ModelInfo, parse_descriptor
from nnbuild.device.errors import (
    DeviceFault,
    DeviceMissing,
    DeviceRestarted,
    ModelRefused,
    ProtocolError,
    TransportClosed,
    WrongFirmware,
)
from nnbuild.device.fault import explain_fault, fault_next_step
from nnbuild.device.frames import FAULT, GARBLED, LOG, REPLY, Command, FrameReader, Message, Status, encode
from nnbuild.device.transport import Transport

PROTOCOL_VERSION = 1
_HELLO = struct.Struct("<BBHIIII")
_SMALLEST_CHUNK = 8
_GROW_AFTER = 8  # chunks that must succeed at the first try before a larger one is tried
_LOG_LINES = 1000
_LARGEST_DESCRIPTOR = 1 << 24


class Region(IntEnum):
    """Readable memory of the model."""

    INPUT = 0
    OUTPUT = 1
    STEP_OUTPUT = 2
    STATE = 3
    TICKS = 4
    DEVICE = 5


@dataclass(frozen=True)
class Timing:
    """Timeouts of the host, in seconds."""

    quiet: float = 0.02  # after a corrupt frame, resend once the line has been silent this long
    first: float = 0.5  # until the first resend; doubled after each
    longest: float = 4.0  # between two resends
    patience: float = 10.0  # for one request
    run_patience: float = 120.0  # for a request that runs the model
    tries: int = 40  # maximum times one request is sent


@dataclass(frozen=True)
class Hello:
    """A device's greeting. order: of the bytes in its memory."""

    version: int
    order: Literal["<", ">"]
    payload: int
    descriptor_size: int
    descriptor_crc: int
    steps: int
    hertz: int
    unit: str


@dataclass(frozen=True)
class StackUse:
    """Stack bytes: the maximum used, and the size; both 0 where unknown."""

    used: int
    size: int


@dataclass
class Counters:
    """Counts of line events, for reports and tests."""

    requests: int = 0
    repeats: int = 0
    broken: int = 0


class _Lost(Exception):
    """A request used up its tries."""


class Link:
    """A session with one device. Call `hello` first."""

    def __init__(
        self,
        transport: Transport,
        timing: Timing | None = None,
        on_log: Callable[[str], None] | None = None,
        random_bits: Callable[[int], int] = secrets.randbits,
        unit: str | None = None,
        per_tick: float = 1.0,
        meter: CoreMeter | None = None,
    ) -> None:
        """`unit` and `per_tick` describe the device's ticks where it cannot know them, as in an emulator; `meter`
        counts instead of the device where there are several cores."""
        self.transport = transport
        self.timing = timing or Timing()
        self.counters = Counters()
        self.log: deque[str] = deque(maxlen=_LOG_LINES)
        self._on_log = on_log
        self._random_bits = random_bits
        self._unit = unit
        self._per_tick = per_tick
        self._meter = meter
        self._session = 0
        self._sequence = 0
        self._reader = FrameReader()
        self._arrived: deque[Message | None] = deque()
        self.greeting: Hello | None = None  # the device's greeting in this session
        self._limit = 64  # maximum data bytes per frame; the device's limit comes with its hello
        self._chunk = self._limit
        self._successes = 0

    @property
    def counted(self) -> CoreCosts | None:
        """Costs of each core in the last run, where counted from outside."""
        return self._meter.last if self._meter is not None else None

    # Commands ---------------------------------------------------------------------------------------------------

    def hello(self) -> Hello:
        """Starts a session: the device discards earlier state and starts a new sequence."""
        self._session = self._random_bits(32)
        self._sequence = self._random_bits(16)
        greeting = self._parse_hello(self._request(Command.HELLO, b"", "saying hello"))
        self._limit = greeting.payload
        self._chunk = self._limit
        self.greeting = greeting
        return greeting

    def _parse_hello(self, answer: bytes) -> Hello:
        cause = ""
        if len(answer) < _HELLO.size or answer[0] != PROTOCOL_VERSION:
            theirs = answer[0] if answer else "?"
            cause = f"The firmware speaks version {theirs} of the link, this nnbuild version {PROTOCOL_VERSION}."
        else:
            version, order, payload, size, crc, steps, hertz = _HELLO.unpack_from(answer)
            if payload >= _SMALLEST_CHUNK and size <= _LARGEST_DESCRIPTOR and 8 * steps <= _LARGEST_DESCRIPTOR:
                unit = self._unit or answer[_HELLO.size :].decode("ascii", "replace")
                return Hello(version, ">" if order else "<", payload, size, crc, steps, hertz, unit)
            cause = f"Its greeting is invalid: {payload} bytes per frame, {size} of description, {steps} steps."
        raise WrongFirmware(self.transport.name, cause, "Build and flash the firmware again with this version.")

    def describe(self, expected: bytes | None = None) -> ModelInfo:
        """The model on the device. `expected` is the caller's descriptor: if its checksum matches, none is read."""
        greeting = self.greeting or self.hello()
        text = expected
        if text is None or not _is_text_of(text, greeting):
            text = self._read_chunks(greeting.descriptor_size, self._describe_chunk)
        if not _is_text_of(text, greeting):
            raise ProtocolError(self.transport.name, "The model's descriptor arrived corrupted.", "Start again.")
        model = parse_descriptor(text)
        if len(model.steps) != greeting.steps:
            raise WrongFirmware(
                self.transport.name,
                f"The model has {greeting.steps} steps, its descriptor {len(model.steps)}.",
                "Build and flash the firmware again.",
            )
        return model

    @property
    def order(self) -> Literal["<", ">"]:
        """The order of bytes in the device's memory, which regions have."""
        return (self.greeting or self.hello()).order

    def write(self, index: int, data: bytes) -> None:
        """Writes all of input `index`."""
        offset = 0
        while offset < len(data):
            part = data[offset : offset + self._chunk]
            request = struct.pack("<HI", index, offset) + part
            if self._chunk_request(Command.WRITE, request, f"writing input {index}") is not None:
                offset += len(part)

    def run(self) -> int:
        """Runs one inference; returns its cost in the device's unit."""
        return self._measured(0, None, lambda: self._request(Command.RUN, b"", "running the model"))

    def steps(self, begin: int, end: int) -> int:
        """Runs steps begin to end - 1 of an inference; begin is 0 or the end of the last call."""
        asked = struct.pack("<II", begin, end)
        return self._measured(begin, end, lambda: self._request(Command.STEPS, asked, f"running step {begin}"))

    def profile(self) -> list[int]:
        """Runs one inference; returns the cost of each step."""
        greeting = self.greeting or self.hello()
        if self._meter is not None:
            self._meter.begin()
            self._request(Command.PROFILE, b"", "profiling the model")
            return self._meter.steps(0, greeting.steps)
        self._request(Command.PROFILE, b"", "profiling the model")
        each = struct.unpack(f"<{greeting.steps}Q", self.read(Region.TICKS, 0, 8 * greeting.steps))
        return [self._scaled(ticks) for ticks in each]

    def read(self, region: Region, index: int, size: int) -> bytes:
        """Reads the first `size` bytes of a region."""
        what = f"reading {region.name.lower().replace('_', ' ')} {index}"

        def chunk(offset: int, length: int) -> bytes | None:
            return self._chunk_request(Command.READ, struct.pack("<BxHIH", region, index, offset, length), what)

        return self._read_chunks(size, chunk)

    def stack(self) -> StackUse:
        return StackUse(
            *struct.unpack("<II", self._sized(self._request(Command.STACK, b"", "asking for the stack"), 8))
        )

    def init(self) -> int:
        """Starts a new sequence (clears recurrent state); returns its cost."""
        if self._meter is not None:
            self._meter.begin()
        ticks = self._ticks(self._request(Command.INIT, b"", "starting a new sequence"))
        return self._meter.alone() if self._meter is not None else ticks

    def reset(self) -> None:
        """Restarts the device and starts a new session."""
        with contextlib.suppress(DeviceRestarted):  # then only the reply was lost, not the request
            self._request(Command.RESET, b"", "resetting the device")
        self.hello()

    # Chunks: their size adapts to the line's quality -----------------------------------------------------------------

    def _describe_chunk(self, offset: int, length: int) -> bytes | None:
        return self._chunk_request(Command.DESCRIBE, struct.pack("<IH", offset, length), "reading the description")

    def _read_chunks(self, size: int, chunk: Callable[[int, int], bytes | None]) -> bytes:
        data = bytearray()
        while len(data) < size:
            length = min(self._chunk, size - len(data))
            part = chunk(len(data), length)
            if part is not None:
                data += self._sized(part, length)
        return bytes(data)

    def _chunk_request(self, command: Command, payload: bytes, doing: str) -> bytes | None:
        """Sends one chunk's request; returns None if it failed and a smaller chunk should be tried."""
        repeats = self.counters.repeats
        if self._chunk <= _SMALLEST_CHUNK:
            answer = self._request(command, payload, doing)
        else:
            try:
                answer = self._attempt(command, payload, doing, tries=2)
            except _Lost:
                self._chunk = max(_SMALLEST_CHUNK, self._chunk // 2)
                self._successes = 0
                return None
        self._successes = self._successes + 1 if self.counters.repeats == repeats else 0
        if self._successes >= _GROW_AFTER:
            self._chunk = min(self._limit, self._chunk * 2)
            self._successes = 0
        return answer

    # One request ----------------------------------------------------------------------------------------------------

    def _request(self, command: Command, payload: bytes, doing: str) -> bytes:
        try:
            return self._attempt(command, payload, doing, self.timing.tries)
        except _Lost:
            heard = "only corrupted frames come back" if self.counters.broken else "nothing comes back"
            raise DeviceMissing(
                self.transport.name,
                f"The device does not answer while {doing}: {heard}.",
                "Check that it is powered and connected, runs this firmware, and uses the same line rate.",
            ) from None

    def _attempt(self, command: Command, payload: bytes, doing: str, tries: int) -> bytes:
        """Resends a request until its reply arrives; raises _Lost when tries or patience run out."""
        runs_model = command in (Command.RUN, Command.STEPS, Command.PROFILE, Command.INIT)
        patience = self.timing.run_patience if runs_model else self.timing.patience
        self._sequence = (self._sequence + 1) & 0xFFFF
        message = Message(command, self._sequence, self._session, payload)
        frame = encode(message)
        interval = self.timing.first + self._line_time(len(frame) + len(payload) + self._chunk)
        deadline = self.transport.now() + patience
        self.counters.requests += 1
        try:
            for attempt in range(tries):
                self.counters.repeats += attempt > 0
                self.transport.write(frame)
                until = min(deadline, self.transport.now() + interval)
                reply = self._await(message, until)
                if reply is not None:
                    return self._accept(reply, doing)
                if self.transport.now() >= until:
                    interval = min(2 * interval, max(interval, self.timing.longest))
                if self.transport.now() >= deadline:
                    break
        except TransportClosed as error:
            raise TransportClosed(error.where, f"{error.cause} It happened while {doing}.", error.next_step) from None
        raise _Lost

    def _await(self, request: Message, until: float) -> Message | None:
        """The reply to a request; None when it is time to resend."""
        broken = False
        while True:
            while self._arrived:
                message = self._arrived.popleft()
                if message is None or message.type == GARBLED:
                    self.counters.broken += 1
                    broken = True
                elif self._answers(message, request):
                    return message
                else:
                    self._aside(message, request)
            left = until - self.transport.now()
            if left <= 0:
                return None
            data = self.transport.read(min(left, self.timing.quiet) if broken else left)
            if not data and broken:
                return None
            self._arrived.extend(self._reader.feed(data))

    def _answers(self, message: Message, request: Message) -> bool:
        return (message.type, message.sequence, message.session) == (
            request.type | REPLY,
            request.sequence,
            request.session,
        )

    def _aside(self, message: Message, request: Message) -> None:
        """Handles everything but the reply: log text, a fault, and late replies."""
        if message.type == LOG:
            self._note(message.payload.decode("utf-8", "replace"))
        elif message.type == FAULT and request.type == Command.HELLO:
            self._note(f"before this session: {explain_fault(message.payload)}")
        elif message.type == FAULT:
            raise DeviceFault(self.transport.name, explain_fault(message.payload), fault_next_step(message.payload))

    def _note(self, text: str) -> None:
        self.log.append(text)
        if self._on_log is not None:
            self._on_log(text)

    def _accept(self, reply: Message, doing: str) -> bytes:
        name = self.transport.name
        if reply.status == Status.OK:
            return reply.payload
        if reply.status == Status.NO_SESSION:
            raise DeviceRestarted(name, f"The device restarted while {doing}.", "Try again; check its power supply.")
        if reply.status == Status.MODEL:
            code = int.from_bytes(reply.payload[:4], "little", signed=True)
            raise ModelRefused(name, f"The model returned error {code} while {doing}.", "Check its inputs.")
        known = Status(reply.status).name.lower() if reply.status in list(Status) else str(reply.status)
        raise ProtocolError(
            name, f"The device refused a request ({known}) while {doing}.", "Build and flash the firmware again."
        )

    # Helpers ---------------------------------------------------------------------------------------------------

    def _line_time(self, byte_count: int) -> float:
        return byte_count / self.transport.byte_rate if self.transport.byte_rate else 0.0

    def _ticks(self, answer: bytes) -> int:
        return self._scaled(int.from_bytes(self._sized(answer, 8), "little"))

    def _measured(self, begin: int, end: int | None, request: Callable[[], bytes]) -> int:
        """The cost of some steps, from the device or from the instruction counts of its emulated cores."""
        if self._meter is None:
            return self._ticks(request())
        self._meter.begin()
        self._ticks(request())
        return sum(self._meter.steps(begin, len(self._meter.parts) if end is None else end))

    def _scaled(self, ticks: int) -> int:
        return round(ticks * self._per_tick)

    def _sized(self, answer: bytes, size: int) -> bytes:
        if len(answer) != size:
            raise ProtocolError(
                self.transport.name,
                f"A reply has {len(answer)} bytes instead of {size}.",
                "Build and flash the firmware again with this version.",
            )
        return answer


def _is_text_of(text: bytes, greeting: Hello) -> bool:
    return len(text) == greeting.descriptor_size and zlib.crc32(text) == greeting.descriptor_crc
