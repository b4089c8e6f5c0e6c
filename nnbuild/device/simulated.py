"""A simulated accelerator beside an emulated processor: a shared object with the functions of nn_simulated.h."""

from __future__ import annotations

import ctypes

from nnbuild.base.mapped_device import MappedDevice

LOOK = 256
"""Instructions between polls for its interrupt, if nothing accesses it."""


class SimulatedDevice:
    """Takes one cycle per processor instruction. It advances when its registers are accessed, and from time to time."""

    def __init__(self, place: MappedDevice) -> None:
        self.place = place
        self.memory = ctypes.create_string_buffer(place.bytes)
        self._calls = ctypes.CDLL(str(place.library))
        self._calls.nn_simulated_open.restype = ctypes.c_void_p
        self._calls.nn_simulated_read.restype = ctypes.c_uint32
        self._device = ctypes.c_void_p(self._calls.nn_simulated_open(self.memory, place.bytes))
        self._moved = 0
        self.interrupt = False

    def due(self, instructions: int) -> bool:
        return instructions - self._moved >= LOOK

    def move(self, instructions: int) -> None:
        """Advances to this instruction count."""
        passed, self._moved = instructions - self._moved, instructions
        self.interrupt = bool(self._calls.nn_simulated_step(self._device, passed))

    def read(self, offset: int) -> int:
        return int(self._calls.nn_simulated_read(self._device, offset))

    def write(self, offset: int, value: int) -> None:
        self._calls.nn_simulated_write(self._device, offset, value)
        self.interrupt = bool(self._calls.nn_simulated_step(self._device, 0))

    def close(self) -> None:
        self._calls.nn_simulated_close(self._device)
