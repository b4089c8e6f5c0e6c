"""Fills templates from nnbuild/templates: each placeholder is a word between two @."""

from __future__ import annotations

import re

from nnbuild.base.paths import TEMPLATES

PLACE = re.compile(r"@([A-Z_]+)@")


def fill(name: str, values: dict[str, str]) -> str:
    """The template of this name, filled in; a placeholder without a value is a KeyError."""
    return fill_text((TEMPLATES / name).read_text(encoding="utf-8"), values)


def fill_text(text: str, values: dict[str, str]) -> str:
    return PLACE.sub(lambda place: values[place[1]], text)
