"""What the pages say of the code: the generated table is current, quoted errors exist, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.running import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.slow
def test_the_table_of_layers_is_current() -> None:
    script = "import runpy; print(runpy.run_path('script/layers_table.py')['page'](), end='')"
    made = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert made == (DOCS / "layers.md").read_text(), "run script/layers_table.py"


def code() -> str:
    """All texts of the code, with literals that go over several lines put together."""
    text = "\n".join(path.read_text() for path in sorted((ROOT / "nnbuild").rglob("*.py")))
    return re.sub(r'"\s*\n\s*f?"', "", text)


def quoted() -> list[str]:
    """The messages of the list of errors."""
    rows = re.findall(r"^\| `(.+?)` \| ", (DOCS / "errors.md").read_text(), re.MULTILINE)
    assert len(rows) > 25
    return rows


def test_every_error_that_is_listed_exists() -> None:
    there = code()
    parts = {message: [part.strip(" (),.:`") for part in message.split("…")] for message in quoted()}
    missing = {m: [part for part in found if part not in there] for m, found in parts.items()}
    assert {m: found for m, found in missing.items() if found} == {}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    wrong = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert wrong == []


def test_every_page_is_reached_from_the_first_one() -> None:
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen and page.suffix == ".md":
            seen.add(page)
            waiting += [(page.parent / link).resolve() for link in LINK.findall(page.read_text())]
    assert set(PAGES) - seen == set()


@pytest.mark.parametrize("page", [*PAGES, *ROOT.glob("*.md")], ids=lambda path: path.name)
def test_no_page_holds_two_versions_of_itself(page: Path) -> None:
    assert [line for line in page.read_text().splitlines() if line.startswith(("<<<<<<< ", ">>>>>>> "))] == []
