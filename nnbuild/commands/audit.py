"""nnbuild audit: what an object, archive or image needs and holds."""

from __future__ import annotations

from nnbuild.audit.command import add_arguments, run

__all__ = ["add_arguments", "run"]
