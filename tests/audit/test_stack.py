"""The static stack bound, from gcc's tables and from clang's, and what makes it impossible."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from nnbuild.audit.stack import StackReport, render_stack, stack_bound, stack_json
from nnbuild.base.errors import NnbuildError

from .toolchains import Toolchain, by_name, parameters

EVERY = pytest.mark.parametrize("chain", parameters())

PLAIN = """\
extern int device(int *);
__attribute__((noinline)) static int deep(int n) {
    volatile char big[5000]; /* a large frame */
    big[n] = 1;
    return big[n + 1] + device(&n);
}
__attribute__((noinline)) static int shallow(int n) { int small[8]; small[0] = n; return device(small) + 1; }
__attribute__((noinline)) int pick(int n) {
    switch (n) {
        case 0: return shallow(3);
        case 1: return shallow(n) * 3;
        case 2: return shallow(n) ^ 77;
        case 3: return shallow(n) - 5;
        case 4: return shallow(n) / 3;
        case 5: return shallow(n) + 9;
        default: return 0;
    }
}
int run(int n) {
    return deep(n) + pick(n) + 1;
}
"""


def bound(chain: Toolchain, directory: Path, source: str, budget: int | None = None, **more: object) -> StackReport:
    tables = ("-fstack-usage", "-fcallgraph-info=su,da") if chain.is_gcc else ("-fstack-size-section",)
    # -fno-jump-tables is not given: switch statements must not be taken for calls through pointers.
    path = chain.compile(directory, "stack", source, ("-O2", "-g", *tables))
    files = [path, *([path.with_suffix(".ci")] if chain.is_gcc else [])]
    return stack_bound(files, "run", budget, **more)  # type: ignore[arg-type]


def line_of(source: str, mark: str) -> int:
    return next(number for number, line in enumerate(source.splitlines(), 1) if mark in line)


@EVERY
def test_the_deepest_path(chain: Toolchain, tmp_path: Path) -> None:
    report = bound(chain, tmp_path, PLAIN, frames={"device": 100})
    assert report.errors == ()
    assert [name for name, _ in report.path] == ["run", "deep", "device"]
    assert report.depth == sum(size for _, size in report.path)
    links = 112 if chain.machine == "powerpc64" else 0  # what its ABI adds to a frame, at most
    assert 5000 + 100 < report.depth < 5000 + 100 + 160 + 2 * links
    assert stack_json(report)["path"][2] == {"function": "device", "bytes": 100}


@EVERY
def test_a_path_goes_on_through_functions_without_a_frame(chain: Toolchain, tmp_path: Path) -> None:
    source = "extern int last(int);\nint run(int n) {\n    return last(n + 1);\n}\n"
    report = bound(chain, tmp_path, source, frames={"last": 0})
    assert [name for name, _ in report.path] == ["run", "last"]


@EVERY
def test_a_large_frame_breaks_the_budget(chain: Toolchain, tmp_path: Path) -> None:
    report = bound(chain, tmp_path, PLAIN, 4096, frames={"device": 0})
    (error,) = report.errors
    assert (error.kind, error.function, error.source) == ("budget", "run", f"stack.c:{line_of(PLAIN, 'int run')}")
    assert "the largest frame is in deep" in error.message
    assert report.bounded
    assert not report.clean


@EVERY
def test_an_unknown_function_is_an_error(chain: Toolchain, tmp_path: Path) -> None:
    (error,) = {e.function: e for e in bound(chain, tmp_path, PLAIN).errors}.values()
    assert (error.kind, error.function) == ("unknown-frame", "device")
    assert error.source in (f"stack.c:{line_of(PLAIN, 'big[n + 1]')}", f"stack.c:{line_of(PLAIN, 'small[0]')}")


SINS = {
    "recursion": (
        "extern int g(int);\n"
        "__attribute__((noinline)) int down(int n) {\n"
        "    return n ? g(n) * down(n - 1) + g(n) : 3; /* sin */\n"
        "}\n"
        "int run(int n) { return down(n) + 1; }\n",
        "down",
    ),
    "dynamic-frame": (
        "extern int g(int *);\n"
        "__attribute__((noinline)) int scratch(int n) { /* sin */\n"
        "    int *p = __builtin_alloca(n * sizeof *p);\n"
        "    return g(p) + 1;\n"
        "}\n"
        "int run(int n) { return scratch(n) + 1; }\n",
        "scratch",
    ),
    "indirect-call": (
        "extern int (*hook)(int);\n"
        "__attribute__((noinline)) int ask(int n) {\n"
        "    return hook(n) + 1; /* sin */\n"
        "}\n"
        "int run(int n) { return ask(n) + 1; }\n",
        "ask",
    ),
}


@EVERY
@pytest.mark.parametrize("kind", SINS)
def test_what_makes_a_bound_impossible(chain: Toolchain, tmp_path: Path, kind: str) -> None:
    source, function = SINS[kind]
    report = bound(chain, tmp_path, source, frames={"g": 8})
    found = [(error.kind, error.function, error.source) for error in report.errors]
    assert found == [(kind, function, f"stack.c:{line_of(source, 'sin')}")]
    assert not report.bounded
    assert "at least" in render_stack(report)


@EVERY
def test_a_jump_through_a_pointer_is_a_call(chain: Toolchain, tmp_path: Path) -> None:
    source = "int run(int (*f)(int), int n) {\n    return f(n + 1); /* sin */\n}\n"
    (error,) = bound(chain, tmp_path, source).errors
    assert (error.kind, error.function, error.source) == ("indirect-call", "run", "stack.c:2")


TABLE = """\
extern int a(int), b(int), c(int);
static int (*const ops[])(int) = {a, b, c};
int run(int i, int n) {
    return ops[i](n); /* sin */
}
"""


@EVERY
def test_a_jump_through_a_table_of_functions_is_not_a_switch(chain: Toolchain, tmp_path: Path) -> None:
    (error,) = bound(chain, tmp_path, TABLE).errors
    assert (error.kind, error.function, error.source) == ("indirect-call", "run", "stack.c:4")


@EVERY
@pytest.mark.parametrize("pic", [(), ("-fPIC",)], ids=["plain", "pic"])
def test_a_switch_is_not_a_call(chain: Toolchain, tmp_path: Path, pic: tuple[str, ...]) -> None:
    """From the code alone: gcc's own call graph, which knows, is left out."""
    path = chain.compile(tmp_path, "stack", PLAIN, ("-O2", "-g", *pic))
    kinds = {error.kind for error in stack_bound([path], "run", frames={"device": 0}).errors}
    assert kinds <= {"unknown-frame"}


def test_clang_leaves_out_the_return_address(tmp_path: Path) -> None:
    chain = by_name("x86-64-clang")
    if chain.missing:
        pytest.skip(chain.missing)
    report = bound(chain, tmp_path, "extern int g(int);\nint run(int n) { return g(n) + 1; }\n", frames={"g": 0})
    assert report.depth == 16  # `push rax` to align the stack, and the return address


@EVERY
def test_mutual_recursion_names_the_cycle(chain: Toolchain, tmp_path: Path) -> None:
    source = (
        "extern int g(int); int odd(int);\n"
        "__attribute__((noinline)) int even(int n) { return n ? odd(n - 1) + g(n) : 1; }\n"
        "__attribute__((noinline)) int odd(int n) { return n ? even(n - 1) + g(n) : 0; }\n"
        "int run(int n) { return even(n) + g(n); }\n"
    )
    (error,) = bound(chain, tmp_path, source, frames={"g": 0}).errors
    assert error.kind == "recursion"
    assert "even -> odd -> even" in error.message


@EVERY
def test_the_user_can_say_what_a_pointer_reaches(chain: Toolchain, tmp_path: Path) -> None:
    source = SINS["indirect-call"][0]
    report = bound(chain, tmp_path, source, frames={"a": 64, "b": 32}, may_call={"ask": ["a", "b"]})
    assert report.errors == ()
    assert [name for name, _ in report.path] == ["run", "ask", "a"]


@pytest.mark.parametrize("name", ["x86-64-gcc", "x86-64-clang"])
def test_a_call_through_a_kernel_thunk_is_one_through_a_pointer(name: str, tmp_path: Path) -> None:
    chain = by_name(name)
    if chain.missing:
        pytest.skip(chain.missing)
    thunks = "-mindirect-branch=thunk-extern" if chain.is_gcc else "-mretpoline-external-thunk"
    source = "int run(int (*f)(int), int n) {\n    return f(n + 1) + 1; /* sin */\n}\n"
    flags = ("-O2", "-g", thunks, *(() if chain.is_gcc else ("-mretpoline", "-fstack-size-section")))
    path = chain.compile(tmp_path, "stack", source, flags)
    errors = [error for error in stack_bound([path], "run").errors if error.kind != "unknown-frame"]
    assert [(error.kind, error.function, error.source) for error in errors] == [("indirect-call", "run", "stack.c:2")]


def test_the_red_zone_of_x86_64_leaf_functions_counts(tmp_path: Path) -> None:
    chain = by_name("x86-64-gcc")
    if chain.missing:
        pytest.skip(chain.missing)
    source = "int run(int n) { volatile char b[100]; b[n] = 1; return b[0]; }\n"
    report = bound(chain, tmp_path, source)
    assert report.depth >= 100 + 8
    alone = stack_bound([tmp_path / "stack.ci"], "run")
    assert alone.depth == 8
    assert "red zone" in alone.notes[0]


def test_stack_usage_files_serve_where_there_is_no_call_graph(tmp_path: Path) -> None:
    chain = by_name("arm-gcc")
    if chain.missing:
        pytest.skip(chain.missing)
    path = chain.compile(tmp_path, "stack", PLAIN, ("-O2", "-g", "-fstack-usage"))
    report = stack_bound([path, path.with_suffix(".su")], "run", frames={"device": 0})
    assert report.errors == ()
    assert report.depth > 5000


TWINS = """\
__attribute__((noinline)) static int first(int n) { volatile char big[300]; big[n] = 1; return big[n + 1]; }
__attribute__((noinline)) static int second(int n) { volatile char big[300]; big[n] = 1; return big[n + 1]; }
int other(int n) { return first(n) * 5; }
int run(int n) { return second(n) + 1; }
"""


@EVERY
def test_a_function_that_was_folded_into_its_twin(chain: Toolchain, tmp_path: Path) -> None:
    """gcc's tables still name the one that is gone; the code calls the other."""
    report = bound(chain, tmp_path, TWINS)
    assert report.errors == ()
    assert report.path[0][0] == "run" and len(report.path) == 2
    links = 112 if chain.machine == "powerpc64" else 0  # what its ABI adds to a frame, at most
    assert 300 < report.depth < 400 + links, (
        "all of the array, though x86-64 keeps part of it in the red zone, by an index"
    )


@pytest.mark.slow
def test_damaged_tables_give_a_report_or_an_error(tmp_path: Path) -> None:
    chain = by_name("x86-64-gcc")
    if chain.missing:
        pytest.skip(chain.missing)
    path = chain.compile(tmp_path, "stack", PLAIN, ("-O2", "-fstack-usage", "-fcallgraph-info=su,da"))
    rng = random.Random(4)
    outcomes = set()
    for case in range(400):
        suffix = (".ci", ".su")[case % 2]
        text = bytearray(path.with_suffix(suffix).read_bytes())
        for _ in range(rng.choice((1, 3, 30))):
            at = rng.randrange(len(text))
            text[at : at + rng.randrange(3)] = rng.choice(
                (b"9" * 5000, b'"', b"\n", b":", b"\t", b"\xff", b"(dynamic)", b"")
            )
        damaged = tmp_path / f"damaged{suffix}"
        damaged.write_bytes(text)
        try:
            render_stack(stack_bound([damaged, path], "run"))
            outcomes.add("report")
        except NnbuildError:
            outcomes.add("error")
    assert outcomes == {"report", "error"}


def test_quotes_in_paths(tmp_path: Path) -> None:
    """gcc writes them as they are."""
    where = '/p"q/a.c'
    (tmp_path / "a.ci").write_text(
        f'graph: {{ title: "{where}"\n'
        f'node: {{ title: "run" label: "run\\n{where}:4:6\\n8 bytes (static)\\n0 dynamic objects" }}\n'
        f'node: {{ title: "{where}:step" label: "step\\n{where}:1:6\\n16 bytes (static)" }}\n'
        f'edge: {{ sourcename: "run" targetname: "{where}:step" label: "{where}:5:3" }}\n}}\n'
    )
    found = stack_bound([tmp_path / "a.ci"], "run")
    assert (found.depth, found.errors) == (24, ())


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.ci", "hello\n", "a.ci: is not a call graph from gcc. Compile with -fcallgraph-info=su,da."),
        ("a.ci", 'graph: { title: "a" }\nrubbish\n', "a.ci: line 2 is neither a node nor an edge of a call graph. "),
        ("a.su", "rubbish\n", "a.su: line 1 is not a stack usage entry. Compile with -fstack-usage."),
        (
            "a.su",
            "a.c:1:1:other\t16\tstatic\n",
            "run: is not a function of the given files. Name a function in them, such as ",
        ),
    ],
)
def test_bad_tables(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(NnbuildError) as problem:
        stack_bound([path], "run")
    assert message in str(problem.value)
