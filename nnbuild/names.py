"""Names that go from a model or a command line into C."""

from __future__ import annotations

import re


def fragment(text: str) -> str:
    """The text as a part of a C name: lower case, everything but letters and digits an underscore."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:40] or "x"
