"""Modules built for tests, and guests to try them in."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from nnbuild.backends.kmod.__main__ import fetch
from nnbuild.backends.kmod.build import KernelChoice, build
from nnbuild.backends.kmod.folder import makefile
from nnbuild.backends.kmod.guest import Guest, Outcome, release_of, run_script
from nnbuild.backends.kmod.module import make_module
from nnbuild.backends.kmod.versions import kernels_of
from nnbuild.base.errors import ToolMissing
from nnbuild.emit.artifact import Artifact
from nnbuild.jobs.options import Options
from nnbuild.jobs.pipeline import Compiled, compile_model
from nnbuild.jobs.program_files import program_files

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "guest"
ROOT = HERE.parents[1]
EXAMPLES = ROOT / "examples"
POLICY = EXAMPLES / "kmod-congestion"
MNIST = EXAMPLES / "mnist"
SHARED = ROOT.parent / "shared" / "models"
TESTER = """\
obj-m := nn_tests.o
nn_tests-y := nn_try.o nn_shift.o
OBJECT_FILES_NON_STANDARD_nn_shift.o := y
ccflags-y := -I$(src)
"""

Edit = Callable[[Path], None]


@dataclass(frozen=True)
class Recipe:
    """A model and how its module is built; `extra` goes to make, `edit` changes the generated folder first."""

    name: str
    model: Path = POLICY / "policy.h5"
    quantize: str = "float"
    swappable: bool = False
    extra: tuple[tuple[str, str], ...] = ()
    edit: Edit | None = None
    kernel: str | None = None
    board: str = "linux-kmod"
    isa: str | None = None

    def options(self) -> Options:
        samples = self.model.parent / "calibration.npz"
        calibrate = samples if self.quantize != "float" and samples.is_file() else None
        return Options(
            self.model,
            self.board,
            self.quantize,
            calibrate=calibrate,
            name=self.name,
            swappable=self.swappable,
            isa=self.isa,
        )


FLOAT = Recipe("f")
INTEGER = Recipe("i", model=MNIST / "mnist.h5", quantize="int8")
"""Without a recurrent state of wider integers, whose conversion would still be of integers but of several formats."""


def with_extra(recipe: Recipe, defines: str, variable: str = "NN_EXTRA") -> Recipe:
    return replace(recipe, extra=(*recipe.extra, (variable, defines)))


@dataclass
class Built:
    compiled: Compiled
    folder: Path
    module: Path

    @property
    def file(self) -> tuple[str, bytes]:
        return f"/{self.module.name}", self.module.read_bytes()


@dataclass
class Workshop:
    """Builds each thing once."""

    folder: Path
    _built: dict[Recipe, Built] = field(default_factory=dict)
    _testers: dict[tuple[Recipe, Recipe], Path] = field(default_factory=dict)
    _programs: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def build(self, recipe: Recipe) -> Built:
        if recipe not in self._built:
            folder = self.folder / f"{recipe.name}{len(self._built)}"
            compiled = compile_model(recipe.options())
            Artifact(program_files(compiled)).write(folder)
            if recipe.edit is not None:
                recipe.edit(folder)
            choice = KernelChoice(recipe.kernel)
            module = make_module(compiled.board, recipe.name, folder, choice, dict(recipe.extra))
            self._built[recipe] = Built(compiled, folder, module)
        return self._built[recipe]

    def tester(self, float_model: Recipe, integer_model: Recipe) -> Path:
        """The module that calls models f and i."""
        key = (float_model, integer_model)
        if key not in self._testers:
            used = [self.build(recipe) for recipe in key]
            folder = self.folder / f"tester{len(self._testers)}"
            folder.mkdir()
            for name in ("nn_try.c", "nn_shift.S"):
                shutil.copy(SOURCES / name, folder)
            for built in used:
                name = f"{built.compiled.plan.prefix}_kmod.h"
                shutil.copy(built.folder / name, folder)
            (folder / "Kbuild").write_text(TESTER)
            (folder / "Makefile").write_text(makefile())
            symbols = " ".join(str(built.folder / "Module.symvers") for built in used)
            extra = {"KBUILD_EXTRA_SYMBOLS": symbols}
            self._testers[key] = build(used[0].compiled.board, folder, KernelChoice(float_model.kernel), extra)
        return self._testers[key]

    def program(self, name: str, compiler: str = "gcc") -> bytes:
        """A program for the guest, with all it needs in itself."""
        key = (name, compiler)
        if key not in self._programs:
            target = self.folder / f"{compiler}-{name}"
            command = [compiler, "-O2", "-static", "-Wall", "-o", str(target), str(SOURCES / f"{name}.c")]
            subprocess.run(command, check=True)
            self._programs[key] = target.read_bytes()
        return self._programs[key]

    def run(
        self, built: Built, files: Mapping[str, bytes], script: str, patience: float = 120.0, **guest: object
    ) -> Outcome:
        """Boots with the module and the files there, and runs the script."""
        board = built.compiled.board
        wanted = Guest(release_of(built.module), files={**files, **dict([built.file])}, **guest)  # type: ignore[arg-type]
        return run_script(board, kernels_of(board), wanted, script, patience)


def try_models(
    workshop: Workshop, float_model: Recipe, what: str, integer_model: Recipe = INTEGER, **settings: object
) -> Outcome:
    """Loads both models and the module that calls them."""
    tester = workshop.tester(float_model, integer_model)
    built, other = workshop.build(float_model), workshop.build(integer_model)
    seconds = settings.pop("seconds", 1)
    script = f"""\
insmod /{built.module.name} || verdict f is not loaded
insmod /{other.module.name} || verdict i is not loaded
insmod /{tester.name} what={what} seconds={seconds} || verdict the test is not loaded
rmmod nn_tests
cat /sys/kernel/debug/nn_f/counters
rmmod nn_f || verdict f is not unloaded
rmmod nn_i || verdict i is not unloaded
verdict passed
"""
    files = {f"/{tester.name}": tester.read_bytes(), **dict([other.file])}
    return workshop.run(built, files, script, **settings)  # type: ignore[arg-type]


def require_tools() -> None:
    """Skips by name what cannot be done here."""
    for tool in ("qemu-system-x86_64", "make", "gcc"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")


def require_kernel(recipe: Recipe) -> None:
    """Skips where the kernel's packages cannot be fetched."""
    try:
        fetch(recipe.board, [recipe.kernel] if recipe.kernel else [])
    except ToolMissing as problem:
        pytest.skip(str(problem))
