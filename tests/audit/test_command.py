"""The command `nnbuild audit`: its options, its output and its exit codes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from nnbuild.audit import load_policy
from nnbuild.audit.command import add_arguments, run
from nnbuild.audit.policy import NAMES, group_of
from nnbuild.base.errors import UsageError

from .toolchains import Toolchain, by_name

CLEAN = "int add(int a, int b) {\n    return a + b;\n}\n"
SINFUL = """\
extern float expf(float);
static int count;
float run(float x) {
    count++;
    return expf(x);
}
int get(void) { return count; }
"""


@pytest.fixture
def chain() -> Toolchain:
    found = by_name("x86-64-gcc")
    if found.missing:
        pytest.skip(found.missing)
    return found


def command(*words: object) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args([str(word) for word in words]))


def test_a_clean_object(chain: Toolchain, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = chain.compile(tmp_path, "clean", CLEAN)
    assert command(path, "--policy", "mcu") == 0
    assert "The audit found no violation." in capsys.readouterr().out


def test_the_usual_policy(chain: Toolchain, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(chain.compile(tmp_path, "clean", CLEAN)) == 0
    assert "policy hosted" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command("--help")
    assert "or a TOML file (default: hosted)" in " ".join(capsys.readouterr().out.split())


def test_a_sinful_object(chain: Toolchain, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = chain.compile(tmp_path, "sin", SINFUL)
    assert command(path, "--policy", "mcu") == 1
    shown = capsys.readouterr().out
    assert "[symbol:libm] sin.o, run(), sin.c:5: needs expf, a function of the C mathematics library, which" in shown
    assert "[writable-data] sin.o, count, sin.c:2: count is 4 bytes of writable static data in a model object." in shown
    assert "Violations: 2." in shown


def test_why(chain: Toolchain, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = chain.compile(tmp_path, "sin", SINFUL)
    assert command(path, "--policy", "mcu", "--why", "expf") == 0
    assert capsys.readouterr().out == "expf: sin.o, run(), sin.c:5; forbidden by the policy mcu\n"
    assert command(path, "--policy", "mcu", "--why", "expf", "--supply", "expf=lib/nn_expf.c") == 0
    assert capsys.readouterr().out == "expf: sin.o, run(), sin.c:5; supplied by lib/nn_expf.c\n"
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "expf.c").write_text("float expf(float x) { return nn_expf(x); }")
    (tmp_path / "nn_expf.c").write_text("float nn_expf(float x) { return x; }")
    assert command(path, "--policy", "mcu", "--why", "expf", "--libm", tmp_path) == 0
    assert capsys.readouterr().out == f"expf: sin.o, run(), sin.c:5; supplied by {tmp_path}/plain/expf.c\n"
    assert command(path, "--libm", tmp_path / "plain") == 2
    assert "holds no source named nn_*.c. Give the directory firmware/libm." in capsys.readouterr().err
    assert command(path, "--why", "tanhf") == 0
    assert capsys.readouterr().out == "tanhf: no audited object needs it\n"


def test_objects_that_supply_each_other(chain: Toolchain, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sin = chain.compile(tmp_path, "sin", SINFUL)
    supplier = chain.compile(
        tmp_path, "supplier", "float expf(float x) {\n    return x;\n}\n", ("-O2", "-g", "-fno-builtin")
    )
    assert command(sin, supplier, "--policy", "mcu", "--model-objects", "model*.o") == 0
    assert command(sin, supplier, "--policy", "mcu", "--why", "expf") == 0
    assert capsys.readouterr().out.endswith("expf: sin.o, run(), sin.c:5; defined in supplier.o\n")


def test_json_on_standard_output(chain: Toolchain, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = chain.compile(tmp_path, "sin", SINFUL)
    assert command(path, "--policy", "mcu", "--json", "-") == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["clean"], report["policy"]) == (False, "mcu")
    (finding,) = [f for f in report["findings"] if f["subject"] == "expf"]
    place = finding["place"]
    assert (place["object"], place["function"], place["file"], place["line"]) == ("sin.o", "run", "sin.c", 5)
    sizes, sections = report["objects"][0]["sizes"], report["objects"][0]["sections"]
    assert sizes["bss"] == 4
    assert sizes["code"] == sections[".text"] > 0
    assert sizes["constants"] == sections[".eh_frame"] == sizes["flash"] - sizes["code"]
    assert {"object": "sin.o", "name": "count", "kind": "bss", "size": 4} in report["symbols"]


def test_json_in_a_file(chain: Toolchain, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = chain.compile(tmp_path, "clean", CLEAN)
    assert command(path, "--json", tmp_path / "report.json") == 0
    assert json.loads((tmp_path / "report.json").read_text())["clean"] is True
    assert command(path, "--json", tmp_path / "none" / "report.json") == 2
    assert "cannot be written (No such file or directory). Give another path to --json." in capsys.readouterr().err


def test_budgets(chain: Toolchain, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = chain.compile(tmp_path, "table", "const int table[1024] = {1};\nint room[2048];\n")
    glue = ("--model-objects", "none")
    assert command(path, "--policy", "mcu", "--budget", "flash=8K,ram=8K", *glue) == 0
    assert "ram: 8192 of 8192 bytes (100.0 %)" in capsys.readouterr().out
    assert command(path, "--policy", "mcu", "--budget", "flash=4000,ram=8000", *glue) == 1
    shown = capsys.readouterr().out
    assert "bytes of flash are used, " in shown
    assert "8192 bytes of ram are used, 192 above the limit of 8000; the largest are room 8192." in shown


def test_the_stack_bound(chain: Toolchain, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = "extern int g(int *);\nint run(int n) {\n    int a[1000]; a[0] = n;\n    return g(a) + 1;\n}\n"
    path = chain.compile(tmp_path, "deep", source, ("-O2", "-g", "-fstack-usage", "-fcallgraph-info=su,da"))
    table = path.with_suffix(".ci")
    entry = ("--stack-entry", "run", "--stack-frame", "g=64")
    assert command(path, table, *entry, "--budget", "stack=8K") == 0
    assert "Stack under run: at most 4" in capsys.readouterr().out
    assert command(path, table, *entry, "--budget", "stack=4000") == 1
    said = capsys.readouterr().out
    assert "Violations: 1.\n" in said and "no violation" not in said
    assert command(table, *entry, "--json", "-") == 0
    stack = json.loads(capsys.readouterr().out)["stack"]
    assert stack["bounded"] is True
    assert stack["path"][1] == {"function": "g", "bytes": 64}
    assert command(table, "--stack-entry", "run") == 1
    assert "[unknown-frame] g(), deep.c:4: no file gives its stack usage." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--policy", "moon"),
            "policy moon: is neither a policy nor a readable file. "
            "Use kernel, mcu, hosted, or the path of a TOML file.",
        ),
        (("--budget", "disk=3"), "--budget: knows no 'disk'. Use flash, ram and stack."),
        (("--budget", "ram=3G"), "--budget: cannot read the size '3G'. Write bytes, as 4096 or 4K."),
        (("--budget", "ram"), "--budget: cannot read 'ram'. Write NAME=VALUE."),
        (("--supply", "expf"), "--supply: cannot read 'expf'. Write NAME=VALUE."),
        (("--stack-entry", "rum"), "rum: is not a function of the given files. Name a function in them, such as run."),
    ],
)
def test_wrong_usage(
    chain: Toolchain, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    path = chain.compile(tmp_path, "sin", SINFUL)
    assert command(path, *words) == 2
    assert capsys.readouterr().err == f"nnbuild audit: {message}\n"


def test_stack_tables_alone_need_an_entry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(tmp_path / "a.ci") == 2
    assert "only stack tables were given. Name a function with --stack-entry." in capsys.readouterr().err
    (tmp_path / "a.ci").write_text('graph: { title: "a.c"\n}\n')
    assert command(tmp_path / "a.ci", "--stack-entry", "run", "--why", "expf") == 2


def test_exit_code_without_capstone(chain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = chain.compile(tmp_path, "clean", CLEAN)
    monkeypatch.setattr("nnbuild.audit.rules.find_capstone", lambda: None)
    assert command(path, "--policy", "kernel") == 3
    assert command(path, "--policy", "hosted") == 0


@pytest.mark.parametrize("name", NAMES)
def test_policies_load(name: str) -> None:
    policy = load_policy(name)
    assert policy.name == name
    assert policy.verdict("expf") == "forbid"
    assert policy.verdict("memcpy") == "allow"


def policy_text() -> str:
    import nnbuild.audit.policy as home

    return (home.HERE / "policies" / "mcu.toml").read_text()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('heap = "forbid"', 'heap = "never"', "needs symbols.heap to be one of forbid, warn, allow."),
        ('heap = "forbid"', "", "needs symbols.heap to be one of forbid, warn, allow."),
        ('heap = "forbid"', 'heap = "forbid"\nheep = "warn"', "has the unknown field symbols.heep."),
        ("[data]", "[dota]", "has the unknown field dota."),
        ('name = "mcu"', "", "has no string 'name'."),
        ("may_use_fp = []", "may_use_fp = 3", "needs instructions.may_use_fp to be a list of strings."),
        ("[data]", "[data", "is not valid TOML"),
    ],
)
def test_bad_policies(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "own.toml"
    path.write_text(policy_text())
    assert load_policy(path).name == "mcu"
    assert old in policy_text()
    path.write_text(policy_text().replace(old, new, 1))
    with pytest.raises(UsageError) as problem:
        load_policy(path)
    assert message in str(problem.value)


@pytest.mark.parametrize(
    ("symbol", "group"),
    [
        ("expf", "libm"), ("sqrt", "libm"), ("fmodl", "libm"), ("exp2f@GLIBC_2.29", "libm"),
        ("cexpf", "libm"), ("clog10", "libm"), ("lgammaf_r", "libm"), ("expf32", "libm"), ("sinf64x", "libm"),
        ("isnanf", "libm"), ("pow10f", "libm"), ("fmaximumf", "libm"), ("fegetround", "libm"), ("gammaf_r", "libm"),
        ("__kernel_rem_pio2f", "libm"), ("__floattidf", "soft_double"), ("__fixunsdfti", "soft_double"),
        ("__mulxc3", "soft_double"), ("__fixsfti", "soft_float"), ("__floatuntisf", "soft_float"),
        ("__lthf2", "soft_float"), ("__fixunshfti", "soft_float"), ("__divmodti4", "division_64"),
        ("__aeabi_dmul", "soft_double"),
        ("__aeabi_d2f", "soft_double"), ("__aeabi_f2d", "soft_double"), ("__extendsfdf2", "soft_double"),
        ("__aeabi_fmul", "soft_float"), ("__aeabi_f2iz", "soft_float"), ("__mulsf3", "soft_float"),
        ("__aeabi_uldivmod", "division_64"), ("malloc", "heap"), ("_malloc_r", "heap"), ("printf", "stdio"),
        ("_Znwm", "cxx"), ("__cxa_atexit", "cxx"), ("memcpy", "freestanding"), ("__aeabi_memcpy4", "freestanding"),
        ("strlen", "libc"), ("abort", "process"), ("__errno", "errno"), ("kws_run", None),
        ("nn_expf", None), ("kfree", None),
    ],
)  # fmt: skip
def test_symbol_groups(symbol: str, group: str | None) -> None:
    found = group_of(symbol)
    assert (found.name if found is not None else None) == group
