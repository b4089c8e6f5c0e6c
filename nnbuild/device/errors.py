"""What can go wrong between the PC and a device, as the user meets it."""

from __future__ import annotations

from nnbuild.base.errors import CheckFailed, NnbuildError, ToolMissing


class DeviceMissing(ToolMissing):
    """The device, its port or its program is not there, or does not answer."""


class TransportClosed(DeviceMissing):
    """The line to the device ended: cable pulled, emulator gone, program finished."""


class DeviceRestarted(DeviceMissing):
    """The device started anew and has forgotten what it was told."""


class DeviceFault(CheckFailed):
    """The device's processor stopped with a fault, and said so."""


class ModelRefused(CheckFailed):
    """The model on the device returned an error."""


class WrongFirmware(NnbuildError):
    """The device runs another model, or a link of another version."""


class ProtocolError(NnbuildError):
    """The device refused a request that should have been right."""
