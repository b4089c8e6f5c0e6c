"""nnbuild docs: shows the installed pages of the documentation, which error messages name."""

from __future__ import annotations

import argparse

from nnbuild.base.errors import UsageError
from nnbuild.base.paths import DOCS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("page", nargs="?", help="a page, such as import (default: list all pages)")


def run(arguments: argparse.Namespace) -> int:
    pages = {path.stem: path for path in sorted(DOCS.glob("*.md"))}
    if arguments.page is None:
        width = max(map(len, pages))
        for name, path in pages.items():
            with path.open(encoding="utf-8") as text:
                print(f"{name:{width}}  {text.readline().lstrip('# ').strip()}")
        return 0
    found = pages.get(arguments.page.removesuffix(".md"))
    if found is None:
        raise UsageError(f"page {arguments.page!r}", "there is no page of this name.", "`nnbuild docs` lists them.")
    print(found.read_text(encoding="utf-8"), end="")
    return 0
