"""Dependency files, whatever the paths are like."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest

from nnbuild.base.depfile import depfile, escaped, prerequisites


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (PurePosixPath("/a b/kws.h5"), r"/a\ b/kws.h5"),
        (PurePosixPath("/cost$/kws.h5"), "/cost$$/kws.h5"),
        (PurePosixPath("/a#1/kws.h5"), r"/a\#1/kws.h5"),
        (PurePosixPath("/größe/模型.h5"), "/größe/模型.h5"),
        (PureWindowsPath(r"C:\my models\kws.h5"), r"C:/my\ models/kws.h5"),
    ],
)
def test_paths_are_escaped(path: PurePosixPath | PureWindowsPath, text: str) -> None:
    assert escaped(path) == text


def test_one_target_with_all_it_is_made_from() -> None:
    text = depfile("out/stamp", [Path("/a"), Path("/b c")])
    assert text == "out/stamp: \\\n  /a \\\n  /b\\ c\n"


def test_what_a_compiler_has_read() -> None:
    text = "own_main.o: /a\\ b/main.c \\\n  /a\\ b/hel\\#lo.h \\\n /c$$/d.h\n"
    assert prerequisites(text) == [Path("/a b/main.c"), Path("/a b/hel#lo.h"), Path("/c$/d.h")]
