"""POSIX specifics of terminals: their errors, and the parity that pseudo terminals do not keep."""

from __future__ import annotations

from typing import Any

try:
    import termios
except ImportError:  # Windows has none
    TERMINAL_ERRORS: tuple[type[Exception], ...] = ()
else:
    TERMINAL_ERRORS = (termios.error,)

PORT_ERRORS: tuple[type[Exception], ...] = (OSError, TypeError, ValueError, *TERMINAL_ERRORS)
"""Errors from pyserial: SerialException is an OSError, and using a closed port raises TypeError."""


def without_lost_parity(port: Any) -> None:
    """Stops setting parity on a pseudo terminal, which has no parity bit, so that later settings do not fail."""
    descriptor = getattr(port, "fd", None)
    if not TERMINAL_ERRORS or port.parity == "N" or descriptor is None:
        return
    if not termios.tcgetattr(descriptor)[2] & termios.PARENB:
        port.parity = "N"
