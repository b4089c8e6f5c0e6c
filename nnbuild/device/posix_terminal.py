"""What only POSIX systems know of terminals: their errors, and the parity that a pseudo terminal forgets."""

from __future__ import annotations

from typing import Any

try:
    import termios
except ImportError:  # Windows has none
    TERMINAL_ERRORS: tuple[type[Exception], ...] = ()
else:
    TERMINAL_ERRORS = (termios.error,)

PORT_ERRORS: tuple[type[Exception], ...] = (OSError, TypeError, ValueError, *TERMINAL_ERRORS)
"""What pyserial raises: SerialException is an OSError, and a port that was closed is a TypeError."""


def without_lost_parity(port: Any) -> None:
    """A pseudo terminal has no parity bit, and the next setting of anything would fail for asking it again."""
    descriptor = getattr(port, "fd", None)
    if not TERMINAL_ERRORS or port.parity == "N" or descriptor is None:
        return
    if not termios.tcgetattr(descriptor)[2] & termios.PARENB:
        port.parity = "N"
