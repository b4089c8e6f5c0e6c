"""The rules of the source tree, held by walking its syntax: who may import whom, and how large things may grow."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from nnbuild.isa.registry import vector_sets
from nnbuild.kernels.parts.float_functions import SPELLINGS
from nnbuild.kernels.registry import variants
from nnbuild.ops.base import Attributes
from nnbuild.ops.functions import FUNCTIONS

PACKAGE = Path(__file__).resolve().parents[1] / "nnbuild"
FILES = sorted(PACKAGE.rglob("*.py"))
LONGEST_FILE = 450
LONGEST_KERNEL = 350
PRINTING = ("isa.", "kernels.", "numeric.requant")
"""Where what prints C lives; small there is worth most."""
LONGEST_FUNCTION = 60

ROOMS = {
    # What everyone may use.
    "base": set(),
    # numeric <- model <- ops <- frontend, passes, quantize
    "numeric": {"base"},
    "model": {"base", "numeric", "ops.base"},
    "ops": {"base", "numeric", "model"},
    "frontend": {"base", "numeric", "model", "ops"},
    "passes": {"base", "numeric", "model", "ops"},
    "quantize": {"base", "numeric", "model", "ops", "passes"},
    "streaming": {"base", "model", "ops"},
    # isa <- kernels <- plan <- emit
    "isa": {"base", "numeric", "model", "ops.base"},
    "encodings": set(),
    "kernels": {"base", "numeric", "model", "ops", "isa", "encodings"},
    "offload": {"base", "numeric", "model", "ops"},
    "plan": {"base", "model", "ops", "isa", "kernels", "offload"},
    "emit": {"base", "model", "ops", "isa", "kernels", "offload", "plan", "__init__"},
    # From samples to rows, and from answers to events.
    "features": {"base", "numeric", "model", "isa", "emit", "__init__"},
    # Apart.
    "compress": {"base", "numeric", "model", "ops", "quantize"},
    "audit": {"base"},
    "bound": {"base", "audit"},
    "board": {"base"},
    "device": {"base", "numeric"},
    "cycles": {"base", "bound", "board"},
    "report": {"base", "device", "cycles"},
    # What becomes of the C.
    "backends": {
        *("base", "numeric", "model", "ops", "isa", "plan", "emit", "features"),
        *("board", "audit", "bound", "device", "__init__"),
    },
    "outputs": {"base", "model", "ops", "plan", "emit", "board", "backends", "__init__"},
    # All of it together, and what users call.
    "jobs": {
        *("base", "numeric", "model", "ops", "frontend", "passes", "quantize", "streaming", "compress"),
        *("isa", "kernels", "plan", "emit"),
        *("features", "offload", "board", "audit", "device", "report", "backends", "cycles", "__init__"),
    },
    "cli": {
        *("base", "model", "frontend", "passes", "quantize", "compress", "ops", "plan", "emit"),
        *("board", "audit", "bound", "device", "report", "backends", "outputs", "jobs", "evidence", "__init__"),
        "features",
    },
    "evidence": {
        *("base", "numeric", "model", "ops", "isa", "kernels", "plan", "emit"),
        *("board", "audit", "backends", "report", "jobs", "__init__"),
    },
    "builds": set(),
    "templates": set(),
    "api": {"base", "device", "emit", "jobs", "report"},
    "scons": {"base", "emit", "offload", "features", "board", "backends", "jobs", "frontend.wishes"},
    "__main__": {"cli"},
    "__init__": set(),
}
"""Room -> the rooms it may import from."""


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts)


def room(module: str) -> str:
    return module.split(".")[0]


@cache
def statements(path: Path) -> tuple[ast.AST, ...]:
    """Every import and every function of a file; expressions, which are most of it, hold none."""
    found: list[ast.AST] = []
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node)
        inner = (ast.stmt, ast.ExceptHandler, ast.match_case)
        waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, inner)]
    return tuple(found)


def imports(path: Path) -> Iterator[str]:
    """Every module that a file names, whole; `from nnbuild import passes` counts as nnbuild.passes."""
    for node in statements(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports here are absolute"
            module = node.module or ""
            if module == "nnbuild":
                names = [alias.name for alias in node.names]
                yield from (f"nnbuild.{'__init__' if name == '__version__' else name}" for name in names)
            else:
                yield module


def internal(path: Path) -> set[str]:
    return {name.removeprefix("nnbuild.") for name in imports(path) if name.startswith("nnbuild.")}


def test_every_room_has_its_rule() -> None:
    assert {room(name_of(path)) for path in FILES} == ROOMS.keys()


def test_rooms_import_only_what_lies_below_them() -> None:
    wrong = []
    for path in FILES:
        own = room(name_of(path))
        allowed = ROOMS[own]
        wrong += [
            f"{name_of(path)} imports {module}"
            for module in sorted(internal(path))
            if room(module) != own and room(module) not in allowed and module not in allowed
        ]
    assert wrong == []


def test_nobody_knows_the_kernel_target() -> None:
    """Only its own room does; whatever differs for it stands in its back end. What reads objects reads all kinds."""
    home = PACKAGE / "backends" / "kmod"
    words = re.compile(r"kmod|kernel module|\bkdir\b|insmod", re.IGNORECASE)
    rest = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    rest += [PACKAGE.parent / "SConstruct", *(PACKAGE.parent / "site_scons").rglob("*.py")]
    outside = [path for path in rest if not path.is_relative_to(home) and not path.is_relative_to(PACKAGE / "audit")]
    assert [str(path) for path in outside if words.search(path.read_text())] == []


def test_kernels_name_no_instruction() -> None:
    """How a set spells its operations stands in `isa` alone."""
    spelling = re.compile(r"_mm\d*_|__m(128|256|512)|__builtin_(ia32|arm)|__arm_|\bv(ld1|st1|add|mul|mla|dot|qadd)q?_")
    files = (PACKAGE / "kernels").rglob("*.py")
    assert [str(path.relative_to(PACKAGE)) for path in files if spelling.search(path.read_text())] == []


def test_kernels_name_no_set() -> None:
    """Sets of vectors reach kernels as values of the table: whatever one of them needs is a row or a fact of it."""
    names = re.compile(rf"\b({'|'.join(v.name for v in vector_sets())})\b")
    files = (PACKAGE / "kernels").rglob("*.py")
    assert [str(path.relative_to(PACKAGE)) for path in files if names.search(path.read_text())] == []


def test_back_ends_do_not_know_each_other() -> None:
    homes = sorted(path.parent for path in (PACKAGE / "backends").glob("*/backend.py"))
    assert {home.name for home in homes} == {"host", "firmware", "kmod"}
    for home in homes:
        others = tuple(f"backends.{other.name}." for other in homes if other != home)
        assert [m for path in home.glob("*.py") for m in internal(path) if m.startswith(others)] == []


def test_the_rules_have_no_circle() -> None:
    """Except for the one the type checker alone sees: a graph's operations carry their attributes."""
    settled: set[str] = set()
    waiting = {own: {room(name) for name in allowed} for own, allowed in ROOMS.items()}
    waiting["model"].discard("ops")
    while waiting:
        free = {own for own, allowed in waiting.items() if not (allowed & ROOMS.keys()) - settled}
        assert free, f"a circle among {sorted(waiting)}"
        settled |= free
        waiting = {own: allowed for own, allowed in waiting.items() if own not in free}


def test_graph_knows_operations_by_type_only() -> None:
    """At run time nothing below `ops` needs it."""
    tree = ast.parse((PACKAGE / "model" / "graph.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith("nnbuild.ops")


@pytest.mark.parametrize("foreign", ["tensorflow", "keras", "tf_keras", "torch", "ai_edge_litert"])
def test_no_deep_learning_framework(foreign: str) -> None:
    naming = [path for path in FILES if foreign in path.read_text()]
    assert [name_of(path) for path in naming if any(m.split(".")[0] == foreign for m in imports(path))] == []


def test_the_frontend_executes_nothing() -> None:
    """Whatever a model file holds, it is data: there is nothing here that could run it or look up code by its name."""
    modules = {"pickle", "marshal", "shelve", "importlib", "runpy", "ctypes", "subprocess", "code", "builtins"}
    calls = {"eval", "exec", "compile", "__import__", "getattr", "globals", "locals"}
    wrong = []
    for path in FILES:
        if room(name_of(path)) != "frontend":
            continue
        wrong += [f"{name_of(path)} imports {m}" for m in imports(path) if m.split(".")[0] in modules]
        for node in ast.walk(ast.parse(path.read_text())):
            own_names = name_of(path).startswith("frontend.tflite") and "getattr" in ast.dump(node)
            # The flatbuffer readers are looked up by names of our own tables, never by what a file says.
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in calls - ({"getattr"} if own_names else set())
            ):
                wrong.append(f"{name_of(path)}:{node.lineno} calls {node.func.id}")
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant)
                assert node.value.value is False
    assert wrong == []


def kinds() -> set[str]:
    """Every kind of operation, by the classes that `ops` defines."""
    found = set()
    for path in sorted((PACKAGE / "ops").glob("*.py")):
        for kind in re.findall(r"^    kind(?:: ClassVar\[str\])? = \"(\w+)\"$", path.read_text(), re.MULTILINE):
            found.add(kind)
    return found


def test_every_operation_has_a_scalar_kernel() -> None:
    assert {"conv2d", "dense", "lstm", "reshape"} <= kinds()
    without = {kind for kind in kinds() if "scalar" not in [kernel.name for kernel in variants(kind)]}
    assert without == {"reshape", "offset"}, "they move nothing"


def test_operations_are_named_as_their_files() -> None:
    subclasses = {cls.kind: cls.__module__.rpartition(".")[2] for cls in _leaves(Attributes) if hasattr(cls, "kind")}
    assert {kind: file for kind, file in subclasses.items() if kind != file} == {}


def test_the_root_of_kernels_holds_operations() -> None:
    """The registry looks for a file of the operation's name there; shared parts have folders of their own."""
    files = {path.stem for path in (PACKAGE / "kernels").glob("*.py")}
    assert files - kinds() == {"__init__", "contract", "registry"}


def _leaves(cls: type[Attributes]) -> Iterator[type[Attributes]]:
    below = cls.__subclasses__()
    if not below and cls.__module__.startswith("nnbuild.ops."):
        yield cls
    for each in below:
        yield from _leaves(each)


def test_every_function_has_a_spelling_in_c() -> None:
    assert FUNCTIONS.keys() == SPELLINGS.keys()


def test_files_and_functions_stay_small() -> None:
    large = []
    for path in FILES:
        text = path.read_text()
        longest = LONGEST_KERNEL if name_of(path).startswith(PRINTING) else LONGEST_FILE
        if len(text.splitlines()) > longest:
            large.append(f"{name_of(path)}: {len(text.splitlines())} lines")
        for node in statements(path):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > LONGEST_FUNCTION:
                    large.append(f"{name_of(path)}.{node.name}: {length} lines")
    assert large == []


def required() -> set[str]:
    """The packages that `pip install nnbuild` brings."""
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    return {re.split(r"[<>=]", each)[0] for each in project["dependencies"]}


@pytest.mark.parametrize("package", ["numpy", "scons", "pyserial", "pyelftools", "capstone"])
def test_what_every_build_needs_comes_with_it(package: str) -> None:
    """Every build is audited, and the audit reads instructions: none of these may be an extra."""
    assert package in required()
