"""Objects made with known sins, by every compiler: each sin is found with its function and line, no other is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from nnbuild.audit import AuditReport, Finding, audit_files, explain_symbol, load_policy, vendored_objects
from nnbuild.audit.elf import read_elf
from nnbuild.audit.relocations import call_target, relocation_tables

from .toolchains import ALL, Toolchain, by_name, parameters

EVERY = pytest.mark.parametrize("chain", parameters())

CLEAN = """\
typedef struct { signed char arena[64]; int state; } context;
static const signed char weights[64] = {1, 2, 3};
extern void *memcpy(void *, const void *, __SIZE_TYPE__);
int dense(const context *c, int bias) {
    int sum = bias;
    for (int i = 0; i < 64; i++) sum += c->arena[i] * weights[i];
    return sum;
}
int run(context *c, const signed char *input) {
    memcpy(c->arena, input, sizeof c->arena);
    c->state = dense(c, 3);
    return c->state;
}
"""


@dataclass(frozen=True)
class Audited:
    report: AuditReport
    path: Path

    def of(self, rule: str) -> list[Finding]:
        return [finding for finding in self.report.findings if finding.rule == rule]

    def rules(self) -> set[str]:
        return {finding.rule for finding in self.report.findings}


def audit(
    chain: Toolchain,
    directory: Path,
    source: str,
    policy: str = "mcu",
    flags: Iterable[str] = ("-O2", "-g"),
    **more: object,
) -> Audited:
    path = chain.compile(directory, "sin", source, tuple(flags))
    return Audited(audit_files([path], load_policy(policy), **more), path)  # type: ignore[arg-type]


def line_of(source: str, mark: str) -> int:
    """The number of the line that carries a comment."""
    return next(number for number, line in enumerate(source.splitlines(), 1) if mark in line)


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, findings
    return findings[0]


def assert_at(finding: Finding, function: str, line: int) -> None:
    assert finding.place is not None
    assert (finding.place.function, finding.place.file, finding.place.line) == (function, "sin.c", line)


@EVERY
@pytest.mark.parametrize("policy", ["mcu", "hosted"])
@pytest.mark.parametrize("flags", [("-O0", "-g"), ("-O2", "-g"), ("-Os", "-gdwarf-4", "-ffunction-sections"), ("-O2",)])
def test_nothing_is_invented_in_clean_objects(
    chain: Toolchain, tmp_path: Path, policy: str, flags: tuple[str, ...]
) -> None:
    assert audit(chain, tmp_path, CLEAN, policy, flags).report.findings == ()


@EVERY
def test_clean_objects_are_clean_for_the_kernel(chain: Toolchain, tmp_path: Path) -> None:
    plain = {"x86-64": ("-mno-sse", "-mcmodel=kernel"), "aarch64": ("-mgeneral-regs-only",)}
    plain |= dict.fromkeys(("powerpc", "powerpc64"), ("-mno-altivec", "-mno-vsx"))
    plain = plain.get(chain.machine, ())
    assert audit(chain, tmp_path, CLEAN, "kernel", ("-O2", "-g", *plain)).report.findings == ()


INLINED_EXPF = """\
extern float expf(float);
float other(float x) { return x + 2.0f; }
static inline float act(float x) {
    return expf(x); /* the call */
}
float run(float x) {
    float y = act(x); /* inlined here */
    return y + 1.0f;
}
"""


@EVERY
@pytest.mark.parametrize("flags", [("-O2", "-g"), ("-O2", "-gdwarf-4"), ("-O1", "-g", "-ffunction-sections")])
def test_expf_in_an_inlined_function(chain: Toolchain, tmp_path: Path, flags: tuple[str, ...]) -> None:
    audited = audit(chain, tmp_path, INLINED_EXPF, "mcu", flags)
    finding = only(audited.of("symbol:libm"))
    assert finding.severity == "violation"
    assert_at(finding, "run", line_of(INLINED_EXPF, "the call"))
    assert finding.place is not None
    assert finding.place.inlined == (f"act, called at sin.c:{line_of(INLINED_EXPF, 'inlined here')}",)


@pytest.mark.parametrize("target", ["mips", "mipsel", "mips64", "mips64el"])
def test_symbols_and_lines_of_a_machine_whose_instructions_are_not_read(target: str, tmp_path: Path) -> None:
    chain = Toolchain(target, "mips", ("clang", f"--target={target}-linux-gnu"), "objdump")
    if chain.missing:
        pytest.skip(chain.missing)
    audited = audit(chain, tmp_path, INLINED_EXPF, "hosted")
    places = [place for need in audited.report.needs if need.symbol == "expf" for place in need.places]
    assert [(place.function, place.line) for place in places] == [("run", line_of(INLINED_EXPF, "the call"))]
    kernel = audit(chain, tmp_path, INLINED_EXPF, "kernel")
    assert "floating-point" in kernel.rules()


@EVERY
def test_where_does_expf_come_from(chain: Toolchain, tmp_path: Path) -> None:
    audited = audit(chain, tmp_path, INLINED_EXPF, explain=["expf"])
    assert explain_symbol(audited.report, "expf") == (
        "expf: sin.o, run() (inlined from act, called at sin.c:7), sin.c:4; forbidden by the policy mcu"
    )


@EVERY
def test_our_library_supplies_what_is_needed_and_only_that(chain: Toolchain, tmp_path: Path) -> None:
    libm = tmp_path / "libm"
    libm.mkdir()
    (libm / "nn_expf.c").write_text("/* not nn_tanhf */ float nn_expf(float x) { return nn_floorf(x); }")
    (libm / "nn_floorf.c").write_text("float nn_floorf(float x) { return x; }")
    (libm / "nn_tanhf.c").write_text("float nn_tanhf(float x) { return nn_expf(x); }")
    names = ("expf", "floorf", "tanhf")
    supplied = {f"{prefix}{name}": libm / f"nn_{name}.c" for name in names for prefix in ("", "nn_")}
    audited = audit(chain, tmp_path, INLINED_EXPF, supplied=supplied)
    assert audited.of("symbol:libm") == []
    assert vendored_objects(audited.report) == (libm / "nn_expf.c",)
    assert vendored_objects(audited.report, supplied) == (libm / "nn_expf.c", libm / "nn_floorf.c")
    assert "supplied by" in explain_symbol(audited.report, "expf")


DOUBLE = """\
float scale(float x) {
    return x + 1.0f;
}
float half(float x, float y) {
    float z = x * y;
    return z * 0.3; /* a double */
}
"""


@EVERY
def test_a_double_slips_in(chain: Toolchain, tmp_path: Path) -> None:
    audited = audit(chain, tmp_path, DOUBLE)
    found = audited.of("symbol:soft_double") if chain.soft_double else audited.of("double")
    assert found
    for finding in found:
        assert_at(finding, "half", line_of(DOUBLE, "a double"))
        assert finding.severity == "violation"
    assert audited.rules() <= {"symbol:soft_double", "double", "symbol:soft_float"}


MALLOC = """\
extern void *malloc(__SIZE_TYPE__);
int other(int x) { return x; }
void *grab(int n) {
    n += other(n);
    return malloc(n + 1); /* the heap */
}
"""


@EVERY
def test_malloc(chain: Toolchain, tmp_path: Path) -> None:
    audited = audit(chain, tmp_path, MALLOC)
    assert audited.rules() == {"symbol:heap"}
    assert_at(only(audited.of("symbol:heap")), "grab", line_of(MALLOC, "the heap"))


TABLE = """\
extern void free(void *);
void (*const release)(void *) = free;
"""


@EVERY
def test_a_symbol_needed_by_data_names_the_variable_and_its_line(chain: Toolchain, tmp_path: Path) -> None:
    assert_at(only(audit(chain, tmp_path, TABLE).of("symbol:heap")), "release", 2)


DIVISION = "long long ratio(long long a, long long b) {\n    return a / b;\n}\n"


@pytest.mark.parametrize(
    "chain", parameters([by_name(name) for name in ("arm-gcc", "arm-clang", "riscv-gcc", "riscv-clang")])
)
def test_64_bit_division(chain: Toolchain, tmp_path: Path) -> None:
    assert_at(only(audit(chain, tmp_path, DIVISION).of("symbol:division_64")), "ratio", 2)


FP_GLUE = """\
int glue(int n) {
    return n + 1;
}
void leak(float *to, const float *from) {
    *to = *from * 3.0f; /* floating point */
}
"""


@pytest.mark.parametrize(
    "chain",
    parameters(
        [
            by_name(name)
            for name in ("x86-64-gcc", "x86-64-clang", "aarch64-gcc", "aarch64-clang", "arm-gcc", "arm-clang")
        ]
    ),
)
def test_floating_point_in_glue(chain: Toolchain, tmp_path: Path) -> None:
    audited = audit(chain, tmp_path, FP_GLUE, "kernel")
    assert_at(only(audited.of("floating-point")), "leak", line_of(FP_GLUE, "floating point"))
    allowed = load_policy("kernel").with_overrides(may_use_fp=["sin.o"])
    assert not [f for f in audit_files([audited.path], allowed).findings if f.rule == "floating-point"]
    by_function = load_policy("kernel").with_overrides(may_use_fp=["lea*"])
    assert not [f for f in audit_files([audited.path], by_function).findings if f.rule == "floating-point"]


RISCV_HARD = (
    Toolchain(
        "rv64gc-gcc",
        "riscv",
        ("riscv64-unknown-elf-gcc", "-march=rv64gc", "-mabi=lp64d"),
        "riscv64-unknown-elf-objdump",
    ),
    Toolchain(
        "rv64gc-clang",
        "riscv",
        ("clang", "--target=riscv64", "-march=rv64gc", "-mabi=lp64d"),
        "riscv64-unknown-elf-objdump",
    ),
)


@pytest.mark.parametrize("chain", parameters(RISCV_HARD))
def test_floating_point_on_risc_v(chain: Toolchain, tmp_path: Path) -> None:
    flags = ("-O2", "-g", "-mcmodel=medany")
    audited = audit(chain, tmp_path, FP_GLUE, "kernel", flags)
    finding = only(audited.of("floating-point"))
    assert finding.place is not None
    assert (finding.place.function, finding.place.line) == ("leak", line_of(FP_GLUE, "floating point"))
    assert_at(only(audit(chain, tmp_path, DOUBLE, "mcu", flags).of("double")), "half", line_of(DOUBLE, "a double"))


VECTOR_GLUE = """\
typedef int lanes __attribute__((vector_size(16)));
void add(lanes *a, const lanes *b) {
    *a += *b; /* vector */
}
"""


@pytest.mark.parametrize(
    "command",
    [
        ("arm-none-eabi-gcc", "-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"),
        ("clang", "--target=arm-none-eabi", "-march=armv8.1-m.main+mve", "-mthumb", "-mfloat-abi=hard"),
    ],
    ids=["gcc", "clang"],
)
def test_vector_instructions_of_the_cortex_m55(command: tuple[str, ...], tmp_path: Path) -> None:
    chain = Toolchain("m55", "arm", command, "arm-none-eabi-objdump")
    if chain.missing:
        pytest.skip(chain.missing)
    finding = only(audit(chain, tmp_path, VECTOR_GLUE, "kernel").of("floating-point"))
    assert_at(finding, "add", line_of(VECTOR_GLUE, "/* vector */"))


GOT = """\
extern int shared;
int plain(int x) {
    return x;
}
int fetch(void) {
    return shared; /* through the table */
}
"""


# On 64-bit PowerPC every object has such a table, which the linker fills for good: it is no sin there.
WITH_GOT = parameters([chain for chain in ALL if chain.machine != "powerpc64"])


@pytest.mark.parametrize("chain", WITH_GOT)
def test_a_got_relocation(chain: Toolchain, tmp_path: Path) -> None:
    flags = ("-O2", "-g", "-fpic" if chain.machine == "powerpc" else "-fPIC")
    found = audit(chain, tmp_path, GOT, "mcu", flags).of("relocation")
    assert {finding.place.function for finding in found if finding.place is not None} == {"fetch"}
    # gcc for ARM also loads the table's own address, in the function's opening line.
    to_shared = [finding for finding in found if "shared" in finding.message]
    assert to_shared
    for finding in to_shared:
        assert_at(finding, "fetch", line_of(GOT, "through the table"))
    assert audit(chain, tmp_path, GOT, "mcu").of("relocation") == []


STATICS = """\
static int calls; /* a count */
float scale[4] = {1, 2, 3, 4}; /* a table */
const int fixed[4] = {1, 2, 3, 4};
int run(int n) {
    calls += n;
    return calls + fixed[n & 3] + (int)scale[n & 3];
}
"""


@EVERY
def test_writable_data_in_a_model_object(chain: Toolchain, tmp_path: Path) -> None:
    audited = audit(chain, tmp_path, STATICS)
    found = {finding.subject: finding for finding in audited.of("writable-data")}
    assert set(found) == {"calls", "scale"}
    assert_at(found["calls"], "calls", line_of(STATICS, "a count"))
    assert_at(found["scale"], "scale", line_of(STATICS, "a table"))
    glue = load_policy("mcu").with_overrides(model_objects=["model_*.o"])
    assert not [f for f in audit_files([audited.path], glue).findings if f.rule == "writable-data"]


CONSTANT = """\
__attribute__((section(".data.weights"))) const int weights[64] = {1}; /* in RAM */
int run(int n) {
    return weights[n];
}
"""


def test_small_constants_of_powerpc(tmp_path: Path) -> None:
    """gcc puts them into a writable section: no fault of their author's, and in RAM."""
    chain = by_name("powerpc-gcc")
    if chain.missing:
        pytest.skip(chain.missing)
    source = "extern const int small[2];\nconst int small[2] = {1, 2};\n"
    path = chain.compile(tmp_path, "sin", source, ("-O2", "-g"))
    assert audit_files([path], load_policy("hosted")).findings == ()
    (found,) = audit_files([path], load_policy("mcu")).findings
    assert (found.rule, found.subject) == ("constant-in-ram", "small")
    assert found.fix == "Compile with -msdata=none, so that small constants stay in .rodata."


@EVERY
def test_constant_data_in_ram(chain: Toolchain, tmp_path: Path) -> None:
    path = chain.compile(tmp_path, "sin", CONSTANT, ("-O2", "-g"))
    _mark_writable(path, ".data.weights")
    findings = audit_files([path], load_policy("mcu")).findings
    assert [(finding.rule, finding.subject) for finding in findings] == [("constant-in-ram", "weights")]
    assert_at(findings[0], "weights", line_of(CONSTANT, "in RAM"))


def _mark_writable(path: Path, name: str) -> None:
    """Sets the section's write flag, as compilers that go by the section's name do by themselves."""
    from nnbuild.audit.elf import SHF_WRITE, read_elf

    data = bytearray(path.read_bytes())
    file = read_elf(path.name, bytes(data))
    section = file.section_named(name)
    assert section is not None
    start = int.from_bytes(data[40:48] if file.bits == 64 else data[32:36], "little" if file.little else "big")
    at = start + section.number * (64 if file.bits == 64 else 40) + 8
    at += 0 if file.little else 7 if file.bits == 64 else 3
    data[at] |= SHF_WRITE
    path.write_bytes(bytes(data))


CONSTRUCTOR = """\
extern int ready;
__attribute__((constructor)) void early(void) { ready = 1; } /* runs first */
"""


@EVERY
def test_an_unexpected_constructor(chain: Toolchain, tmp_path: Path) -> None:
    finding = only(audit(chain, tmp_path, CONSTRUCTOR).of("constructor"))
    assert_at(finding, "early", line_of(CONSTRUCTOR, "runs first"))


WRITABLE_CODE = """\
__asm__(".section .patched,\\"awx\\"\\n .byte 0,0,0,0\\n .text\\n");
int run(int n) { return n; }
"""


@EVERY
def test_a_writable_and_executable_section(chain: Toolchain, tmp_path: Path) -> None:
    finding = only(audit(chain, tmp_path, WRITABLE_CODE).of("writable-executable"))
    assert finding.subject == ".patched"


@EVERY
def test_objects_without_debug_information_say_so(chain: Toolchain, tmp_path: Path) -> None:
    audited = audit(chain, tmp_path, MALLOC, flags=("-O2",))
    finding = only(audited.of("symbol:heap"))
    assert finding.place is not None
    assert (finding.place.function, finding.place.line) == ("grab", None)
    assert audited.report.notes == ("sin.o has no line table: source lines are unknown; compile with -g",)


POSITION_INDEPENDENT = [
    (CLEAN, {}),
    (INLINED_EXPF, {"symbol:libm": "the call"}),
    (MALLOC, {"symbol:heap": "the heap"}),
    (CONSTRUCTOR, {"constructor": "runs first"}),
]


@pytest.mark.parametrize("chain", parameters([chain for chain in ALL if chain.machine.startswith("powerpc")]))
@pytest.mark.parametrize("flags", [("-O2", "-g", "-fPIC"), ("-Os", "-g", "-fPIC", "-ffunction-sections")])
@pytest.mark.parametrize(("source", "sins"), POSITION_INDEPENDENT)
def test_objects_for_any_address(
    chain: Toolchain, source: str, sins: dict[str, str], flags: tuple[str, ...], tmp_path: Path
) -> None:
    """As compilers of distributions make them unless they are told otherwise: nothing is left unjudged."""
    audited = audit(chain, tmp_path, source, flags=flags)
    assert {each.rule: each.place.line for each in audited.report.findings if each.place is not None} == {
        rule: line_of(source, mark) for rule, mark in sins.items()
    }
    assert not [note for note in audited.report.notes if "unknown relocation" in note]


@pytest.mark.parametrize("chain", parameters([by_name("powerpc-gcc")]))
def test_writable_data_of_an_object_for_any_address(chain: Toolchain, tmp_path: Path) -> None:
    audited = audit(chain, tmp_path, STATICS, flags=("-O2", "-g", "-fPIC"))
    assert {finding.subject for finding in audited.report.findings} == {"calls", "scale"}
    assert audited.report.notes == ()


CHAIN_OF_CALLS = """\
__attribute__((noinline)) int first(int x) { return x * 3; }
__attribute__((noinline)) int unrelated(int x) { return x * 5; }
int run(int x) { return first(x) + 1; }
"""


@pytest.mark.parametrize("chain", parameters([by_name("powerpc-gcc")]))
def test_calls_of_an_object_for_any_address(chain: Toolchain, tmp_path: Path) -> None:
    """The addend of such a call says which table the caller has, and not where the function begins."""
    path = chain.compile(tmp_path, "sin", CHAIN_OF_CALLS, ("-O2", "-fPIC"))
    file = read_elf(path.name, path.read_bytes())
    calls = [entry for table in relocation_tables(file) for entry in table.entries() if entry.type == "R_PPC_PLTREL24"]
    first = next(symbol for symbol in file.symbols if symbol.name == "first")
    assert calls and {call_target(file, entry) for entry in calls} == {file.address_of(first)}
