"""Errors between the PC and a device, as the user sees them."""

from __future__ import annotations

from nnbuild.base.errors import CheckFailed, NnbuildError, ToolMissing


class DeviceMissing(ToolMissing):
    """The device, its port or its program is missing or does not answer."""


class TransportClosed(DeviceMissing):
    """The connection to the device ended: cable pulled, emulator gone, program finished."""


class DeviceRestarted(DeviceMissing):
    """The device restarted and has lost its state."""


class DeviceFault(CheckFailed):
    """The device's processor stopped with a fault and reported it."""


class ModelRefused(CheckFailed):
    """The model on the device returned an error."""


class WrongFirmware(NnbuildError):
    """The device runs another model, or another version of the link."""


class ProtocolError(NnbuildError):
    """The device refused a request that should have been valid."""
