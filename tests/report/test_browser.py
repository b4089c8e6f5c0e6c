"""The page in a real browser: at a desk, on a phone, in the dark, on paper, and without JavaScript."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nnbuild import cli
from nnbuild.report.page import page
from tests.report import samples

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (script/setup test)")
pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "models"
MNIST = ROOT / "examples" / "mnist"
MODELS = {
    "mnist": (
        MNIST / "mnist.h5",
        MNIST / "samples.npz",
        ["--quantize", "int8", "--calibrate", MNIST / "calibration.npz"],
    ),
    "kws": (SHARED / "kws_ref_model.h5", SHARED / "kws_ref_model_golden.npz", []),
    "resnet8": (SHARED / "pretrainedResnet.h5", SHARED / "pretrainedResnet_golden.npz", []),
    "large": (None, None, []),
    "capitals": (None, None, []),
    "ideographs": (None, None, []),
}
DRAWN = {
    "large": samples.large(150),
    "capitals": samples.named(samples.large(40), "STEM_WIDE_MWMW_BLOCK_{}/Conv2D_DEPTHWISE_BN_Fold"),
    "ideographs": samples.named(samples.large(6), "モデル_畳み込み層の名前がとても長い_{}"),
}
SMALLEST_TEXT = 9.0
"""Pixels; what is smaller cannot be read on a phone."""

OVERFLOWING = """() => [...document.querySelectorAll('body *')].filter(e => {
    const box = e.getBoundingClientRect();
    return box.width && box.right > innerWidth + 0.5 && !e.closest('.scroll, .skip, svg');
}).map(e => e.outerHTML.slice(0, 80))"""
TEXT_SIZES = """() => [...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width).flatMap(s =>
    [...s.querySelectorAll('text')].map(t => parseFloat(t.getAttribute('font-size')) *
        s.getBoundingClientRect().width / s.viewBox.baseVal.width))"""
OUTSIDE = """() => [...document.querySelectorAll('svg')].filter(s => s.getBoundingClientRect().width).flatMap(s => {
    const frame = s.getBoundingClientRect();
    return [...s.querySelectorAll('text')].filter(t => {
        const box = t.getBoundingClientRect();
        return box.left < frame.left - 1 || box.right > frame.right + 1;
    }).map(t => t.textContent);
})"""
CONTRAST = """() => {
    const light = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(v => (v /= 255) <= 0.03928 ? v / 12.92
        : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const paper = light(getComputedStyle(document.body).backgroundColor);
    return [...document.querySelectorAll('p,h1,h2,small,caption,a,.badge,dt,dd,.good,.bad')].map(e => {
        const ink = light(getComputedStyle(e).color), [a, b] = [Math.max(ink, paper), Math.min(ink, paper)];
        return [(a + 0.05) / (b + 0.05), e.outerHTML.slice(0, 60)];
    }).sort((a, b) => a[0] - b[0])[0];
}"""


WRAPPED = """[...document.querySelectorAll('tbody th')].filter(e => {
    const text = e.firstChild;
    if (!text || text.nodeType !== 3) return false;
    const range = document.createRange();
    range.selectNodeContents(text);
    return range.getClientRects().length > 1 || e.scrollWidth > e.clientWidth + 1;
}).map(e => e.textContent)"""
OVERLAPPING = """[...document.querySelectorAll('svg')].filter(s => s.getClientRects().length).flatMap(svg => {
    const boxes = [...svg.querySelectorAll('text')].map(t => [t.getBoundingClientRect(), t.textContent]);
    const found = [];
    boxes.forEach(([a, first], i) => boxes.slice(i + 1).forEach(([b, second]) => {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 0.5 && high > 2) found.push(first + ' | ' + second);
    }));
    return found;
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no chromium is installed (script/setup test)")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module", params=list(MODELS))
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    model, inputs, words = MODELS[request.param]
    path = tmp_path_factory.mktemp("report") / f"{request.param}.html"
    if model is None:
        path.write_text(page(DRAWN[request.param]), "utf-8")
        return path
    if not model.is_file():
        pytest.skip(f"{model.name} of ../shared/models is not there")
    assert cli.main(["report", str(model), "--inputs", str(inputs), *map(str, words), "-o", str(path)]) == 0
    return path


def opened(browser: Any, report: Path, width: int, **options: Any) -> tuple[Any, list[str]]:
    """The page, and everything that the browser had to complain of or asked for."""
    view = browser.new_page(viewport={"width": width, "height": 900}, **options)
    said: list[str] = []
    view.on("console", lambda message: said.append(f"console: {message.text}"))
    view.on("pageerror", lambda error: said.append(f"error: {error}"))
    view.on("request", lambda request: said.append(request.url))
    view.goto(report.as_uri(), timeout=0)  # however loaded the machine is
    return view, said


@pytest.mark.turns(12)
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_is_quiet(browser: Any, report: Path, width: int, scheme: str) -> None:
    view, said = opened(browser, report, width, color_scheme=scheme)
    assert said == [report.as_uri()]
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    assert view.evaluate(OVERFLOWING) == []
    assert view.evaluate(OUTSIDE) == []
    assert view.evaluate(WRAPPED) == []
    assert view.evaluate(OVERLAPPING) == []
    assert min(view.evaluate(TEXT_SIZES)) >= SMALLEST_TEXT
    ratio, where = view.evaluate(CONTRAST)
    assert ratio >= 4.5, where
    view.close()


@pytest.mark.turns(3)
def test_dark_is_dark(browser: Any, report: Path) -> None:
    colours = []
    for scheme in ("light", "dark"):
        view, _ = opened(browser, report, 800, color_scheme=scheme)
        colours.append(view.evaluate("getComputedStyle(document.body).backgroundColor"))
        view.close()
    assert colours == ["rgb(255, 255, 255)", "rgb(20, 23, 28)"]


@pytest.mark.turns(3)
def test_tables_need_no_javascript(browser: Any, report: Path) -> None:
    view, _ = opened(browser, report, 390, java_script_enabled=False)
    assert view.locator("#layers tbody tr").count() > 5
    assert view.locator("#layers tbody tr").first.is_visible()
    assert view.locator("table:visible").count() == view.locator("table").count() > 6
    assert view.locator("svg:visible").count() < view.locator("svg").count()  # one timeline of two
    view.close()


@pytest.mark.turns(3)
def test_it_can_be_read_aloud(browser: Any, report: Path) -> None:
    view, _ = opened(browser, report, 1280)
    pictures = view.get_by_role("img")
    assert pictures.count() >= 2
    assert view.get_by_role("heading", level=1).count() == 1
    for name in ("Network", "Layers", "Memory over one run", "Check", "How it was built"):
        assert view.get_by_role("region", name=name, exact=True).count() == 1
    assert view.get_by_role("table").count() == view.get_by_role("caption").count()
    view.close()


@pytest.mark.turns(3)
def test_it_prints_on_paper(browser: Any, report: Path) -> None:
    view, _ = opened(browser, report, 718, color_scheme="dark")  # the width of A4 between the margins
    view.emulate_media(media="print", color_scheme="dark")
    assert view.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert view.evaluate("document.documentElement.scrollWidth") <= 718
    cut = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    assert view.evaluate(cut) == 0
    assert view.pdf(format="A4").startswith(b"%PDF")
    view.close()


def test_it_is_small(report: Path) -> None:
    assert report.stat().st_size <= 1_000_000
