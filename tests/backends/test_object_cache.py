"""Sources are compiled once in a process, and anew as soon as anything differs that they read."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from nnbuild.backends.object_cache import key_of
from nnbuild.backends.recipe import Recipe, compile_all, toolchain_for
from nnbuild.board.tables import find


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "part.c").write_text('#include "part.h"\nint part(void)\n{\n    return NUMBER;\n}\n')
    (ours / "part.h").write_text('#include "number.h"\nint part(void);\n')
    (ours / "number.h").write_text("#define NUMBER 1\n")
    toolchain = toolchain_for(find("linux"))
    return Recipe("program", toolchain, (), (ours / "part.c",), (ours,), ("-O2", *toolchain.stack_flags), ())


def test_compiled_once(recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    real = subprocess.run

    def counted(command: list[str], **given: object) -> object:
        started.append(command)
        return real(command, **given)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", counted)

    def build(name: str, recipe: Recipe = recipe) -> list[bytes]:
        folder = tmp_path / name
        folder.mkdir()
        if name == "shadowed":
            (folder / "own.h").write_text("#define NUMBER 3\n")
        compile_all(recipe, folder)
        return [path.read_bytes() for path in sorted(folder.glob("part.*"))]

    first = build("first")
    assert len(first) >= 2, "the object, and what is said of its stack"
    assert build("second") == first
    assert len(started) == 1
    build("other flags", replace(recipe, flags=(*recipe.flags, "-O1")))
    assert len(started) == 2
    (recipe.includes[0] / "number.h").write_text("#define NUMBER 2\n")
    assert build("third") != first
    assert len(started) == 3
    (recipe.includes[0] / "number.h").write_text('#include "own.h"\n')
    build("shadowed")
    assert len(started) == 4, "a file of the folder of the build"


def test_what_is_read_unseen_is_compiled_each_time(tmp_path: Path) -> None:
    (tmp_path / "plain.c").write_text('#include "there.h"\n#include <stdint.h>\n')
    (tmp_path / "there.h").write_text("extern int x;\n")

    def key(name: str) -> str | None:
        return key_of(lambda *paths: ["gcc", *map(str, paths)], tmp_path / name, tmp_path, ())

    first = key("plain.c")
    assert first is not None and key("plain.c") == first
    for hidden in ("#include NAME", "#embed <weights.bin>", '__asm__(".incbin \\"weights.bin\\"");'):
        (tmp_path / "there.h").write_text(f"{hidden}\n")
        assert key("plain.c") is None
